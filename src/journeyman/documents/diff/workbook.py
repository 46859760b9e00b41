"""Two workbooks: recalculated, aligned sheet by sheet and row by row, then compared place by place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from ..errors import UnreadableDocument
from ..xlsx.address import MAX_COLUMN, MAX_ROW, Area, cell_address
from ..xlsx.book import Book, Sheet, load
from ..xlsx.graph import HOST, RANDOM, Graph, dependents, volatile
from ..xlsx.recalculation import clock_of, recalculate
from .align import longest_increasing, pair_runs, runs
from .causes import Causes
from .cells import CellPair, Side, block_address, compare_cells, compare_styles, shown, stored
from .entry import DOWNSTREAM, FORMULA, INPUT, STRUCTURE, Diff, Entry
from .features import compare_features, compare_names, renamed_names
from .outline import outline, signatures
from .parts import compare_metadata, compare_parts, compare_workbook_looks
from .renumber import Renumbering

RENAMED = 0.5
"""A sheet was renamed when at least this share of its cells is found in one of another name."""


def diff_workbooks(a: bytes, b: bytes, name_a: str, name_b: str) -> Diff:
    """All differences of two xlsx files. Raises UnreadableDocument when one cannot be read."""
    warnings: list[str] = []
    clock = clock_of(a, name_a)
    first, second = _side(a, name_a, clock, warnings), _side(b, name_b, clock, warnings)
    pairs = _pair_sheets(first.book, second.book)
    maps = {one.name.lower(): outline(one, two, first.book.styles, second.book.styles) for one, two in pairs}
    renumbering = Renumbering(maps, renamed_names(first.book, second.book))
    causes = Causes(Graph(first.book), Graph(second.book))
    entries = [*_sheets(first.book, second.book, pairs, causes)]
    if first.book.epoch != second.book.epoch:
        entries.append(Entry(STRUCTURE, "epoch of dates", "workbook/epoch", first.book.epoch, second.book.epoch))
    for entry in compare_names(first.book, second.book, renumbering):
        entries.append(entry)
        for name in (entry.address, entry.was_at) if entry.what != "name renamed" else ():
            causes.add_name(name.rpartition("!")[2].removeprefix("name:"), entry.address)
    has_moves = any(one.rows.moved or one.columns.moved for one in maps.values())
    is_identity = (
        not renumbering.names
        and all(one.is_identity and low == one.name.lower() for low, one in maps.items())
        and len(pairs) == len(first.book.sheets)
    )
    for one, two in pairs:
        place = maps[one.name.lower()]
        pair = CellPair(first, second, one, two, place, renumbering, renumbering.inverse(), has_moves, is_identity)
        entries += _blocks(pair, causes)
        entries += _cells(pair, causes)
        entries += compare_styles(pair)
        entries += compare_features(one, two, place, renumbering)
    entries += compare_workbook_looks(first.book, second.book)
    entries += compare_parts(first.book.package, second.book.package)
    explained = causes.explain()
    entries = [replace(e, explained_by=explained.get(e.address, ())) if e.kind == DOWNSTREAM else e for e in entries]
    return Diff(tuple(entries), tuple(compare_metadata(first.book.package, second.book.package)), tuple(warnings))


def _side(data: bytes, name: str, clock: datetime, warnings: list[str]) -> Side:
    lost: list[str] = []
    try:
        done = recalculate(data, name, check=None, clock=clock, on_unknown="keep")
        if done.unknown:
            done = recalculate(data, name, clock=clock, on_unknown="keep")
        data, lost = done.data, [address for address, _ in done.unknown]
    except UnreadableDocument as error:
        warnings.append(f"{error}: stored values are compared as they are")
    book = load(data, name)
    unsure = volatile(book, RANDOM | HOST)
    if lost:
        warnings.append(f"{name}: {len(lost)} formulas that no engine calculates, the first is {lost[0]}")
        missing = set(lost)
        places = [
            (sheet.name, row, column)
            for sheet in book.sheets
            for (row, column), cell in sheet.cells.items()
            if cell.formula and cell_address(sheet.name, row, column) in missing
        ]
        unsure |= {(sheet.lower(), row, column) for sheet, row, column in places} | dependents(book, places)
    return Side(book, unsure)


def _pair_sheets(a: Book, b: Book) -> list[tuple[Sheet, Sheet]]:
    """By name, else by content, in the order of the second workbook."""
    second = {sheet.name.lower(): sheet for sheet in b.sheets}
    pairs = [(one, second[one.name.lower()]) for one in a.sheets if one.name.lower() in second]
    used = {two.name for _, two in pairs}
    rest_a = [one for one in a.sheets if one.name.lower() not in second]
    rest_b = [two for two in b.sheets if two.name not in used]
    scored = sorted(
        ((_share(one, two), -abs(i - j), one, two) for i, one in enumerate(rest_a) for j, two in enumerate(rest_b)),
        key=lambda row: (row[0], row[1]),
        reverse=True,
    )
    for share, _, one, two in scored:
        if share >= RENAMED and one in rest_a and two in rest_b:
            pairs.append((one, two))
            rest_a.remove(one)
            rest_b.remove(two)
    order = {sheet.name: n for n, sheet in enumerate(b.sheets)}
    return sorted(pairs, key=lambda pair: order[pair[1].name])


def _share(a: Sheet, b: Sheet) -> float:
    one, two = signatures(a), signatures(b)
    if not one and not two:
        return 0.75 if (a.part == b.part or bool(a.floating) == bool(b.floating)) else 0.5
    equal = sum(1 for place, signature in one.items() if two.get(place) == signature)
    return equal / max(len(one), len(two))


def _sheets(a: Book, b: Book, pairs: list[tuple[Sheet, Sheet]], causes: Causes) -> Iterator[Entry]:
    paired_a, paired_b = {one.name for one, _ in pairs}, {two.name for _, two in pairs}
    for sheet in a.sheets:
        if sheet.name not in paired_a:
            yield Entry(STRUCTURE, "sheet removed", f"sheet:{sheet.name}", {"cells": len(sheet.cells)}, None)
            causes.add_area(f"sheet:{sheet.name}", 0, Area(sheet.name.lower(), 1, 1, MAX_ROW, MAX_COLUMN))
    for sheet in b.sheets:
        if sheet.name not in paired_b:
            yield Entry(STRUCTURE, "sheet added", f"sheet:{sheet.name}", None, {"cells": len(sheet.cells)})
            causes.add_area(f"sheet:{sheet.name}", 1, Area(sheet.name.lower(), 1, 1, MAX_ROW, MAX_COLUMN))
    for one, two in pairs:
        if one.name != two.name:
            yield Entry(STRUCTURE, "sheet renamed", f"sheet:{two.name}", one.name, two.name, f"sheet:{one.name}")
    order = {sheet.name: n for n, sheet in enumerate(one for one in a.sheets if one.name in paired_a)}
    ranks = [order[one.name] for one, _ in pairs]
    stayed = set(longest_increasing(ranks))
    for position, (one, two) in enumerate(pairs):
        if position not in stayed:
            where = f"sheet:{two.name}"
            was_at = "" if one.name == two.name else f"sheet:{one.name}"
            yield Entry(STRUCTURE, "sheet moved", where, a.sheets.index(one) + 1, b.sheets.index(two) + 1, was_at)


def _blocks(pair: CellPair, causes: Causes) -> Iterator[Entry]:
    """Rows and columns inserted, deleted and moved, one entry per block."""
    for axis, word in ((pair.place.rows, "row"), (pair.place.columns, "column")):
        is_rows = word == "row"
        for verb, positions, side in (("deleted", axis.deleted, 0), ("inserted", axis.inserted, 1)):
            sheet = pair.sheet_b if side else pair.sheet_a
            for first, last in runs(positions):
                where = block_address(sheet.name, first, last, is_rows)
                content = _content(sheet, first, last, is_rows)
                state = (None, content) if side else (content, None)
                yield Entry(STRUCTURE, f"{word} {verb}", where, *state)
                causes.add_area(where, side, _block(sheet.name, first, last, is_rows))
        for old, new, count in pair_runs(axis.moved):
            before = block_address(pair.sheet_a.name, old, old + count - 1, is_rows)
            after = block_address(pair.sheet_b.name, new, new + count - 1, is_rows)
            yield Entry(STRUCTURE, f"{word} moved", after, before, after, before)
            causes.add_area(after, 0, _block(pair.sheet_a.name, old, old + count - 1, is_rows))
            causes.add_area(after, 1, _block(pair.sheet_b.name, new, new + count - 1, is_rows))


def _block(sheet: str, first: int, last: int, is_rows: bool) -> Area:
    if is_rows:
        return Area(sheet.lower(), first, 1, last, MAX_COLUMN)
    return Area(sheet.lower(), 1, first, MAX_ROW, last)


def _content(sheet: Sheet, first: int, last: int, is_rows: bool) -> dict[str, object]:
    return {
        cell_address(sheet.name, row, column): shown(cell)
        for (row, column), cell in sorted(sheet.cells.items())
        if first <= (row if is_rows else column) <= last and (cell.formula or stored(cell) is not None)
    }


def _cells(pair: CellPair, causes: Causes) -> Iterator[Entry]:
    low_a, low_b = pair.sheet_a.name.lower(), pair.sheet_b.name.lower()
    for entry, at, to in compare_cells(pair):
        first, second = (low_a, *at) if at else None, (low_b, *to) if to else None
        if entry.kind in (INPUT, FORMULA):
            causes.add_cell(entry.address, first, second)
        elif at and to and first and second:
            formula_a, formula_b = pair.sheet_a.cells[at].formula, pair.sheet_b.cells[to].formula
            causes.add_downstream(entry.address, (first, formula_a), (second, formula_b))
        yield entry
