"""Formulas as tokens: normal form, R1C1 form, the places they read, and rewriting when rows or sheets move.

Nothing is evaluated here. A formula is text without its ``=``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple

from .address import MAX_COLUMN, MAX_ROW, Area, column_of, letters, quoted, unquoted

_SHEET = r"(?P<sheet>'(?:[^']|'')+'|(?:\[\d+\])?[^\W\d][\w.]*(?::[^\W\d][\w.]*)?|\[\d+\][\w. ]*)!"
_CELL = r"\$?[A-Za-z]{1,3}\$?[1-9][0-9]{0,6}"
_PLACE = rf"{_CELL}:{_CELL}|{_CELL}|\$?[A-Za-z]{{1,3}}:\$?[A-Za-z]{{1,3}}|\$?[1-9][0-9]{{0,6}}:\$?[1-9][0-9]{{0,6}}"
_TOKEN = re.compile(
    rf"""(?P<string>"(?:[^"]|"")*")
    |(?:{_SHEET})?(?:(?P<place>{_PLACE})(?![\w.(!:\[])|(?P<lost>\#REF!)|(?P<sheetname>(?<=!)[^\W\d][\w.\\]*(?!\()))
    |(?P<error>\#(?:DIV/0!|N/A|NAME\?|NULL!|NUM!|VALUE!|SPILL!|CALC!))
    |(?P<function>[^\W\d][\w.]*)(?=\()
    |(?P<table>(?:[^\W\d][\w.]*)?\[(?:[^\[\]]|\[(?:[^\[\]]|\[[^\[\]]*\])*\])*\])
    |(?P<name>[^\W\d][\w.\\?]*)
    |(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
    |(?P<space>\s+)
    |(?P<other><=|>=|<>|.)""",
    re.VERBOSE | re.DOTALL,
)
_CORNER = re.compile(r"(\$?)([A-Za-z]{1,3})?(\$?)([1-9]\d*)?")
_PREFIX = re.compile(r"^(?:_xlfn\.|_xlws\.|_xlpm\.|_xludf\.)+", re.IGNORECASE)
_OPENS, _CLOSES = {"place", "name", "function", "table", "sheetname"}, {"place", "name", "table", "sheetname"}


class Place(NamedTuple):
    """A reference as written: ``sheet`` is empty for the formula's own; ``fixed`` marks ``$`` of the four edges."""

    sheet: str
    top: int
    left: int
    bottom: int
    right: int
    fixed: tuple[bool, bool, bool, bool]
    is_single: bool

    def text(self) -> str:
        """As a formula writes it."""
        before = f"{_sheet_text(self.sheet)}!" if self.sheet else ""
        top, left, bottom, right = ("$" if one else "" for one in self.fixed)
        if self.left == 1 and self.right == MAX_COLUMN and not self.is_single:
            return f"{before}{top}{self.top}:{bottom}{self.bottom}"
        if self.top == 1 and self.bottom == MAX_ROW and not self.is_single:
            return f"{before}{left}{letters(self.left)}:{right}{letters(self.right)}"
        first = f"{left}{letters(self.left)}{top}{self.top}"
        return before + (first if self.is_single else f"{first}:{right}{letters(self.right)}{bottom}{self.bottom}")

    def area(self, home: str) -> Area:
        """The cells it names, for a formula that stands on sheet ``home``."""
        return Area(self.sheet or home, self.top, self.left, self.bottom, self.right)


class Token(NamedTuple):
    """One piece: ``kind`` is a group of the pattern, ``place`` is set for references."""

    kind: str
    text: str
    place: Place | None = None
    sheet: str = ""


Move = Callable[[Place], "Place | None"]


@lru_cache(maxsize=65536)
def tokens(formula: str) -> tuple[Token, ...]:
    """The formula in pieces; joined texts give the formula back."""
    found = []
    for match in _TOKEN.finditer(formula):
        kind, sheet = str(match.lastgroup), match["sheet"] or ""
        if kind == "place":
            place = _place(match["place"], unquoted(sheet) if sheet else "")
            found.append(Token(kind, match[0], place, sheet))
        else:
            found.append(Token(kind, match[0], None, sheet))
    return tuple(found)


def _place(text: str, sheet: str) -> Place:
    first, _, last = text.partition(":")
    a, b = _CORNER.fullmatch(first), _CORNER.fullmatch(last or first)
    assert a and b
    top, bottom = int(a[4] or 1), int(b[4] or MAX_ROW)
    left, right = column_of(a[2]) if a[2] else 1, column_of(b[2]) if b[2] else MAX_COLUMN
    if a[2]:
        fixed = (bool(a[3]), bool(a[1]), bool(b[3]), bool(b[1]))
    else:
        fixed = (bool(a[1]), False, bool(b[1]), False)
    if top > bottom:
        top, bottom, fixed = bottom, top, (fixed[2], fixed[1], fixed[0], fixed[3])
    if left > right:
        left, right, fixed = right, left, (fixed[0], fixed[3], fixed[2], fixed[1])
    return Place(sheet, top, left, bottom, right, fixed, not last)


def _sheet_text(sheet: str) -> str:
    """Sheets of other workbooks and spans of sheets keep their brackets and colons inside the quotes."""
    plain = re.fullmatch(r"(?:\[\d+\])?\w+(?::\w+)?", sheet)
    return sheet if plain and (sheet.startswith("[") or ":" in sheet) else quoted(sheet)


@lru_cache(maxsize=65536)
def normal(formula: str, home: str = "") -> str:
    """One text for all spellings: case, blanks, ``$``, quotes, prefixes, the own sheet's name and digits of numbers.

    Args:
        formula: without ``=``.
        home: the sheet it stands on, so that ``Data!A1`` on ``Data`` equals ``A1``.
    """
    return _joined(formula, lambda place: _loose(place, home))


@lru_cache(maxsize=65536)
def relative(formula: str, home: str, row: int, column: int) -> str:
    """The normal form with references as offsets from their cell (R1C1), so that a copied formula stays equal.

    References without ``$`` are offsets; with ``$`` they stay absolute.
    """

    def offset(place: Place) -> str:
        before = f"{_sheet_text(place.sheet).upper()}!" if place.sheet and place.sheet.upper() != home.upper() else ""
        edges = ((place.top, place.left, place.fixed[:2]), (place.bottom, place.right, place.fixed[2:]))
        corners = []
        for down, across, (row_fixed, column_fixed) in edges[: 1 if place.is_single else 2]:
            r = f"R{down}" if row_fixed or (down in (1, MAX_ROW) and place.bottom == MAX_ROW) else f"R[{down - row}]"
            c = f"C{across}" if column_fixed or place.right == MAX_COLUMN else f"C[{across - column}]"
            corners.append(r + c)
        return before + ":".join(corners)

    return _joined(formula, offset)


@lru_cache(maxsize=65536)
def skeleton(formula: str) -> str:
    """The normal form with every reference masked: equal for a formula and its shifted copies."""
    return _joined(formula, lambda place: "@")


def _loose(place: Place, home: str) -> str:
    sheet = "" if place.sheet.upper() == home.upper() else place.sheet.upper()
    return place._replace(sheet=sheet, fixed=(False,) * 4).text()


def _joined(formula: str, place_text: Callable[[Place], str]) -> str:
    pieces: list[str] = []
    before, gap = "", False
    for token in tokens(formula):
        if token.kind == "space":
            gap = True
            continue
        if gap and (before in _CLOSES or before == ")") and (token.kind in _OPENS or token.text == "("):
            pieces.append(" ")  # the intersection operator
        pieces.append(_piece(token, place_text))
        before, gap = token.text if token.text == ")" else token.kind, False
    return "".join(pieces)


def _piece(token: Token, place_text: Callable[[Place], str]) -> str:
    if token.place is not None:
        return place_text(token.place)
    if token.kind == "function":
        return _PREFIX.sub("", token.text).upper()
    if token.kind == "number":
        return repr(float(token.text)).removesuffix(".0")
    if token.kind == "name":
        return _PREFIX.sub("", token.text).upper()
    return token.text if token.kind == "string" else token.text.upper()


def rewritten(formula: str, move: Move) -> str:
    """The formula with each reference replaced by ``move``; None becomes ``#REF!``. Everything else stays as typed."""
    pieces = []
    for token in tokens(formula):
        if token.place is None:
            pieces.append(token.text)
            continue
        moved = move(token.place)
        if moved is None:
            pieces.append("#REF!")
        else:
            pieces.append(token.text if moved == token.place else moved.text())
    return "".join(pieces)


def renamed_sheet(formula: str, old: str, new: str) -> str:
    """The formula with sheet ``old`` called ``new``, in references and in sheet-local names."""
    pieces = []
    for token in tokens(formula):
        if token.sheet and unquoted(token.sheet).lower() == old.lower():
            pieces.append(f"{quoted(new)}!{token.text[len(token.sheet) + 1 :]}")
        else:
            pieces.append(token.text)
    return "".join(pieces)


def functions(formula: str) -> set[str]:
    """Names of the functions it calls, without prefixes, in capitals."""
    return {_PREFIX.sub("", token.text).upper() for token in tokens(formula) if token.kind == "function"}


def reads(formula: str, home: str) -> Iterator[Area]:
    """The areas it names directly; defined names and tables are not followed."""
    for token in tokens(formula):
        if token.place is not None:
            yield token.place.area(home)


def names(formula: str) -> set[str]:
    """Defined names it uses, in capitals."""
    return {token.text.rpartition("!")[2].upper() for token in tokens(formula) if token.kind in ("name", "sheetname")}
