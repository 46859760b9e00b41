"""Inserted and deleted rows or columns, and where that moves a place, a range or a formula's references."""

from __future__ import annotations

from dataclasses import dataclass

from .address import MAX_COLUMN, MAX_ROW, Area, area_of
from .formula import Place, rewritten


@dataclass(frozen=True, slots=True)
class Shift:
    """``count`` rows (or columns) inserted before position ``at`` of a sheet; negative: deleted from ``at`` on."""

    sheet: str
    is_rows: bool
    at: int
    count: int

    @property
    def limit(self) -> int:
        return MAX_ROW if self.is_rows else MAX_COLUMN

    def point(self, position: int) -> int | None:
        """The new position; None for what was deleted or pushed off the sheet."""
        if position < self.at:
            return position
        if self.count < 0 and position < self.at - self.count:
            return None
        moved = position + self.count
        return moved if moved <= self.limit else None

    def span(self, first: int, last: int) -> tuple[int, int] | None:
        """The new ends of an interval: it grows by what is inserted inside and shrinks by what is deleted."""
        if first == 1 and last == self.limit:
            return first, last
        if self.count > 0:
            top, bottom = self.point(first), self.point(last)
            return (top, bottom or self.limit) if top else None
        end = self.at - self.count
        top = first if first < self.at else max(first, end) + self.count
        bottom = last if last < self.at else max(last, end - 1) + self.count
        return (top, bottom) if top <= bottom else None

    def area(self, area: Area) -> Area | None:
        """The new outline of an area of this sheet."""
        if self.is_rows:
            rows = self.span(area.top, area.bottom)
            return Area(area.sheet, rows[0], area.left, rows[1], area.right) if rows else None
        columns = self.span(area.left, area.right)
        return Area(area.sheet, area.top, columns[0], area.bottom, columns[1]) if columns else None

    def reference(self, reference: str) -> str:
        """``A1:C9`` moved; empty when nothing of it is left. What is no range stays."""
        try:
            moved = self.area(area_of(reference, self.sheet))
        except ValueError:
            return reference
        return moved.local() if moved else ""

    def references(self, sqref: str) -> str:
        """A list of ranges, moved."""
        return " ".join(moved for one in sqref.split() if (moved := self.reference(one)))

    def formula(self, formula: str, home: str) -> str:
        """The formula of a cell on sheet ``home``, with what it reads of this sheet moved."""

        def move(place: Place) -> Place | None:
            if (place.sheet or home).lower() != self.sheet.lower():
                return place
            moved = self.area(place.area(home))
            if moved is None:
                return None
            return place._replace(top=moved.top, left=moved.left, bottom=moved.bottom, right=moved.right)

        return rewritten(formula, move)
