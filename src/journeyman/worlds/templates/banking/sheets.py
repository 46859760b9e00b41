"""Sheets of the data room as rows of values, read with the agent's tool, and letters of columns."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from journeyman.worlds.template import Lost
from journeyman.worlds.templates import reading

ROWS_PER_LOOK = 120
"""Rows of a sheet per call, below what one answer shows."""

_USED = re.compile(r'"used": "[A-Z]+\d+:([A-Z]+)(\d+)"')
_ROW = re.compile(r"^(\d+): (\[.*\])$", re.MULTILINE)


def sheet_rows(path: str, index: int = 0, *, formulas: bool = False) -> reading.Reading:
    """Row number -> its values, of a whole sheet, a look at a time; with ``formulas``, a formula is its text."""
    rows: dict[int, list[Any]] = {}
    first, last = 1, 1
    while first <= last:
        cells = f"A{first}:AZ{first + ROWS_PER_LOOK - 1}" if first > 1 else ""
        text = yield from reading.tab(path, index, cells, formulas=formulas)
        used = _USED.search(text)
        if used is None:
            raise Lost(f"no sheet {index} in {path}")
        last = int(used[2])
        found = {int(match[1]): json.loads(match[2]) for match in _ROW.finditer(text)}
        rows |= found
        first = max(found, default=first + ROWS_PER_LOOK - 1) + 1
    return rows


def records(rows: Mapping[int, Sequence[Any]], head: str) -> list[dict[str, Any]]:
    """Rows below the header whose first column is called ``head``, up to the first gap, by names of columns.

    Raises:
        Lost: there is no such header.
    """
    at = next((number for number, row in sorted(rows.items()) if row and row[0] == head), None)
    if at is None:
        raise Lost(f"no column {head}")
    names = [str(name) for name in rows[at]]
    found = []
    number = at + 1
    while number in rows and rows[number] and rows[number][0] is not None:
        found.append({"row": number, **dict(zip(names, rows[number], strict=False))})
        number += 1
    return found


def one_file(pattern: str, under: str = "") -> reading.Reading:
    """The only file with such a name. Raises Lost when there are none or several."""
    found = yield from reading.list_files(pattern, under)
    if len(found) != 1:
        raise Lost(f"{len(found)} files {pattern}")
    return found[0]
