"""A workbook as checks see it: every formula is computed anew, stored values count only where no engine can."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

CLOCK = datetime(2000, 1, 1, tzinfo=UTC)
"""What NOW and TODAY read; no deliverable should depend on it."""

Cell = Any


class Workbook:
    """Values and formulas of one file.

    Args:
        data: the file. Raises UnreadableDocument when it is damaged.
        name: for messages.
    """

    def __init__(self, data: bytes, name: str) -> None:
        from officedocs.xlsx.book import read_book
        from officedocs.xlsx.package import Package

        self.data, self.name = data, name
        self.book = read_book(Package(data, name), is_light=True)
        self.epoch = int(self.book.epoch)
        self._formulas = {
            (sheet.name, row, column): cell.formula
            for sheet in self.book.sheets
            for (row, column), cell in sheet.cells.items()
            if cell.formula
        }
        self._fresh: dict[tuple[str, int, int], tuple[str, Any]] | None = None
        self._engine: Any = None  # a copy for perturbations, as the file says, between two of them

    @property
    def sheets(self) -> list[str]:
        """Names in order."""
        return [sheet.name for sheet in self.book.sheets]

    def sheet(self, name: str) -> Any:
        """The sheet of this name, in any case; None where there is none."""
        return self.book.sheet(name)

    def fresh(self) -> dict[tuple[str, int, int], tuple[str, Any]]:
        """(kind, value) of every formula, computed once."""
        if self._fresh is None:
            self._fresh = _computed(self.data, sorted(self._formulas), self.epoch) if self._formulas else {}
        return self._fresh

    def value(self, address: str) -> Any:
        """The value of ``Sheet!B7``: number, text, boolean, None for nothing, ``#...`` for an error."""
        sheet, row, column = self.place(address)
        return None if sheet is None else self.at(sheet, row, column)

    def at(self, sheet: str, row: int, column: int) -> Any:
        """The value of a cell by row and column from 1."""
        found = self.book.sheet(sheet)
        cell = None if found is None else found.cells.get((row, column))
        return None if cell is None else self._shown(found.name, row, column, cell)

    def _shown(self, sheet: str, row: int, column: int, cell: Cell) -> Any:
        """The value of a cell: a formula's fresh one, where an engine knows it."""
        if not cell.formula:
            return cell.value
        kind, value = self.fresh().get((sheet, row, column), ("?", ""))
        is_unknown = kind == "?" or (value == "#NAME?" and cell.kind not in ("", "e"))
        return cell.value if is_unknown else value

    def formula(self, address: str) -> str:
        """The formula of a cell without ``=``; empty for none."""
        sheet, row, column = self.place(address)
        return "" if sheet is None else str(self._formulas.get((sheet, row, column), ""))

    def place(self, address: str) -> tuple[str | None, int, int]:
        """Sheet as written, row and column of an address; the sheet is None where there is none."""
        from officedocs.xlsx.address import parse

        area = parse(address, self.name)
        found = self.book.sheet(area.sheet)
        return (None if found is None else str(found.name)), area.top, area.left

    def cells(self, area_address: str) -> list[tuple[str, str, int, int]]:
        """(address, sheet, row, column) of every cell of ``Sheet!A1:C9``."""
        from officedocs.xlsx.address import cell_address, parse

        area = parse(area_address, self.name)
        return [
            (cell_address(area.sheet, row, column), area.sheet, row, column)
            for row in range(area.top, area.bottom + 1)
            for column in range(area.left, area.right + 1)
        ]

    def errors(self) -> list[str]:
        """Addresses of cells that show an error."""
        from officedocs.xlsx.address import cell_address

        found = [cell_address(*place) for place, (kind, _) in self.fresh().items() if kind == "e"]
        for sheet in self.book.sheets:
            found += [
                cell_address(sheet.name, row, column)
                for (row, column), cell in sheet.cells.items()
                if cell.kind == "e" and not cell.formula
            ]
        return found

    def grid(self, sheet: str) -> list[list[Any]]:
        """All values of a sheet, rows from 1."""
        found = self.book.sheet(sheet)
        if found is None:
            return []
        bottom, right = found.extent
        rows: list[list[Any]] = [[None] * min(right, 200) for _ in range(min(bottom, 20_000))]
        for (row, column), cell in found.cells.items():
            if row <= len(rows) and column <= 200:
                rows[row - 1][column - 1] = self._shown(found.name, row, column, cell)
        return rows

    def perturbed(self, changes: dict[str, Any], wanted: list[str]) -> dict[str, Any]:
        """Values of some cells after other cells were given new values and everything was computed anew.

        Raises:
            ValueError: the engine cannot load the workbook.
        """
        book, self._engine = self._engine or self._loaded(), None
        before: list[tuple[str, int, int, Any]] | None = []
        for address, value in changes.items():
            sheet, row, column = self.place(address)
            if sheet is None:
                raise ValueError(f"no sheet of {address}")
            cell = self.book.sheet(sheet).cells.get((row, column))
            if before is not None and cell is not None and cell.kind == "n" and not cell.formula:
                before.append((sheet, row, column, cell.value))
            else:  # what cannot be put back as it was ends this copy
                before = None
            book.set_value(sheet, row, column, value)
        try:
            book.evaluate_all()
        except Exception as error:  # a reference that the engine gives up on is the deliverable's
            raise ValueError(f"computing stopped: {error}") from error
        found: dict[str, Any] = {}
        for address in wanted:
            sheet, row, column = self.place(address)
            value = None if sheet is None else book.get_value(sheet, row, column)
            found[address] = f"#{value.get('kind')}" if isinstance(value, dict) else value
        if before is not None:
            for sheet, row, column, value in before:
                book.set_value(sheet, row, column, value)
            self._engine = book
        return found

    def _loaded(self) -> Any:
        """A copy in the engine. Raises ValueError."""
        from officedocs.xlsx.engines.embedded import loaded

        return loaded(self.data, CLOCK)


def _computed(data: bytes, cells: list[tuple[str, int, int]], epoch: int) -> dict[tuple[str, int, int], Any]:
    """By the first engine; cells whose function it does not know keep ``?`` and so their stored value."""
    from officedocs.xlsx.engines import engine

    first = engine("formualizer")
    try:
        found: dict[tuple[str, int, int], Any] = first.evaluate(data, cells, CLOCK, epoch)
    except ValueError:
        return dict.fromkeys(cells, ("?", ""))
    return found
