"""What floats over the cells: charts with the ranges they read, images, shapes with text; and comments."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from .address import letters
from .package import Package, Relation, child, children, local, rel_id

_AXES_AND_LOOK = ("plotVisOnly", "dispBlanksAs")


@dataclass(frozen=True, slots=True)
class Floating:
    """One chart, image or shape.

    Attributes:
        kind: ``chart``, ``image`` or ``shape``.
        anchor: cell of the upper left corner, or empty.
        facts: what it is: JSON values. Charts: type, title, series of name, categories and values as ranges.
        part: the part that holds it.
    """

    kind: str
    anchor: str
    facts: dict[str, Any]
    part: str = ""


def read_floating(package: Package, sheet_part: str) -> list[Floating]:
    """Charts, images and shapes of one sheet in drawing order; a part that is absent is left out."""
    found: list[Floating] = []
    for relation in package.relations(sheet_part):
        if relation.kind == "drawing" and relation.target in package:
            links = {one.id: one for one in package.relations(relation.target)}
            for anchor in package.xml(relation.target):
                if local(anchor) == "AlternateContent":
                    anchor = next((one for one in anchor.iter() if local(one).endswith("Anchor")), anchor)
                if local(anchor).endswith("Anchor"):
                    found.extend(_anchored(package, anchor, links))
    return found


def _anchored(package: Package, anchor: Any, links: dict[str, Relation]) -> list[Floating]:
    start = child(anchor, "from")
    place = ""
    if start is not None:
        place = f"{letters(_number(start, 'col') + 1)}{_number(start, 'row') + 1}"
    found: list[Floating] = []
    for element in anchor.iter():
        word = local(element)
        if word == "chart" and (link := links.get(rel_id(element))):
            found.append(_chart(package, link, place))
        elif word == "pic":
            blip = next((one for one in element.iter() if local(one) == "blip"), None)
            link = links.get(rel_id(blip, "embed") or rel_id(blip, "link")) if blip is not None else None
            target = link.target if link else ""
            digest = hashlib.sha256(package.read(target)).hexdigest() if target in package else target
            found.append(Floating("image", place, {"sha256": digest}, target))
        elif word in ("sp", "cxnSp"):
            text = "\n".join(
                "".join(run.text or "" for run in paragraph.iter() if local(run) == "t")
                for paragraph in element.iter()
                if local(paragraph) == "p"
            )
            preset = next((one.get("prst", "") for one in element.iter() if local(one) == "prstGeom"), "")
            found.append(Floating("shape", place, {"text": text, "shape": preset}))
    return found


def _number(element: Any, word: str) -> int:
    one = child(element, word)
    try:
        return int(one.text)
    except (AttributeError, TypeError, ValueError):
        return 0


def _chart(package: Package, link: Relation, place: str) -> Floating:
    if link.target not in package:
        return Floating("chart", place, {"missing": link.target})
    root = package.xml(link.target)
    plot = child(root, "chart", "plotArea")
    kinds: list[str] = []
    series: list[dict[str, str]] = []
    for group in plot if plot is not None else ():
        if local(group).endswith("Chart"):
            direction = child(group, "barDir")
            kinds.append(
                local(group).removesuffix("Chart") + (f" {direction.get('val')}" if direction is not None else "")
            )
            series.extend(_series(one) for one in children(group, "ser"))
    facts: dict[str, Any] = {"type": ", ".join(kinds), "series": series}
    if title := _title(child(root, "chart", "title")):
        facts["title"] = title
    axes = [_title(child(axis, "title")) for axis in (plot if plot is not None else ()) if local(axis).endswith("Ax")]
    if any(axes):
        facts["axes"] = [one for one in axes if one]
    return Floating("chart", place, facts, link.target)


def _series(element: Any) -> dict[str, str]:
    found = {}
    for word, key in (
        ("tx", "name"),
        ("cat", "categories"),
        ("xVal", "categories"),
        ("val", "values"),
        ("yVal", "values"),
        ("bubbleSize", "sizes"),
    ):
        part = child(element, word)
        if part is None:
            continue
        formula = next((one for one in part.iter() if local(one) == "f" and one.text), None)
        if formula is not None:
            found[key] = formula.text
        elif word == "tx" and (literal := child(part, "v")) is not None:
            found[key] = literal.text or ""
    return found


def _title(element: Any) -> str:
    if element is None:
        return ""
    formula = next((one.text for one in element.iter() if local(one) == "f" and one.text), "")
    if formula:
        return f"={formula}"
    return "".join(one.text or "" for one in element.iter() if local(one) == "t")


def chart_formulas(root: Any) -> list[Any]:
    """Elements of a chart part whose text is a range."""
    return [one for one in root.iter() if local(one) == "f" and one.text]


def read_comments(package: Package, sheet_part: str) -> dict[str, list[dict[str, str]]]:
    """Cell -> comments with author and text; a thread replaces the note that old readers see in its place."""
    found: dict[str, list[dict[str, str]]] = {}
    threads: dict[str, list[dict[str, str]]] = {}
    people = _people(package)
    for relation in package.relations(sheet_part):
        if relation.is_external or relation.target not in package:
            continue
        if relation.kind == "comments":
            root = package.xml(relation.target)
            authors = [one.text or "" for one in children(child(root, "authors"), "author")]
            for one in children(child(root, "commentList"), "comment"):
                text = "".join(part.text or "" for part in one.iter() if local(part) == "t")
                index = int(one.get("authorId") or 0)
                author = authors[index] if index < len(authors) else ""
                found.setdefault(one.get("ref", ""), []).append({"author": author, "text": text})
        elif relation.kind == "threadedComment":
            for one in package.xml(relation.target):
                text = child(one, "text")
                author = people.get(one.get("personId", ""), "")
                entry = {"author": author, "text": (text.text or "") if text is not None else ""}
                threads.setdefault(one.get("ref", ""), []).append(entry)
    return {**found, **threads}


def _people(package: Package) -> dict[str, str]:
    part = next((part for part in package if part.startswith("xl/persons/") and part.endswith(".xml")), None)
    if part is None:
        return {}
    return {one.get("id", ""): one.get("displayName", "") for one in package.xml(part) if isinstance(one.tag, str)}
