"""Spreadsheets: the cached value of every cell as text; each sheet is one table."""

from __future__ import annotations

from .tree import Tree, table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def read_xlsx(data: bytes, name: str) -> Tree:
    """Sheets in workbook order; empty rows at the end are left out, the range names the cells that were read."""
    from io import BytesIO

    from openpyxl import load_workbook
    from openpyxl.utils import get_column_letter

    book = load_workbook(BytesIO(data), read_only=True, data_only=True)
    try:
        tables = []
        for sheet in book.worksheets:
            lines = _trimmed([[cell_text(value) for value in row] for row in sheet.iter_rows(values_only=True)])
            width = max((len(line) for line in lines), default=1)
            where = f"{sheet.title}!A1:{get_column_letter(width)}{max(len(lines), 1)}"
            tables.append(table(sheet.title, where, lines))
    finally:
        book.close()
    text = "\n".join("\t".join(line) for one in tables for line in [one["header"], *one["rows"]])
    return {"format": "xlsx", "tables": tables, "text": text}


def _trimmed(lines: list[list[str]]) -> list[list[str]]:
    while lines and not any(lines[-1]):
        lines.pop()
    return lines


def cell_text(value: Any) -> str:
    """A cell value as text: whole floats without a point, booleans as TRUE and FALSE, dates in ISO 8601."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else repr(value)
    if hasattr(value, "isoformat"):
        return str(value.isoformat())
    return str(value)
