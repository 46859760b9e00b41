"""Which cell reads which: the direct precedents of each formula, defined names and tables followed."""

from __future__ import annotations

from collections.abc import Iterable

from .address import Area, area_of
from .book import Book
from .formula import functions, names, reads, tokens

Place = tuple[str, int, int]

RANDOM = frozenset({"RAND", "RANDBETWEEN", "RANDARRAY"})
CLOCK = frozenset({"NOW", "TODAY"})
HOST = frozenset({"INFO", "CELL"})
DYNAMIC = frozenset({"INDIRECT", "OFFSET"})
"""Functions whose precedents only evaluation knows."""


class Graph:
    """Precedents of a workbook's formulas, by sheet name in lower case."""

    def __init__(self, book: Book) -> None:
        self._names = {name.upper(): (formula, sheet) for (name, sheet), formula in book.names.items()}
        self._tables: dict[str, Area] = {}
        for sheet in book.sheets:
            for name, facts in sheet.tables.items():
                try:
                    self._tables[name.upper()] = area_of(facts["range"], sheet.name)
                except ValueError:
                    continue
        self._order = [sheet.name.lower() for sheet in book.sheets]

    def precedents(self, formula: str, home: str) -> list[Area]:
        """Areas that a formula on sheet ``home`` reads, through names too; each sheet of a 3-D reference on its own."""
        found: list[Area] = []
        self._collect(formula, home, found, 0)
        return found

    def _collect(self, formula: str, home: str, found: list[Area], depth: int) -> None:
        for area in reads(formula, home):
            if ":" in area.sheet:
                found.extend(
                    Area(sheet, area.top, area.left, area.bottom, area.right) for sheet in self._span(area.sheet)
                )
            else:
                found.append(Area(area.sheet.lower(), area.top, area.left, area.bottom, area.right))
        for name in names(formula):
            if name in self._names and depth < 8:
                inner, scope = self._names[name]
                self._collect(inner, scope or home, found, depth + 1)
        for token in tokens(formula):
            if token.kind == "table":
                table = self._tables.get(token.text.partition("[")[0].upper())
                if table:
                    found.append(Area(table.sheet.lower(), table.top, table.left, table.bottom, table.right))

    def _span(self, sheets: str) -> list[str]:
        first, _, last = sheets.lower().partition(":")
        if first not in self._order or last not in self._order:
            return []
        a, b = sorted((self._order.index(first), self._order.index(last)))
        return self._order[a : b + 1]


class Places:
    """A set of cells that can be asked which of them lie in an area."""

    def __init__(self, places: Iterable[Place]) -> None:
        self._rows: dict[str, dict[int, list[int]]] = {}
        for sheet, row, column in places:
            self._rows.setdefault(sheet.lower(), {}).setdefault(row, []).append(column)

    def within(self, area: Area) -> list[Place]:
        """The members inside; ``area.sheet`` is in lower case."""
        rows = self._rows.get(area.sheet)
        if not rows:
            return []
        if area.bottom - area.top + 1 < len(rows):
            wanted: Iterable[int] = (row for row in range(area.top, area.bottom + 1) if row in rows)
        else:
            wanted = (row for row in rows if area.top <= row <= area.bottom)
        return [(area.sheet, row, c) for row in wanted for c in rows[row] if area.left <= c <= area.right]


def dependents(book: Book, roots: Iterable[Place], graph: Graph | None = None) -> set[Place]:
    """Formula cells that read one of the roots, directly or through others. Sheet names in lower case."""
    graph = graph or Graph(book)
    formulas = [
        ((sheet.name.lower(), row, column), graph.precedents(cell.formula, sheet.name))
        for sheet in book.sheets
        for (row, column), cell in sheet.cells.items()
        if cell.formula
    ]
    reached: set[Place] = set()
    frontier: set[Place] = {(sheet.lower(), row, column) for sheet, row, column in roots}
    while frontier:
        fresh = Places(frontier)
        frontier = {
            place for place, areas in formulas if place not in reached and any(fresh.within(area) for area in areas)
        }
        reached |= frontier
    return reached


def volatile(book: Book, kinds: frozenset[str]) -> set[Place]:
    """Formula cells that call one of the functions, and what reads them. Sheet names in lower case."""
    roots = [
        (sheet.name.lower(), row, column)
        for sheet in book.sheets
        for (row, column), cell in sheet.cells.items()
        if cell.formula and functions(cell.formula) & kinds
    ]
    return {*roots, *dependents(book, roots)} if roots else set()
