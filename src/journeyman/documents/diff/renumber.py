"""Where the rows, columns, sheets and names of the first workbook lie in the second, and formulas read accordingly."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..xlsx.address import MAX_COLUMN, MAX_ROW, Area, quoted
from ..xlsx.formula import Place, rewritten, tokens
from .align import Alignment


@dataclass(slots=True)
class Axis:
    """Rows or columns, from 1. State: the new position of each that is aligned; what lies behind them shifts along."""

    limit: int
    to: dict[int, int] = field(default_factory=dict)
    kept: list[tuple[int, int]] = field(default_factory=list)
    deleted: list[int] = field(default_factory=list)
    inserted: list[int] = field(default_factory=list)
    moved: list[tuple[int, int]] = field(default_factory=list)
    length: int = 0
    shift: int = 0

    @classmethod
    def of(cls, alignment: Alignment, length_a: int, length_b: int, limit: int) -> Axis:
        """From positions counted from 0."""
        kept = [(i + 1, j + 1) for i, j in alignment.kept]
        moved = [(i + 1, j + 1) for i, j in alignment.moved]
        deleted, inserted = [i + 1 for i in alignment.deleted], [j + 1 for j in alignment.inserted]
        return cls(limit, dict(kept + moved), kept, deleted, inserted, moved, length_a, length_b - length_a)

    @property
    def is_identity(self) -> bool:
        return not self.length

    def inverse(self) -> Axis:
        """From the second workbook to the first."""
        kept, moved = [(j, i) for i, j in self.kept], [(j, i) for i, j in self.moved]
        length = self.length + self.shift
        return Axis(self.limit, dict(kept + moved), kept, self.inserted, self.deleted, moved, length, -self.shift)

    def point(self, position: int) -> int | None:
        """The new position; None for what was deleted."""
        if position > self.length:
            return min(position + self.shift, self.limit)
        return self.to.get(position)

    def span(self, first: int, last: int) -> tuple[int, int] | None:
        """The new outline of an interval: what was inserted inside belongs to it, what was deleted does not."""
        if self.is_identity or (first == 1 and last == self.limit):
            return first, last
        inside = [j for i, j in self.kept if first <= i <= last]
        if last > self.length:
            inside += [max(first, self.length + 1) + self.shift, min(last + self.shift, self.limit)]
        return (min(inside), max(inside)) if inside else None


@dataclass(slots=True)
class SheetMap:
    """One sheet of the first workbook in the second."""

    name: str
    rows: Axis = field(default_factory=lambda: Axis(MAX_ROW))
    columns: Axis = field(default_factory=lambda: Axis(MAX_COLUMN))

    @property
    def is_identity(self) -> bool:
        return self.rows.is_identity and self.columns.is_identity

    def cell(self, row: int, column: int) -> tuple[int, int] | None:
        """The new place of a cell; None for one that was deleted."""
        if self.is_identity:
            return row, column
        new_row, new_column = self.rows.point(row), self.columns.point(column)
        return (new_row, new_column) if new_row and new_column else None

    def area(self, area: Area) -> Area | None:
        """The new outline of an area."""
        if self.is_identity:
            return Area(self.name, area.top, area.left, area.bottom, area.right)
        if area.is_cell:
            place = self.cell(area.top, area.left)
            return Area(self.name, place[0], place[1], place[0], place[1]) if place else None
        rows, columns = self.rows.span(area.top, area.bottom), self.columns.span(area.left, area.right)
        return Area(self.name, rows[0], columns[0], rows[1], columns[1]) if rows and columns else None


@dataclass(slots=True)
class Renumbering:
    """Sheets of the first workbook by lower-case name, and defined names that were renamed (upper case -> new)."""

    sheets: dict[str, SheetMap]
    names: dict[str, str] = field(default_factory=dict)

    def inverse(self) -> Renumbering:
        """From the second workbook to the first. ``#REF!`` has no way back; names keep their spelling."""
        sheets = {
            one.name.lower(): SheetMap(low, one.rows.inverse(), one.columns.inverse())
            for low, one in self.sheets.items()
        }
        return Renumbering(sheets, {new.upper(): old for old, new in self.names.items()})

    def formula(self, formula: str, home: str) -> str:
        """A formula of the first workbook's sheet ``home`` as it reads where everything lies in the second."""
        text = rewritten(formula, lambda place: self._move(place, home))
        if self.names:
            text = "".join(
                self.names.get(token.text.upper(), token.text) if token.kind == "name" else token.text
                for token in tokens(text)
            )
        if any(low != sheet.name.lower() for low, sheet in self.sheets.items()):
            text = "".join(self._local_name(token.text, token.kind) for token in tokens(text))
        return text

    def _local_name(self, text: str, kind: str) -> str:
        sheet, mark, name = text.rpartition("!")
        if kind != "sheetname" or not mark:
            return text
        known = self.sheets.get(sheet.strip("'").lower())
        return f"{quoted(known.name)}!{name}" if known else text

    def _move(self, place: Place, home: str) -> Place | None:
        if ":" in place.sheet:
            ends = [
                self.sheets[one.lower()].name if one.lower() in self.sheets else one for one in place.sheet.split(":")
            ]
            return place._replace(sheet=":".join(ends))
        known = self.sheets.get((place.sheet or home).lower())
        if known is None:
            return place
        moved = known.area(place.area(home)) if not place.is_single else None
        if place.is_single:
            at = known.cell(place.top, place.left)
            if at is None:
                return None
            moved = Area(known.name, at[0], at[1], at[0], at[1])
        if moved is None:
            return None
        return place._replace(
            sheet=known.name if place.sheet else "",
            top=moved.top,
            left=moved.left,
            bottom=moved.bottom,
            right=moved.right,
        )
