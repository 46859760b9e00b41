"""XLSX through xlsxwriter: one sheet named after the table, numbers as numbers."""

from __future__ import annotations

from datetime import datetime
from io import BytesIO

CREATED = datetime(2026, 1, 5)
"""Creation date in the file's properties: fixed, so that equal tables give equal bytes."""


def render_xlsx(title: str, lines: list[list[str | int]]) -> bytes:
    """Text cells stay text (no formula, link or number is guessed from them), integers are numeric cells."""
    import xlsxwriter

    buffer = BytesIO()
    book = xlsxwriter.Workbook(buffer, {"in_memory": True})
    book.set_properties({"title": title, "created": CREATED})
    sheet = book.add_worksheet(title)
    for row, line in enumerate(lines):
        for column, value in enumerate(line):
            if isinstance(value, int):
                sheet.write_number(row, column, value)
            else:
                sheet.write_string(row, column, value)
    book.close()
    return buffer.getvalue()
