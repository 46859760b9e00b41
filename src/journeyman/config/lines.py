"""Where a key stands in a TOML file. ``tomllib`` keeps no line numbers, so this scans for them.

The scan never guesses: a path seen twice (an array of tables, a look-alike inside a text) has no number.
"""

from __future__ import annotations

import re

Path = tuple[str, ...]

_KEY = r"""(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')"""
_HEADER = re.compile(rf"^\s*\[\s*({_KEY}(?:\s*\.\s*{_KEY})*)\s*\]\s*(?:#.*)?$")
_ARRAY_HEADER = re.compile(r"^\s*\[\[")
_ASSIGNMENT = re.compile(rf"^\s*({_KEY}(?:\s*\.\s*{_KEY})*)\s*=(.*)$")
_PART = re.compile(_KEY)


def _split(dotted: str) -> Path:
    return tuple(part.strip("\"'") for part in _PART.findall(dotted))


def _opened(text: str) -> str | None:
    """The multi-line quote that ``text`` opens and does not close, or None."""
    for quote in ('"""', "'''"):
        if text.count(quote) % 2:
            return quote
    return None


def key_lines(text: str) -> dict[Path, int | None]:
    """Line number, from 1, of each table header and key of a TOML text; None for a path seen more than once."""
    lines: dict[Path, int | None] = {}
    table: Path | None = ()
    quote: str | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        if quote:
            quote = None if quote in line else quote
            continue
        found: Path | None = None
        if _ARRAY_HEADER.match(line):
            table = None
        elif header := _HEADER.match(line):
            found = table = _split(header.group(1))
        elif assignment := _ASSIGNMENT.match(line):
            quote = _opened(assignment.group(2))
            found = None if table is None else (*table, *_split(assignment.group(1)))
        if found is not None:
            lines[found] = None if found in lines else number
    return lines


def line_of(path: Path, lines: dict[Path, int | None]) -> int | None:
    """Line of ``path``, or of the nearest table or inline table around it; None when the scan was not unique."""
    for length in range(len(path), 0, -1):
        if path[:length] in lines:
            return lines[path[:length]]
    return None
