"""From the bytes of a presentation to its tree, with the places that edits need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..node import Document, Node
from ..opc import open_package
from ..properties import core_properties
from .names import EMU_PER_POINT, local, number, p, r
from .shapes import Place, Shapes, Walk
from .text import body_text


@dataclass(slots=True)
class Reading:
    """A presentation that was read.

    Attributes:
        document: its tree.
        walk: package, places and roots.
        main: name of the presentation part.
        slides: part of each slide in order, with its id.
    """

    document: Document
    walk: Walk
    main: str
    slides: list[tuple[str, int]]


def read_places(data: bytes, name: str) -> Reading:
    """Read a presentation. Raises UnreadableDocument and its subclasses."""
    package = open_package(data, name)
    main = package.main(("presentation",))
    walk = Walk(package)
    root = walk.roots[main] = package.xml(main)
    slides: list[tuple[str, int]] = []
    nodes: list[Node] = []
    for entry in root.iter(p("sldId")):
        relation = package.relationships(main).get(entry.get(r("id")) or "")
        part = None if relation is None else package.part_name(relation.target)
        position = len(slides) + 1
        slides.append((part or "", number(entry.get("id")) or 0))
        slide = None if part is None else walk.open(part)
        if part is None or slide is None:
            walk.warnings.append(f"slide {position} is missing or damaged")
            continue
        nodes.append(_slide(walk, part, slide, f"s{position}", slides[-1][1]))
    hidden = [node.address for node in nodes if node.attributes.get("hidden")]
    if hidden:
        walk.warnings.append(f"hidden slides: {', '.join(hidden)}")
    metadata: dict[str, Any] = dict(core_properties(package))
    size = root.find(p("sldSz"))
    for key, source in (("slide_width_pt", "cx"), ("slide_height_pt", "cy")):
        length = None if size is None else number(size.get(source))
        if length is not None:
            metadata[key] = round(length / EMU_PER_POINT, 3)
    return Reading(Document("pptx", name, tuple(nodes), metadata, tuple(walk.warnings)), walk, main, slides)


def _slide(walk: Walk, part: str, root: Any, address: str, slide_id: int) -> Node:
    walk.note(address, Place("slide", part, root, part))
    attributes: dict[str, Any] = {"slide_id": slide_id, "part": part}
    for layout in walk.package.related(part, "slideLayout")[:1]:
        own = walk.open(layout)
        content = None if own is None else own.find(p("cSld"))
        if content is not None and content.get("name"):
            attributes["layout"] = content.get("name")
    if root.get("show") in ("0", "false"):
        attributes["hidden"] = True
    children: list[Node] = []
    tree = root.find(f"{p('cSld')}/{p('spTree')}")
    if tree is not None:
        children += Shapes(walk, part, part).nodes(tree, address)
    title = next((one.text for one in children if one.attributes.get("placeholder") in ("title", "ctrTitle")), "")
    if title:
        attributes["title"] = title
    children += _notes(walk, part, address)
    children += _comments(walk, part, address)
    return Node("slide", address, "", attributes, tuple(children))


def notes_body(root: Any) -> Any:
    """The text body of a notes page that holds the notes themselves; None where there is none."""
    for shape in root.iter(p("sp")):
        placeholder = next(shape.iter(p("ph")), None)
        if placeholder is not None and placeholder.get("type") == "body":
            return shape.find(p("txBody"))
    return None


def _notes(walk: Walk, part: str, address: str) -> list[Node]:
    for notes in walk.package.related(part, "notesSlide")[:1]:
        root = walk.open(notes)
        body = None if root is None else notes_body(root)
        if body is not None:
            walk.note(f"{address}/notes", Place("notes", notes, body, part))
            return [Node("notes", f"{address}/notes", body_text(body))]
    return []


def _comments(walk: Walk, part: str, address: str) -> list[Node]:
    nodes: list[Node] = []
    for comments in walk.package.related(part, "comments"):
        root = walk.open(comments)
        for element in [] if root is None else [one for one in root.iter() if local(one) in ("cm", "reply")]:
            body = next((one for one in element if local(one) == "txBody"), None)
            text = (
                "".join(one.text or "" for one in element if local(one) == "text") if body is None else body_text(body)
            )
            facts = {"date": element.get("dt") or element.get("created"), "author_id": element.get("authorId")}
            place = walk.note(f"{address}/comment{len(nodes) + 1}", Place("comment", comments, element, part))
            nodes.append(Node("comment", place, text, {key: one for key, one in facts.items() if one}))
    return nodes
