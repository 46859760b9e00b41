"""CSV and plain text."""

from __future__ import annotations

import csv
from io import StringIO

from journeyman.worlds.content import Delimited, Text
from journeyman.worlds.render.places import Places


def render_csv(content: Delimited, places: Places) -> bytes:
    """Rows with quotes where needed and newlines of Unix. Facts lie at ``r2c3``."""
    buffer = StringIO()
    writer = csv.writer(buffer, delimiter=content.delimiter, lineterminator="\n")
    for row, cells in enumerate(content.rows, start=1):
        writer.writerow([places.take(cell, f"r{row}c{column}") for column, cell in enumerate(cells, start=1)])
    return buffer.getvalue().encode(content.encoding)


def render_text(content: Text, places: Places) -> bytes:
    """A text file. Facts lie at ``line:12``: plain text has no tree, its lines are its places."""
    lines = [places.take(line, f"line:{number}") for number, line in enumerate(content.text.split("\n"), start=1)]
    return "\n".join(lines).encode()
