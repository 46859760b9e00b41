"""Addresses of cells: ``Data!B7``, ``'Cash flow'!A1:C9``, whole rows ``Data!5:6``, whole columns ``Data!C:D``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from ..errors import NoSuchAddress

MAX_ROW, MAX_COLUMN = 1_048_576, 16_384

_CELL = re.compile(r"\$?([A-Za-z]{1,3})\$?([1-9]\d{0,6})")
_ROWS = re.compile(r"\$?([1-9]\d{0,6}):\$?([1-9]\d{0,6})")
_COLUMNS = re.compile(r"\$?([A-Za-z]{1,3}):\$?([A-Za-z]{1,3})")
_PLAIN_SHEET = re.compile(r"[A-Za-z_][\w]*")
_LIKE_A_CELL = re.compile(r"[A-Za-z]{1,3}\d{1,7}|[Rr]\d*[Cc]\d*|[Tt][Rr][Uu][Ee]|[Ff][Aa][Ll][Ss][Ee]")


@dataclass(frozen=True, slots=True)
class Area:
    """A rectangle of cells of one sheet, 1-based and inclusive; whole rows and columns reach the sheet's limits."""

    sheet: str
    top: int
    left: int
    bottom: int
    right: int

    @property
    def is_cell(self) -> bool:
        return self.top == self.bottom and self.left == self.right

    @property
    def is_rows(self) -> bool:
        return self.left == 1 and self.right == MAX_COLUMN

    @property
    def is_columns(self) -> bool:
        return self.top == 1 and self.bottom == MAX_ROW

    def holds(self, row: int, column: int) -> bool:
        """Whether the cell lies inside."""
        return self.top <= row <= self.bottom and self.left <= column <= self.right

    def covers(self, other: Area) -> bool:
        """Whether the whole of ``other`` lies inside."""
        same = self.sheet == other.sheet
        return same and self.holds(other.top, other.left) and self.holds(other.bottom, other.right)

    def __str__(self) -> str:
        return f"{quoted(self.sheet)}!{self.local()}"

    def local(self) -> str:
        """The address without its sheet."""
        if self.is_rows:
            return f"{self.top}:{self.bottom}"
        if self.is_columns:
            return f"{letters(self.left)}:{letters(self.right)}"
        first = f"{letters(self.left)}{self.top}"
        return first if self.is_cell else f"{first}:{letters(self.right)}{self.bottom}"


@cache
def letters(column: int) -> str:
    """1 -> A, 27 -> AA."""
    text = ""
    while column:
        column, rest = divmod(column - 1, 26)
        text = chr(65 + rest) + text
    return text


@cache
def column_of(text: str) -> int:
    """A -> 1, AA -> 27."""
    number = 0
    for letter in text.upper():
        number = number * 26 + ord(letter) - 64
    return number


@cache
def quoted(sheet: str) -> str:
    """A sheet's name as formulas and addresses write it: quoted where it is no plain word."""
    if _PLAIN_SHEET.fullmatch(sheet) and not _LIKE_A_CELL.fullmatch(sheet):
        return sheet
    return "'" + sheet.replace("'", "''") + "'"


def unquoted(sheet: str) -> str:
    """The inverse of ``quoted``."""
    return sheet[1:-1].replace("''", "'") if sheet.startswith("'") and sheet.endswith("'") else sheet


def cell_address(sheet: str, row: int, column: int) -> str:
    """The address of one cell."""
    return f"{quoted(sheet)}!{letters(column)}{row}"


def cell_of(reference: str) -> tuple[int, int]:
    """``B7`` -> (7, 2). Raises ValueError."""
    found = _CELL.fullmatch(reference)
    if not found:
        raise ValueError(f"{reference!r} is no cell")
    return int(found[2]), column_of(found[1])


def area_of(reference: str, sheet: str) -> Area:
    """``B7``, ``A1:C9``, ``5:6`` or ``C:D`` of a sheet. Raises ValueError."""
    if rows := _ROWS.fullmatch(reference):
        top, bottom = sorted((int(rows[1]), int(rows[2])))
        area = Area(sheet, top, 1, bottom, MAX_COLUMN)
    elif columns := _COLUMNS.fullmatch(reference):
        left, right = sorted((column_of(columns[1]), column_of(columns[2])))
        area = Area(sheet, 1, left, MAX_ROW, right)
    else:
        first, _, last = reference.partition(":")
        (row_a, column_a), (row_b, column_b) = cell_of(first), cell_of(last or first)
        area = Area(sheet, min(row_a, row_b), min(column_a, column_b), max(row_a, row_b), max(column_a, column_b))
    if area.bottom > MAX_ROW or area.right > MAX_COLUMN:
        raise ValueError(f"{reference!r} lies outside a sheet")
    return area


def parse(address: str, name: str) -> Area:
    """The area of ``Sheet!B7`` or ``Sheet!A1:C9``.

    Raises:
        NoSuchAddress: it is not written like one.
    """
    sheet, mark, reference = address.rpartition("!")
    try:
        if not mark or not sheet:
            raise ValueError
        return area_of(reference, unquoted(sheet))
    except ValueError:
        raise NoSuchAddress(
            name, f"{address!r} is no address of cells", place=address, remedy="write Sheet!B7 or 'My sheet'!A1:C9"
        ) from None
