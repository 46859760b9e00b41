"""Edits of presentations: what each op does, and what the saved file holds afterwards.

All addresses are looked up before the first change is made, so they are those of the file that was read. Ops:

- ``set`` ``text``: of a shape, cell, notes page or diagram entry, one paragraph per line, formats kept; ``set``
  ``values`` [``categories``] [``name``]: of a series, in the chart and in its workbook; ``set`` ``hidden``: of a slide.
- ``replace`` ``old`` ``new`` [``count``]: below the address, on all slides without one; also across runs.
- ``place`` [``x_pt``] [``y_pt``] [``width_pt``] [``height_pt``]: of a shape.
- ``insert`` ``layout`` [``title``] [``text``] [``where``: after, before]: a slide beside a slide, last without address.
- ``duplicate``, ``delete``: a slide; ``delete`` also a shape. ``move`` ``to``: a slide to a position from 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..container import relationships_part
from ..editing import Change, ChangeReport, Edited, changes_of
from ..errors import BadEdit, MissingPart, NoSuchAddress
from ..node import Document, Node
from ..opc import Package, rewritten
from .reader import Reading, read_places
from .shapes import Place

TYPES_PART = "[Content_Types].xml"
TYPES_NS = "http://schemas.openxmlformats.org/package/2006/content-types"


@dataclass(slots=True)
class Session:
    """One call of ``edit``.

    Attributes:
        reading: the file as it came; its trees are being changed.
        changed: part -> tree or bytes to write, None for a part to remove.
    """

    reading: Reading
    changed: dict[str, Any] = field(default_factory=dict)

    @property
    def package(self) -> Package:
        """The container."""
        return self.reading.walk.package

    @property
    def main(self) -> str:
        """Name of the presentation part."""
        return self.reading.main

    @property
    def document(self) -> Document:
        """The tree as it was read."""
        return self.reading.document

    def root(self, part: str) -> Any:
        """Root of a part, read when first asked for. Raises UnreadableDocument."""
        if part not in self.reading.walk.roots:
            self.reading.walk.roots[part] = self.package.xml(part)
        return self.reading.walk.roots[part]

    def edited_root(self, part: str) -> Any:
        """Root of a part that this call has changed, else None."""
        return self.reading.walk.roots.get(part) if part in self.changed else None

    def touch(self, *parts: str) -> None:
        """Mark parts whose trees were changed."""
        for part in parts:
            self.changed[part] = self.root(part)

    def put(self, part: str, content: Any) -> None:
        """Set a new part to a tree or to bytes."""
        self.changed[part] = content

    def new_part(self, stem: str, suffix: str, content_type: str) -> str:
        """A free part name with its content type declared."""
        from lxml import etree

        at = 1
        while self.package.part_name(f"{stem}{at}{suffix}") or f"{stem}{at}{suffix}" in self.changed:
            at += 1
        part = f"{stem}{at}{suffix}"
        self.changed[part] = b""
        if content_type:
            override = etree.SubElement(self.root(TYPES_PART), f"{{{TYPES_NS}}}Override")
            override.set("PartName", f"/{part}")
            override.set("ContentType", content_type)
            self.touch(TYPES_PART)
        return part

    def content_type(self, part: str) -> str:
        """The declared type of a part, empty where its suffix decides."""
        overrides = self.root(TYPES_PART).iter(f"{{{TYPES_NS}}}Override")
        wanted = f"/{part}".lower()
        return next(
            (one.get("ContentType") or "" for one in overrides if (one.get("PartName") or "").lower() == wanted), ""
        )

    def drop(self, part: str) -> None:
        """Remove a part with its relationships and its content type."""
        types = self.root(TYPES_PART)
        wanted = f"/{part}".lower()
        for one in [one for one in types if (one.get("PartName") or "").lower() == wanted]:
            types.remove(one)
        self.touch(TYPES_PART)
        self.changed[part] = None
        if self.package.part_name(relationships_part(part)):
            self.changed[relationships_part(part)] = None

    def saved(self) -> bytes:
        """The container with what was changed."""
        contents = {
            part: one if one is None or isinstance(one, bytes) else self.package.serialised(part, one)
            for part, one in self.changed.items()
        }
        return rewritten(self.package, contents)


@dataclass(frozen=True, slots=True)
class Done:
    """What an op did.

    Attributes:
        slide_id: of the slide that holds the result, None when the slide was removed or none is meant.
        rest: address within the slide, empty for the slide; None when the place was removed.
        before: JSON value that was there, None for nothing.
        note: for the report.
    """

    slide_id: int | None
    rest: str | None
    before: Any
    note: str = ""


Op = Callable[[Session, Change, Place | None], Done]


def edit(data: bytes, name: str, changes: Sequence[Change | Mapping[str, Any]]) -> Edited:
    """Apply changes; parts that none of them touches keep their bytes. See the module for the ops.

    Raises:
        BadEdit: a change cannot be applied. NoSuchAddress: nothing has its address. UnreadableDocument: as in ``read``.
    """
    from .ops import OPS

    asked = changes_of(changes, name)
    session = Session(read_places(data, name))
    for change in asked:
        change.require(OPS, name)
    places = [_place(session, change) for change in asked]
    done = [_apply(session, OPS[change.op], change, place) for change, place in zip(asked, places, strict=True)]
    saved = session.saved()
    after = read_places(saved, name).document
    reports = [_report(after, change, one) for change, one in zip(asked, done, strict=True)]
    return Edited(saved, tuple(reports), after.warnings)


def state(node: Node) -> Any:
    """What a report shows of a place: a series' values, a slide's title and texts, else the text."""
    if node.kind == "series":
        return {"name": node.text, "values": node.attributes.get("values", [])}
    texts = [one.text for one in Document("pptx", "", (node,)).walk() if one.text]
    return "\n".join(texts)


def frame_of(node: Node) -> dict[str, Any]:
    """Position and size of a shape, as far as they are its own."""
    keys = ("x_pt", "y_pt", "width_pt", "height_pt")
    return {key: node.attributes[key] for key in keys if key in node.attributes}


def _place(session: Session, change: Change) -> Place | None:
    if not change.address:
        return None
    found = session.reading.walk.places.get(change.address)
    if found is None:
        session.document.find(change.address)
        raise NoSuchAddress(session.document.name, "nothing that can be edited has this address", place=change.address)
    return found


def _apply(session: Session, op: Op, change: Change, place: Place | None) -> Done:
    name = session.document.name
    if place is not None:
        root = session.root(place.part)
        gone = place.element is not root and not any(one is root for one in place.element.iterancestors())
        if gone or session.changed.get(place.slide, b"") is None:
            raise BadEdit(name, "an earlier change of this call removed it", place=change.address)
    try:
        return op(session, change, place)
    except (ValueError, MissingPart) as error:
        raise BadEdit(name, f"{change.op}: {error}", place=change.address) from error


def _report(after: Document, change: Change, done: Done) -> ChangeReport:
    slide = next((one for one in after.nodes if one.attributes["slide_id"] == done.slide_id), None)
    if slide is None or done.rest is None:
        return ChangeReport(change.op, change.address, done.before, None, done.note)
    node = after.find(f"{slide.address}{done.rest}")
    after_state = frame_of(node) if change.op == "place" else state(node)
    return ChangeReport(change.op, node.address, done.before, after_state, done.note)
