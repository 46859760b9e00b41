"""The cells of one sheet on both sides: values, formulas, what follows from them, and looks."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ..xlsx.address import Area, area_of, cell_address, letters, quoted
from ..xlsx.book import Book, Sheet
from ..xlsx.cells import Cell
from ..xlsx.dates import serial_of
from ..xlsx.formula import normal, relative
from ..xlsx.styles import is_date
from .entry import DOWNSTREAM, FORMULA, INPUT, STYLE, Entry
from .renumber import Renumbering, SheetMap

TYPED, COMPUTED = 1e-12, 1e-9
"""Relative difference of numbers that counts: writers round the 16th digit, engines the last few."""


MOMENT = 1.2e-8
"""A millisecond in days."""


@dataclass(slots=True)
class Side:
    """One workbook of a comparison; ``unsure`` holds places whose stored value is no evidence, sheets in lower case."""

    book: Book
    unsure: set[tuple[str, int, int]]


@dataclass(slots=True)
class CellPair:
    """One sheet on both sides, and where the first's places lie in the second."""

    first: Side
    second: Side
    sheet_a: Sheet
    sheet_b: Sheet
    place: SheetMap
    renumbering: Renumbering
    back: Renumbering
    has_moves: bool
    is_identity: bool


Found = tuple[Entry, "tuple[int, int] | None", "tuple[int, int] | None"]


def compare_cells(pair: CellPair) -> Iterator[Found]:
    """Entries with the cell's place on each side."""
    inserted_rows, inserted_columns = set(pair.place.rows.inserted), set(pair.place.columns.inserted)
    seen: set[tuple[int, int]] = set()
    for at, cell in pair.sheet_a.cells.items():
        to = pair.place.cell(*at)
        if to is None:
            continue
        seen.add(to)
        other = pair.sheet_b.cells.get(to, _NOTHING)
        if (entry := _compare(pair, at, cell, to, other)) is not None:
            yield entry, at, to
    for to, other in pair.sheet_b.cells.items():
        if to in seen or to[0] in inserted_rows or to[1] in inserted_columns:
            continue
        if other.formula or stored(other) is not None:
            where = cell_address(pair.sheet_b.name, *to)
            kind = FORMULA if other.formula else INPUT
            yield Entry(kind, "cell", where, None, shown(other)), None, to


_NOTHING = Cell()


def _compare(pair: CellPair, at: tuple[int, int], cell: Cell, to: tuple[int, int], other: Cell) -> Entry | None:
    where = cell_address(pair.sheet_b.name, *to)
    old = cell_address(pair.sheet_a.name, *at)
    was_at = "" if old == where else old
    if not cell.formula and not other.formula:
        one, two = stored(cell, pair.first.book.epoch), stored(other, pair.second.book.epoch)
        if same(one, two, TYPED) or _same_moment(pair, cell, other):
            return None
        gone = two is None and at != to
        return Entry(INPUT, "cell", old if gone else where, one, two, "" if gone else was_at)
    if not cell.formula or not other.formula or not same_formula(pair, at, cell, to, other):
        return Entry(FORMULA, "cell", where, shown(cell), shown(other), was_at)
    one, two = stored(cell), stored(other)
    if one is None or two is None or same(one, two, COMPUTED):
        return None
    if (pair.sheet_a.name.lower(), *at) in pair.first.unsure or (pair.sheet_b.name.lower(), *to) in pair.second.unsure:
        return None
    return Entry(DOWNSTREAM, "cell", where, one, two, was_at)


def same_formula(pair: CellPair, at: tuple[int, int], cell: Cell, to: tuple[int, int], other: Cell) -> bool:
    """Equal where everything lies now, read forwards or backwards; a moved cell may also read as a copy would.

    Backwards: a range that lost its first row to a deletion is not changed by it, so it is not by the insertion either.
    """
    home_a, home_b = pair.sheet_a.name, pair.sheet_b.name
    if pair.is_identity and cell.formula == other.formula:
        return True
    expected = cell.formula if pair.is_identity else pair.renumbering.formula(cell.formula, home_a)
    wanted = normal(other.formula, home_b)
    if normal(expected, home_b) == wanted:
        return True
    if not pair.is_identity and normal(pair.back.formula(other.formula, home_b), home_a) == normal(
        cell.formula, home_a
    ):
        return True
    if not pair.has_moves:
        return False
    return normal(cell.formula, home_a) == wanted or (
        relative(cell.formula, home_a, *at) == relative(other.formula, home_b, *to)
    )


def stored(cell: Cell, epoch: int = 1900) -> Any:
    """The value as JSON; None for nothing, ISO dates as serial numbers."""
    if cell.kind == "d":
        try:
            return serial_of(datetime.fromisoformat(str(cell.value).removesuffix("Z")), epoch)
        except ValueError:
            return cell.value
    if cell.kind == "s":
        return str(cell.value).replace("\r\n", "\n") if cell.value else ("" if cell.formula else None)
    return cell.value


def shown(cell: Cell) -> Any:
    """The formula with ``=``, or the value."""
    return f"={cell.formula}" if cell.formula else stored(cell)


def same(one: Any, other: Any, tolerance: float) -> bool:
    """Equal; numbers within a relative tolerance; a boolean is no number."""
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=tolerance, abs_tol=1e-300 if tolerance == TYPED else 1e-12)
    return type(one) is type(other) and one == other


def _same_moment(pair: CellPair, cell: Cell, other: Cell) -> bool:
    """Times of day within a millisecond: writers that know dates as such round to it."""
    if cell.kind != "n" or other.kind != "n" or abs(float(cell.value or 0) - float(other.value or 0)) > MOMENT:
        return False
    return is_date(look(pair.first.book, cell).get("number_format", ""))


def compare_styles(pair: CellPair) -> Iterator[Entry]:
    """Looks of cells; equal changes of adjoining cells are one entry. Inside merged cells only the first one shows."""
    groups: dict[str, list[tuple[int, int]]] = {}
    inserted_rows, inserted_columns = set(pair.place.rows.inserted), set(pair.place.columns.inserted)
    places = {to: at for at in pair.sheet_a.cells if (to := pair.place.cell(*at)) is not None}
    bottom, right = (max(pair.sheet_a.extent[n], pair.sheet_b.extent[n]) for n in (0, 1))
    covered = _covered(pair.sheet_b, bottom, right)
    merged = {(area.top, area.left) for area in map(_area, pair.sheet_b.merged) if area}
    for to in places.keys() | pair.sheet_b.cells.keys():
        if to[0] in inserted_rows or to[1] in inserted_columns or to in covered:
            continue
        cell = pair.sheet_a.cells.get(places[to], _NOTHING) if to in places else _NOTHING
        other = pair.sheet_b.cells.get(to, _NOTHING)
        one, two = look(pair.first.book, cell), look(pair.second.book, other)
        if to in merged:
            one = _framed(pair.first.book, pair.sheet_a, places[to], one) if to in places else one
            two = _framed(pair.second.book, pair.sheet_b, to, two)
        if one != two:
            keys = sorted(key for key in one.keys() | two.keys() if one.get(key) != two.get(key))
            delta = json.dumps([{key: one.get(key) for key in keys}, {key: two.get(key) for key in keys}])
            groups.setdefault(delta, []).append(to)
    for delta, cells in sorted(groups.items(), key=lambda item: min(item[1])):
        before, after = json.loads(delta)
        for top, left, bottom, right in rectangles(cells):
            where = Area(pair.sheet_b.name, top, left, bottom, right)
            yield Entry(STYLE, "cells" if (top, left) != (bottom, right) else "cell", str(where), before, after)


def _area(reference: str) -> Area | None:
    try:
        return area_of(reference, "")
    except ValueError:
        return None


def _framed(book: Book, sheet: Sheet, first: tuple[int, int], style: dict[str, Any]) -> dict[str, Any]:
    """The style of a merged cell with the borders of its outline, whichever of its cells hold them."""
    area = next((a for a in map(_area, sheet.merged) if a and (a.top, a.left) == first), None)
    if area is None:
        return style
    framed = {key: value for key, value in style.items() if key not in ("border_right", "border_bottom")}
    rows, columns = (
        range(area.top, min(area.bottom, area.top + 99) + 1),
        range(area.left, min(area.right, area.left + 99) + 1),
    )
    edges = {"right": [(row, area.right) for row in rows], "bottom": [(area.bottom, column) for column in columns]}
    for side, cells in edges.items():
        lines = [look(book, sheet.cells[at]).get(f"border_{side}") for at in [first, *cells] if at in sheet.cells]
        if line := next((one for one in lines if one), None):
            framed[f"border_{side}"] = line
    return framed


def _covered(sheet: Sheet, bottom: int, right: int) -> set[tuple[int, int]]:
    """Cells under merged ones, as far as either side has cells."""
    found: set[tuple[int, int]] = set()
    for area in map(_area, sheet.merged):
        if area is not None:
            rows, columns = range(area.top, min(area.bottom, bottom) + 1), range(area.left, min(area.right, right) + 1)
            found |= {(row, column) for row in rows for column in columns}
            found.discard((area.top, area.left))
    return found


def look(book: Book, cell: Cell) -> dict[str, Any]:
    """The style of a cell, with its formatted runs of text."""
    style = book.styles[cell.style] if 0 < cell.style < len(book.styles) else {}
    return {**style, "rich_text": cell.rich} if cell.rich else style


def rectangles(cells: list[tuple[int, int]]) -> list[tuple[int, int, int, int]]:
    """Cells as few rectangles (top, left, bottom, right): runs in rows, then equal runs of adjoining rows."""
    by_row: dict[int, list[int]] = {}
    for row, column in sorted(cells):
        by_row.setdefault(row, []).append(column)
    found: list[tuple[int, int, int, int]] = []
    open_: dict[tuple[int, int], int] = {}
    for row, columns in by_row.items():
        fresh: dict[tuple[int, int], int] = {}
        start = previous = columns[0]
        for column in [*columns[1:], 0]:
            if column != previous + 1:
                key = start, previous
                if key in open_ and found[open_[key]][2] == row - 1:
                    index = open_[key]
                    found[index] = (*found[index][:2], row, found[index][3])
                else:
                    index = len(found)
                    found.append((row, start, row, previous))
                fresh[key] = index
                start = column
            previous = column
        open_ = fresh
    return found


def block_address(sheet: str, first: int, last: int, is_rows: bool) -> str:
    """Rows ``Data!5:6`` or columns ``Data!B:C``."""
    span = f"{first}:{last}" if is_rows else f"{letters(first)}:{letters(last)}"
    return f"{quoted(sheet)}!{span}"
