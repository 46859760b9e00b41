"""Delimited text as a tree: rows ``r1``, ``r2``, ... with cells ``r1c1``, ``r1c2``, ..."""

from __future__ import annotations

from typing import Any

from ..errors import UnreadableDocument
from ..node import Document, Node
from .encoding import Encoding, decode
from .grid import NAMES, Grid, has_header, parse

ENDINGS = {"\r\n": "crlf", "\n": "lf", "\r": "cr"}


def read(data: bytes, name: str) -> Document:
    """The typed tree. Values are text as stored, without their quotes.

    Raises:
        UnreadableDocument: no text, an unclosed quote or no row.
    """
    grid, encoding = opened(data, name)
    is_named = has_header(grid)
    rows = tuple(_row(number, row.values(), is_named and number == 1) for number, row in enumerate(grid.rows, start=1))
    return Document("csv", name, rows, _metadata(grid, encoding, is_named), tuple(_warnings(grid, encoding)))


def opened(data: bytes, name: str) -> tuple[Grid, Encoding]:
    """The grid and how its text was stored."""
    text, encoding = decode(data, name)
    delimiter = "\t" if name.lower().endswith(".tsv") and "\t" in text else ""
    grid = parse(text, name, delimiter=delimiter)
    if not any(row.raw for row in grid.rows):
        raise UnreadableDocument(name, "no row in it")
    return grid, encoding


def _row(number: int, values: list[str], is_header: bool) -> Node:
    cells = tuple(Node("cell", f"r{number}c{column}", value) for column, value in enumerate(values, start=1))
    return Node("row", f"r{number}", "", {"header": True} if is_header else {}, cells)


def _metadata(grid: Grid, encoding: Encoding, is_named: bool) -> dict[str, Any]:
    endings = {row.ending for row in grid.rows if row.ending}
    fields = [one for row in grid.rows for one in row.raw]
    found: dict[str, Any] = {
        "encoding": encoding.name,
        "delimiter": NAMES[grid.delimiter],
        "line_ending": ENDINGS[grid.ending] if len(endings) < 2 else "mixed",
        "rows": len(grid.rows),
        "columns": max(len(row.raw) for row in grid.rows),
        "has_header": is_named,
    }
    if encoding.mark:
        found["byte_order_mark"] = True
    if grid.rows[-1].ending == "":
        found["ends_without_line_ending"] = True
    if all(one.startswith('"') for one in fields):
        found["all_quoted"] = True
    if grid.hint:
        found["separator_line"] = True
    return found


def _warnings(grid: Grid, encoding: Encoding) -> list[str]:
    found = []
    if encoding.is_guessed:
        found.append(f"the encoding was guessed: {encoding.name}")
    widths = {len(row.raw) for row in grid.rows if row.raw}
    if len(widths) > 1:
        usual = max(widths, key=lambda width: sum(1 for row in grid.rows if len(row.raw) == width))
        first = next(n for n, row in enumerate(grid.rows, start=1) if row.raw and len(row.raw) != usual)
        found.append(f"rows have {min(widths)} to {max(widths)} fields; the first unlike the others is r{first}")
    return found
