"""The cells of one worksheet part, with shared formulas written out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .address import MAX_COLUMN, MAX_ROW, cell_of, column_of
from .formula import Place, rewritten
from .package import local

Value = float | str | bool | None

_REFERENCE = re.compile(r"([A-Za-z]+)([0-9]+)")
_ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")


@dataclass(slots=True)
class Cell:
    """One cell: its stored value (numbers are floats), its formula without ``=``, the index of its style.

    ``kind`` is ``n`` number, ``s`` text, ``b`` boolean, ``e`` error, ``d`` ISO date, or empty when nothing is stored;
    ``rich`` tells formatted runs of text apart; ``array`` is the range of an array formula.
    """

    value: Value = None
    kind: str = ""
    formula: str = ""
    style: int = 0
    rich: str = ""
    array: str = ""


@dataclass(slots=True)
class Text:
    """A shared string: plain text, and a canonical form of its runs when it has formatted ones."""

    text: str
    rich: str = ""


def read_text(element: Any) -> Text:
    """``<si>`` or ``<is>``: phonetic runs are left out."""
    plain, runs, is_rich = [], [], False
    for one in element:
        word = local(one)
        if word == "t":
            plain.append(one.text or "")
            runs.append(one.text or "")
        elif word == "r":
            text = "".join(part.text or "" for part in one if local(part) == "t")
            properties = next((part for part in one if local(part) == "rPr"), ())
            look = sorted(f"{local(p)}={','.join(p.attrib.values())}" for p in properties if local(p) in _LOOK)
            is_rich = is_rich or bool(look)
            plain.append(text)
            runs.append(f"<{' '.join(look)}>{text}")
    text = "".join(plain)
    return Text(_unescaped(text), "".join(runs) if is_rich else "")


_LOOK = ("b", "i", "u", "strike", "color", "vertAlign", "sz", "rFont")


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text) if "_x" in text else text


def read_cells(sheet_data: Any, strings: list[Text]) -> Iterator[tuple[int, int, Cell]]:
    """Row, column and cell in file order; cells without place stand right of the one before."""
    shared: dict[str, tuple[int, int, str]] = {}
    row_number = 0
    for row in sheet_data:
        if local(row) != "row":
            continue
        row_number = int(row.get("r") or row_number + 1)
        column = 0
        for element in row:
            reference = element.get("r")
            if reference:
                found = _REFERENCE.fullmatch(reference)
                column = column_of(found[1]) if found else column + 1
            else:
                column += 1
            cell = _cell(element, strings, shared, row_number, column)
            yield row_number, column, cell


def _cell(element: Any, strings: list[Text], shared: dict[str, tuple[int, int, str]], row: int, column: int) -> Cell:
    kind, style = element.get("t", "n"), element.get("s")
    cell = Cell(style=int(style) if style else 0)
    for one in element:
        word = local(one)
        if word == "v":
            if one.text is not None:
                _set_value(cell, kind, one.text, strings)
            elif kind == "str":
                cell.value, cell.kind = "", "s"
        elif word == "f":
            _set_formula(cell, one, shared, row, column)
        elif word == "is":
            text = read_text(one)
            cell.value, cell.kind, cell.rich = text.text, "s", text.rich
    return cell


def _set_value(cell: Cell, kind: str, raw: str, strings: list[Text]) -> None:
    if kind == "n":
        try:
            cell.value, cell.kind = float(raw), "n"
        except ValueError:
            cell.value, cell.kind = raw, "s"
    elif kind == "s":
        try:
            text = strings[int(raw)]
        except (ValueError, IndexError):
            text = Text("")
        cell.value, cell.kind, cell.rich = text.text, "s", text.rich
    elif kind == "b":
        cell.value, cell.kind = raw.strip() in ("1", "true"), "b"
    elif kind in ("e", "d"):
        cell.value, cell.kind = raw, kind
    else:
        cell.value, cell.kind = _unescaped(raw), "s"


def _set_formula(cell: Cell, one: Any, shared: dict[str, tuple[int, int, str]], row: int, column: int) -> None:
    text, kind = one.text or "", one.get("t")
    if kind == "shared":
        index = one.get("si", "")
        if text:
            shared[index] = (row, column, text)
        elif index in shared:
            top, left, first = shared[index]
            text = moved_formula(first, row - top, column - left)
    elif kind == "array":
        cell.array = one.get("ref", "")
    elif kind == "dataTable":
        text = f"TABLE({one.get('r1', '')},{one.get('r2', '')})"
    cell.formula = text


def moved_formula(formula: str, down: int, across: int) -> str:
    """A formula as it reads after copying its cell: references without ``$`` move along, and wrap at the edges."""

    def move(place: Place) -> Place:
        whole_rows = place.left == 1 and place.right == MAX_COLUMN and not place.is_single
        whole_columns = place.top == 1 and place.bottom == MAX_ROW and not place.is_single
        top, left, bottom, right = place.top, place.left, place.bottom, place.right
        fixed = place.fixed
        if not whole_columns:
            top = top if fixed[0] else _wrapped(top + down, MAX_ROW)
            bottom = bottom if fixed[2] else _wrapped(bottom + down, MAX_ROW)
        if not whole_rows:
            left = left if fixed[1] else _wrapped(left + across, MAX_COLUMN)
            right = right if fixed[3] else _wrapped(right + across, MAX_COLUMN)
        return place._replace(top=top, left=left, bottom=bottom, right=right)

    return rewritten(formula, move)


def _wrapped(number: int, limit: int) -> int:
    return (number - 1) % limit + 1


def references(text: str) -> list[str]:
    """A ``sqref`` as its ranges."""
    return [one for one in text.split() if one]


def first_cell(sqref: str) -> tuple[int, int]:
    """The upper left cell of the first range of a ``sqref``."""
    first = references(sqref)[0].partition(":")[0] if sqref.split() else "A1"
    try:
        return cell_of(first)
    except ValueError:
        return 1, 1
