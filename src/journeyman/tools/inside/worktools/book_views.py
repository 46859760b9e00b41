"""Workbook trees as grids: values with their place, filters over them, and the text that shows them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .workspace import Refused

_RANGE = re.compile(r"\$?([A-Za-z]{1,3})\$?(\d{1,7})(?::\$?([A-Za-z]{1,3})\$?(\d{1,7}))?")
MAX_CELLS = 400_000
"""Cells of a grid that is laid out; a wider range is refused."""


@dataclass(frozen=True)
class Grid:
    """A rectangle of cells.

    Attributes:
        first_row, first_column: of the sheet, from 1.
        rows: values, None for empty cells.
        formulas: address in the sheet -> formula.
        used: the sheet's used range.
    """

    first_row: int
    first_column: int
    rows: Sequence[list[Any]]
    formulas: Mapping[str, str]
    used: str = ""

    @property
    def num_columns(self) -> int:
        """Columns of the widest row."""
        return max((len(row) for row in self.rows), default=0)


def letters(column: int) -> str:
    """``A`` for 1, ``AA`` for 27."""
    text = ""
    while column > 0:
        column, rest = divmod(column - 1, 26)
        text = chr(65 + rest) + text
    return text


def number(word: str) -> int:
    """The inverse of ``letters``."""
    total = 0
    for one in word.upper():
        total = total * 26 + ord(one) - 64
    return total


def corners(text: str) -> tuple[int, int, int, int]:
    """(first row, first column, last row, last column) of ``A1:C10`` or ``B7``. Raises Refused."""
    match = _RANGE.fullmatch(text.rpartition("!")[2].strip())
    if match is None:
        raise Refused(f"{text!r} is no range; write it like A1:C10")
    first = int(match[2]), number(match[1])
    last = (int(match[4]), number(match[3])) if match[3] else first
    if min(first) < 1 or max(first[1], last[1]) > 16_384 or max(first[0], last[0]) > 1_048_576:
        raise Refused(f"{text!r} lies outside a sheet")
    return min(first[0], last[0]), min(first[1], last[1]), max(first[0], last[0]), max(first[1], last[1])


def sheets_of(document: Any) -> list[Any]:
    """The tabs of a workbook's tree, in order."""
    return [node for node in document.nodes if node.kind == "sheet"]


def value_of(cell: Any) -> Any:
    """A cell's value as a JSON value: numbers and truth values as such, dates and errors as text."""
    value = cell.attributes.get("value")
    if cell.attributes.get("type") in ("number", "boolean") and value is not None:
        return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 1e15 else value
    return cell.text or None


def grid_of(tab: Any, cell_range: str | None = None) -> Grid:
    """The cells of a range, by default of the used one. Raises Refused for a bad range."""
    used = str(tab.attributes.get("used") or "")
    wanted = cell_range or used
    if not wanted:
        return Grid(1, 1, [], {}, used)
    top, left, bottom, right = corners(wanted)
    if used:  # what lies beyond is empty
        _, _, last_row, last_column = corners(used)
        bottom, right = min(bottom, max(last_row, top)), min(right, max(last_column, left))
    if (bottom - top + 1) * (right - left + 1) > MAX_CELLS:
        raise Refused(f"{wanted} has more than {MAX_CELLS} cells; read it in parts")
    rows: list[list[Any]] = [[None] * (right - left + 1) for _ in range(bottom - top + 1)]
    formulas = {}
    for row in tab.children:
        if row.kind != "row":
            continue
        for cell in row.children:
            place = cell.address.rpartition("!")[2]
            match = _RANGE.fullmatch(place)
            if match is None:
                continue
            at_row, at_column = int(match[2]), number(match[1])
            if top <= at_row <= bottom and left <= at_column <= right:
                rows[at_row - top][at_column - left] = value_of(cell)
                if cell.attributes.get("formula"):
                    formulas[place] = str(cell.attributes["formula"])
    return Grid(top, left, rows, formulas, used)


def shown_grid(grid: Grid, tab: str, *, formulas: bool, max_rows: int, max_cols: int, compact: bool = False) -> str:
    """A line of facts, then one line a row; formulas as ``value {=formula}``."""
    columns = min(grid.num_columns, max_cols)
    rows = grid.rows[:max_rows]
    facts = {
        "tab": tab,
        "used": grid.used,
        "columns": f"{letters(grid.first_column)}:{letters(grid.first_column + max(columns, 1) - 1)}",
        "rows_left_out": len(grid.rows) - len(rows),
        "columns_left_out": grid.num_columns - columns,
    }
    lines = []
    for at, row in enumerate(rows):
        cells = [
            _with_formula(value, grid, at, column) if formulas else value for column, value in enumerate(row[:columns])
        ]
        if compact:
            lines.append("\t".join("" if one is None else str(one) for one in cells))
        elif any(one is not None for one in cells):
            lines.append(f"{grid.first_row + at}: {json.dumps(cells, ensure_ascii=False)}")
    return "\n".join([json.dumps({k: v for k, v in facts.items() if v}, ensure_ascii=False), *lines])


def _with_formula(value: Any, grid: Grid, row: int, column: int) -> Any:
    formula = grid.formulas.get(f"{letters(grid.first_column + column)}{grid.first_row + row}")
    return value if formula is None else f"{'' if value is None else value} {{{formula}}}"


def passes(value: Any, condition: Mapping[str, Any]) -> bool:
    """Whether a cell passes a filter: numbers by value, texts without regard to capitals."""
    operator, wanted = condition["operator"], condition.get("value")
    is_empty = value is None or value == ""
    if operator in ("is_empty", "is_not_empty"):
        return bool(is_empty == (operator == "is_empty"))
    left, right = _numeric(value), _numeric(wanted)
    if operator in ("greater_than", "greater_than_or_equal", "less_than", "less_than_or_equal"):
        if left is None or right is None:
            return False
        verdicts: dict[str, bool] = {
            "greater_than": left > right,
            "greater_than_or_equal": left >= right,
            "less_than": left < right,
            "less_than_or_equal": left <= right,
        }
        return verdicts[str(operator)]
    text, word = _folded(value), _folded(wanted)
    equal = left == right if left is not None and right is not None else text == word
    results = {
        "equals": equal,
        "not_equals": not equal,
        "contains": word in text,
        "not_contains": word not in text,
        "starts_with": text.startswith(word),
        "ends_with": text.endswith(word),
    }
    return bool(results[str(operator)])


def _folded(value: Any) -> str:
    return "" if value is None else str(value).strip().casefold()


def _numeric(value: Any) -> float | None:
    if isinstance(value, bool) or value is None:
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        return None
