"""Deliverables as templates write them: small writers whose output is a pure function of plain values.

Sheets are ``{"name", "headers", "rows"}`` as the tool ``spreadsheets_create_spreadsheet`` takes them, so one layout
serves the oracle from the truth and the oracle from the files. A text that begins with ``=`` is a formula.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from journeyman.worlds.template import FOLDER, ToolCall

CREATED = datetime(2000, 1, 1)
SheetRow = Sequence[Any]


def sheet(name: str, headers: Sequence[str], rows: Iterable[SheetRow]) -> dict[str, Any]:
    """One sheet of a layout."""
    return {"name": name, "headers": list(headers), "rows": [list(row) for row in rows]}


def xlsx_bytes(sheets: Sequence[Mapping[str, Any]]) -> bytes:
    """A workbook of a layout; formulas carry no stored value, as after a save by a library."""
    import xlsxwriter

    made = io.BytesIO()
    book = xlsxwriter.Workbook(made, {"in_memory": True, "strings_to_numbers": False})
    book.set_properties({"created": CREATED})
    for one in sheets:
        page = book.add_worksheet(one["name"])
        lines = [one["headers"], *one["rows"]] if one.get("headers") else list(one["rows"])
        for row, line in enumerate(lines):
            for column, value in enumerate(line):
                if isinstance(value, str) and value.startswith("="):
                    page.write_formula(row, column, value)
                elif isinstance(value, bool):
                    page.write_boolean(row, column, value)
                elif isinstance(value, int | float):
                    page.write_number(row, column, value)
                elif value is not None:
                    page.write_string(row, column, str(value))
    book.close()
    return made.getvalue()


def json_bytes(value: Any) -> bytes:
    """A JSON deliverable."""
    return (json.dumps(value, ensure_ascii=False, indent=1) + "\n").encode()


def csv_bytes(headers: Sequence[str], rows: Iterable[SheetRow]) -> bytes:
    """A csv deliverable."""
    made = io.StringIO()
    writer = csv.writer(made, lineterminator="\n")
    writer.writerow(headers)
    writer.writerows(["" if value is None else value for value in row] for row in rows)
    return made.getvalue().encode()


def save_workbook(name: str, sheets: Sequence[Mapping[str, Any]]) -> ToolCall:
    """The call that writes a workbook to the place of deliverables."""
    arguments = {"directory": f"/{FOLDER}", "file_name": name, "sheets": [dict(one) for one in sheets]}
    return ToolCall("spreadsheets_create_spreadsheet", arguments)


def save_text(name: str, data: bytes) -> ToolCall:
    """The call that writes a text file, through a shell."""
    mark = "END_OF_DELIVERABLE"
    code = f"mkdir -p {FOLDER} && cat > {FOLDER}/{name} <<'{mark}'\n{data.decode().rstrip()}\n{mark}"
    return ToolCall("code_exec", {"code": code})
