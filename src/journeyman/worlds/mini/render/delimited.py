"""CSV as spreadsheets export it: commas, quotes where needed, CRLF."""

from __future__ import annotations

import csv
import io


def render_csv(title: str, lines: list[list[str | int]]) -> bytes:
    """UTF-8 without byte-order mark; the title is not part of the file."""
    buffer = io.StringIO(newline="")
    csv.writer(buffer).writerows(lines)
    return buffer.getvalue().encode()
