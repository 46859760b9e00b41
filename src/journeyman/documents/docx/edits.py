"""Edits of Word documents: what each op does, and what the saved file holds afterwards.

All addresses are looked up before the first change is made, so they are those of the file that was read. Ops:

- ``set`` ``text``: of a paragraph, cell, note or comment; formats of what stays the same are kept.
- ``replace`` ``old`` ``new`` [``count``]: below the address, everywhere without one; also across runs.
- ``insert`` ``text`` [``where``: after, before] [``style``]: a paragraph beside a paragraph or table, or at the end of
  ``body``; ``insert`` ``values`` [``where``]: a row beside a row.
- ``delete``: a paragraph, row, table or comment.
- ``style`` ``style``: the paragraph's style, by name or id.
- ``accept``, ``reject``: a tracked change, or all of them below the address.
- ``redline`` ``new`` ``author`` [``old``] [``date``]: as a tracked change, of the words ``old`` or the whole text.
- ``comment`` ``text`` ``author`` [``quoted``] [``date``]: on a paragraph or words of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..editing import Change, ChangeReport, Edited, changes_of
from ..errors import BadEdit, NoSuchAddress
from ..node import Node
from ..opc import rewritten
from .blocks import Place
from .names import local, w
from .reader import Reading, read_places
from .views import text_below

MAX_ANNOTATION = 2**31 - 1


@dataclass(slots=True)
class Session:
    """One call of ``edit``.

    Attributes:
        reading: the file as it came; its elements are being changed.
        nodes: element -> node as it was read.
        touched: parts whose trees were changed.
    """

    reading: Reading
    nodes: dict[Any, Node]
    touched: set[str] = field(default_factory=set)

    @property
    def name(self) -> str:
        """File name, for messages."""
        return self.reading.document.name

    def place(self, change: Change) -> Place:
        """Where a change applies; without an address the whole body. Raises NoSuchAddress."""
        places = self.reading.walk.places
        if not change.address:
            return places["body"]
        if change.address not in places:
            self.reading.document.find(change.address)
            raise NoSuchAddress(self.name, "nothing that can be edited has this address", place=change.address)
        return places[change.address]

    def next_id(self) -> int:
        """An id that no annotation of the file has."""
        ids = [
            int(one.get(w("id")))
            for root in self.reading.roots.values()
            for one in root.iter()
            if isinstance(one.tag, str) and (one.get(w("id")) or "").isdigit()
        ]
        return max((one for one in ids if one < MAX_ANNOTATION - 1000), default=0) + 1

    def before(self, place: Place) -> str:
        """The text of a place as it was read."""
        node = self.nodes.get(place.element)
        return "" if node is None else str(node.attributes.get("content", "")) or text_below(node)


@dataclass(frozen=True, slots=True)
class Done:
    """What an op did.

    Attributes:
        element: that holds the result, None when it was removed.
        part: of the element.
        before: text that was there, None for nothing.
        note: for the report.
    """

    element: Any
    part: str
    before: str | None
    note: str = ""


Op = Callable[[Session, Change, Place], Done]


def edit(data: bytes, name: str, changes: Sequence[Change | Mapping[str, Any]]) -> Edited:
    """Apply changes; parts that none of them touches keep their bytes. See the module for the ops.

    Raises:
        BadEdit: a change cannot be applied. NoSuchAddress: nothing has its address. UnreadableDocument: as in ``read``.
    """
    from .ops import OPS

    asked = changes_of(changes, name)
    reading = read_places(data, name)
    nodes_by_address = {node.address: node for node in reading.document.walk()}
    nodes = {place.element: nodes_by_address[a] for a, place in reading.walk.places.items() if a in nodes_by_address}
    session = Session(reading, nodes)
    for change in asked:
        change.require(OPS, name)
    places = [session.place(change) for change in asked]
    done = [_apply(session, OPS[change.op], change, place) for change, place in zip(asked, places, strict=True)]
    package, roots = reading.walk.package, reading.roots
    saved = rewritten(package, {part: package.serialised(part, roots[part]) for part in sorted(session.touched)})
    after = _Readback(session, read_places(saved, name))
    reports = [after.report(change, one) for change, one in zip(asked, done, strict=True)]
    return Edited(saved, tuple(reports), after.reading.document.warnings)


def _apply(session: Session, op: Op, change: Change, place: Place) -> Done:
    root = session.reading.roots[place.part]
    if place.element is not root and not any(one is root for one in place.element.iterancestors()):
        raise BadEdit(session.name, "an earlier change of this call removed it", place=change.address)
    try:
        done = op(session, change, place)
    except ValueError as error:
        raise BadEdit(session.name, f"{change.op}: {error}", place=change.address) from error
    if change.address:
        session.touched.add(place.part)
    return done


class _Readback:
    """Finds the elements of an edited tree in the file that was saved from it: by their number in document order."""

    def __init__(self, session: Session, reading: Reading) -> None:
        self.reading = reading
        self.numbers = {part: {one: at for at, one in enumerate(r.iter())} for part, r in session.reading.roots.items()}
        parents = {node.address: node for node in reading.document.walk()}
        self.found: dict[tuple[str, Any], Node] = {
            (place.part, place.element): parents[address]
            for address, place in reading.walk.places.items()
            if address in parents
        }
        self.elements = {part: list(root.iter()) for part, root in reading.roots.items()}

    def report(self, change: Change, done: Done) -> ChangeReport:
        number = None if done.element is None else self.numbers.get(done.part, {}).get(done.element)
        if number is None:
            return ChangeReport(change.op, change.address, done.before, None, done.note)
        node = self.found.get((done.part, self.elements[done.part][number]))
        address = change.address if node is None else node.address
        after = None if node is None else str(node.attributes.get("content", "")) or text_below(node)
        return ChangeReport(change.op, address, done.before, after, done.note)


def paragraphs_below(element: Any) -> list[Any]:
    """The paragraph itself, or all paragraphs in an element, in order."""
    return [element] if local(element) == "p" else list(element.iter(w("p")))
