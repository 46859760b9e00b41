"""From the bytes of a Word document to its tree, with the places that edits need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..errors import UnreadableDocument
from ..node import Document, Node
from ..opc import Package, open_package
from ..properties import core_properties
from .blocks import Story, Walk
from .names import W14, W15, R, local, w
from .styles import styles_of

NOTES = {"footnotes": "footnote", "endnotes": "endnote"}
MARGINS = {"headerReference": "header", "footerReference": "footer"}


@dataclass(slots=True)
class Reading:
    """A document that was read.

    Attributes:
        document: its tree.
        walk: package, styles and places.
        main: name of the document part.
        roots: part -> root element, of every part that holds text.
    """

    document: Document
    walk: Walk
    main: str
    roots: dict[str, Any]


def read_places(data: bytes, name: str) -> Reading:
    """Read a document. Raises UnreadableDocument and its subclasses."""
    package = open_package(data, name)
    main = package.main(("document",))
    warnings: list[str] = []
    walk = Walk(package, styles_of(package, main, warnings), warnings=warnings)
    root = package.xml(main)
    roots = {main: root}
    body = root.find(w("body"))
    if body is None:
        raise UnreadableDocument(name, "the document has no body", place=main, remedy="save the file again")
    walk.note("body", main, body)
    nodes = [Node("body", "body", "", {}, Story(walk, main, _links(package, main)).blocks(body, "body"))]
    nodes += _margins(walk, main, root, roots)
    for kind, word in NOTES.items():
        nodes += _notes(walk, main, kind, word, roots)
    nodes += _comments(walk, main, roots)
    _warn(walk, root)
    document = Document("docx", name, tuple(nodes), core_properties(package), tuple(warnings))
    return Reading(document, walk, main, roots)


def _links(package: Package, part: str) -> dict[str, str]:
    return {key: one.target for key, one in package.relationships(part).items() if one.external}


def _open(walk: Walk, part: str, roots: dict[str, Any]) -> Any:
    """Root of a part beside the main one; None with a warning when it is damaged."""
    if part not in roots:
        try:
            roots[part] = walk.package.xml(part)
        except UnreadableDocument as error:
            walk.warnings.append(f"{part} is not read: {error.what}")
            return None
    return roots[part]


def _margins(walk: Walk, main: str, root: Any, roots: dict[str, Any]) -> list[Node]:
    """Headers and footers in the order in which sections refer to them, then those that no section uses."""
    nodes, relations = [], walk.package.relationships(main)
    for reference, word in MARGINS.items():
        uses: dict[str, list[str]] = {}
        for element in root.iter(w(reference)):
            target = relations.get(element.get(f"{{{R}}}id") or "")
            part = walk.package.part_name(target.target) if target is not None else None
            if part is not None:
                kinds = uses.setdefault(part, [])
                kind = element.get(w("type")) or "default"
                kinds += [] if kind in kinds else [kind]
        for part in walk.package.related(main, word):
            uses.setdefault(part, [])
        for number, (part, kinds) in enumerate(uses.items(), start=1):
            if (own := _open(walk, part, roots)) is None:
                continue
            address = walk.note(f"{word}{number}", part, own)
            attributes = {"part": part, "pages": kinds or ["unused"]}
            story = Story(walk, part, _links(walk.package, part))
            nodes.append(Node(word, address, "", attributes, story.blocks(own, address)))
    return nodes


def _notes(walk: Walk, main: str, kind: str, word: str, roots: dict[str, Any]) -> list[Node]:
    nodes = []
    for part in walk.package.related(main, kind)[:1]:
        if (root := _open(walk, part, roots)) is None:
            continue
        story = Story(walk, part, _links(walk.package, part))
        for element in root.iter(w(word)):
            if element.get(w("type")) in (None, "normal"):
                address = walk.note(f"{word}:{element.get(w('id'))}", part, element)
                nodes.append(Node(word, address, "", {}, story.blocks(element, address)))
    return nodes


def _comments(walk: Walk, main: str, roots: dict[str, Any]) -> list[Node]:
    nodes: list[Node] = []
    states = _comment_states(walk, main)
    for part in walk.package.related(main, "comments")[:1]:
        if (root := _open(walk, part, roots)) is None:
            continue
        elements = [one for one in root if local(one) == "comment"]
        by_paragraph = {
            paragraph.get(f"{{{W14}}}paraId"): f"comment:{element.get(w('id'))}"
            for element in elements
            for paragraph in element.iter(w("p"))
        }
        for element in elements:
            comment = element.get(w("id")) or ""
            address = walk.note(f"comment:{comment}", part, element)
            attributes = {key: element.get(w(key)) for key in ("author", "initials", "date") if element.get(w(key))}
            anchor, quoted = walk.anchors.get(comment, ("", ""))
            attributes.update({key: one for key, one in (("anchor", anchor), ("quoted", quoted.strip("\n"))) if one})
            paragraphs = [one.get(f"{{{W14}}}paraId") for one in element.iter(w("p"))]
            for done, parent in (states[one] for one in paragraphs if one in states):
                attributes.update({"resolved": True} if done else {})
                attributes.update({"answers": by_paragraph[parent]} if parent in by_paragraph else {})
            story = Story(walk, part, _links(walk.package, part))
            nodes.append(Node("comment", address, "", attributes, story.blocks(element, address)))
    return nodes


def _comment_states(walk: Walk, main: str) -> dict[str, tuple[bool, str | None]]:
    """Paragraph id of a comment -> whether it is resolved, paragraph id of the comment it answers."""
    states = {}
    for part in walk.package.related(main, "commentsExtended")[:1]:
        try:
            root = walk.package.xml(part)
        except UnreadableDocument:
            continue
        for element in root:
            if local(element) == "commentEx":
                done = element.get(f"{{{W15}}}done") in ("1", "true")
                states[element.get(f"{{{W15}}}paraId") or ""] = (done, element.get(f"{{{W15}}}paraIdParent"))
    return states


def _warn(walk: Walk, root: Any) -> None:
    if walk.num_changes:
        walk.warnings.append(
            f"{walk.num_changes} tracked changes are neither accepted nor rejected; texts show them as accepted"
        )
    if walk.has_hidden_text:
        walk.warnings.append("some text is hidden; runs marked hidden are part of the texts")
