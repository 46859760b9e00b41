"""Edits of delimited text: the fields that a change names, and no other byte.

Ops: ``set`` ``r2c3`` value; ``insert_rows`` ``r5`` values [[...], ...] before it; ``delete_rows`` ``r5`` or ``r5:r7``;
``insert_columns`` ``c2`` values [...] one per row that has fields; ``delete_columns`` ``c2``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from ..editing import Change, ChangeReport, Edited
from ..errors import BadEdit, NoSuchAddress
from .encoding import encode
from .grid import Grid, Row, parse, quoted, value_of
from .reading import opened, read

_CELL = re.compile(r"r([1-9]\d*)c([1-9]\d*)")
_ROWS = re.compile(r"r([1-9]\d*)(?::r([1-9]\d*))?")
_COLUMN = re.compile(r"c([1-9]\d*)")

Done = list[tuple[str, Any]]


def edit(data: bytes, name: str, changes: Sequence[Change]) -> Edited:
    """Apply changes in order. Raises BadEdit, NoSuchAddress or UnreadableDocument; nothing was written then."""
    grid, encoding = opened(data, name)
    done: list[tuple[str, str, Any]] = []
    for change in changes:
        change.require(OPS, name)
        done += [(change.op, address, before) for address, before in OPS[change.op](grid, change, name)]
    text = grid.text()
    again = parse(text, name, delimiter="" if grid.hint else grid.delimiter)
    if [row.raw for row in again.rows] != [row.raw for row in grid.rows]:
        raise BadEdit(name, "the result would not read back as it was set", remedy="set plainer text")
    try:
        edited = encode(text, encoding)
    except UnicodeEncodeError as error:
        what = f"{error.object[error.start]!r} does not exist in the file's encoding {encoding.name}"
        raise BadEdit(name, what, remedy="write the file anew as UTF-8") from error
    state = {node.address: node for node in read(edited, name).walk()}

    def after(address: str) -> Any:
        node = state.get(address)
        return None if node is None else [cell.text for cell in node.children] if node.kind == "row" else node.text

    return Edited(edited, tuple(ChangeReport(op, address, old, after(address)) for op, address, old in done))


def _text(value: Any, change: Change, name: str) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        return value
    if isinstance(value, int | float):
        return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(value)
    raise BadEdit(name, f"{value!r:.80} is no value of a field", place=change.address, remedy="text or a number")


def _set(grid: Grid, change: Change, name: str) -> Done:
    found = _CELL.fullmatch(change.address)
    if not found or "value" not in change.values:
        raise BadEdit(name, "set needs an address like r2c3 and a value", place=change.address)
    row, column = int(found[1]), int(found[2])
    fields = _row(grid, row, change, name).raw
    if column > len(fields):
        what = f"row {row} has {len(fields)} fields"
        raise NoSuchAddress(name, what, place=change.address, remedy="insert a column, or name an existing field")
    old = fields[column - 1]
    was_quoted = old.startswith('"')
    fields[column - 1] = quoted(_text(change.values["value"], change, name), grid.delimiter, always=was_quoted)
    if fields == [""]:
        fields[0] = '""'
    return [(change.address, value_of(old))]


def _row(grid: Grid, number: int, change: Change, name: str) -> Row:
    if not 1 <= number <= len(grid.rows):
        raise NoSuchAddress(name, f"the file has {len(grid.rows)} rows", place=change.address, remedy="read it again")
    return grid.rows[number - 1]


def _span(grid: Grid, change: Change, name: str) -> tuple[int, int]:
    found = _ROWS.fullmatch(change.address)
    if not found:
        raise BadEdit(name, f"{change.op} needs an address like r5 or r5:r7", place=change.address)
    first = int(found[1])
    return first, int(found[2] or first)


def _insert_rows(grid: Grid, change: Change, name: str) -> Done:
    first, _ = _span(grid, change, name)
    values = change.values.get("values")
    if not isinstance(values, list) or not values or not all(isinstance(line, list) and line for line in values):
        raise BadEdit(name, "insert_rows needs values, a list of rows", place=change.address)
    if first > len(grid.rows) + 1:
        raise NoSuchAddress(
            name, f"the file has {len(grid.rows)} rows", place=change.address, remedy="append behind it"
        )
    ending = grid.ending
    always = all(one.startswith('"') for row in grid.rows for one in row.raw)
    rows = []
    for line in values:
        fields = [quoted(_text(one, change, name), grid.delimiter, always=always) for one in line]
        rows.append(Row(['""'] if fields == [""] else fields, ending))
    if first == len(grid.rows) + 1 and grid.rows and grid.rows[-1].ending == "":
        grid.rows[-1].ending, rows[-1].ending = ending, ""
    grid.rows[first - 1 : first - 1] = rows
    return [(f"r{first + n}", None) for n in range(len(rows))]


def _delete_rows(grid: Grid, change: Change, name: str) -> Done:
    first, last = _span(grid, change, name)
    _row(grid, first, change, name)
    _row(grid, last, change, name)
    gone = grid.rows[first - 1 : last]
    if len(gone) == len(grid.rows):
        raise BadEdit(name, "the last row of a file cannot be deleted", place=change.address)
    if grid.rows[-1] is gone[-1]:
        grid.rows[first - 2].ending = gone[-1].ending
    del grid.rows[first - 1 : last]
    return [(f"r{first + n} (deleted)", row.values()) for n, row in enumerate(gone)]


def _column(grid: Grid, change: Change, name: str, spare: int) -> int:
    found = _COLUMN.fullmatch(change.address)
    width = max(len(row.raw) for row in grid.rows)
    if not found or int(found[1]) > width + spare:
        raise NoSuchAddress(name, f"the file has {width} columns", place=change.address, remedy="write c1, c2, ...")
    return int(found[1])


def _insert_columns(grid: Grid, change: Change, name: str) -> Done:
    column = _column(grid, change, name, 1)
    rows = [row for row in grid.rows if row.raw]
    values = change.values.get("values")
    if not isinstance(values, list) or len(values) != len(rows):
        raise BadEdit(name, f"insert_columns needs values, {len(rows)} of them", place=change.address)
    always = all(one.startswith('"') for row in rows for one in row.raw)
    for row, value in zip(rows, values, strict=True):
        row.raw += [""] * (column - 1 - len(row.raw))
        row.raw.insert(column - 1, quoted(_text(value, change, name), grid.delimiter, always=always))
    return [(f"r{n}c{column}", None) for n, row in enumerate(grid.rows, start=1) if row.raw]


def _delete_columns(grid: Grid, change: Change, name: str) -> Done:
    column = _column(grid, change, name, 0)
    if max(len(row.raw) for row in grid.rows) == 1:
        raise BadEdit(name, "the last column of a file cannot be deleted", place=change.address)
    gone = []
    for number, row in enumerate(grid.rows, start=1):
        if column <= len(row.raw):
            gone.append((f"r{number}c{column} (deleted)", value_of(row.raw.pop(column - 1))))
            if row.raw in ([""], []):
                row.raw = ['""']
    return gone


OPS: dict[str, Callable[[Grid, Change, str], Done]] = {
    "set": _set,
    "insert_rows": _insert_rows,
    "delete_rows": _delete_rows,
    "insert_columns": _insert_columns,
    "delete_columns": _delete_columns,
}
"""Op -> what applies it."""
