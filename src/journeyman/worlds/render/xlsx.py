"""XLSX through xlsxwriter: formulas together with the values they come to, hidden things, charts, comments."""

from __future__ import annotations

import re
from io import BytesIO
from typing import Any

from journeyman.worlds.content import Book, Cell, Sheet
from journeyman.worlds.render.places import Places, Style

FORMATS: dict[str, dict[str, Any]] = {
    "": {},
    "head": {"bold": True, "bottom": 1, "bg_color": "#DDE4EE"},
    "title": {"bold": True, "font_size": 14},
    "bold": {"bold": True},
    "note": {"italic": True, "font_color": "#555555"},
    "int": {"num_format": "#,##0;(#,##0)"},
    "total": {"num_format": "#,##0;(#,##0)", "bold": True, "top": 1},
    "one": {"num_format": "#,##0.0;(#,##0.0)"},
    "two": {"num_format": "#,##0.00"},
    "rate": {"num_format": "0.0000"},
    "percent": {"num_format": "0.0%"},
    "multiple": {"num_format": '0.0"x"'},
    "date": {"num_format": "yyyy-mm-dd"},
    "input": {"num_format": "#,##0.00", "font_color": "#0000FF"},
    "input_percent": {"num_format": "0.0%", "font_color": "#0000FF"},
    "input_int": {"num_format": "#,##0;(#,##0)", "font_color": "#0000FF"},
    "wrap": {"text_wrap": True, "valign": "top"},
}


def column_letters(column: int) -> str:
    """``A`` for 0, ``AA`` for 26."""
    text = ""
    column += 1
    while column:
        column, rest = divmod(column - 1, 26)
        text = chr(65 + rest) + text
    return text


def address_of(sheet: str, row: int, column: int) -> str:
    """Address of a cell as ``documents/`` writes it; row and column from 0."""
    name = sheet if re.fullmatch(r"[A-Za-z_]\w*", sheet) else "'" + sheet.replace("'", "''") + "'"
    return f"{name}!{column_letters(column)}{row + 1}"


def render_xlsx(book: Book, style: Style, places: Places) -> bytes:
    """A workbook whose dates are the world's."""
    import xlsxwriter

    buffer = BytesIO()
    made = xlsxwriter.Workbook(
        buffer, {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False, "date_1904": book.is_1904}
    )
    made.set_properties({"title": book.title, "author": "", "created": style.created})
    formats = {name: made.add_format(facts) if facts else None for name, facts in FORMATS.items()}
    for sheet in book.sheets:
        _write(made, sheet, formats, places)
    for name, reference in sorted(book.names.items()):
        made.define_name(name, f"={reference}")
    made.close()
    return buffer.getvalue()


def _write(book: Any, sheet: Sheet, formats: dict[str, Any], places: Places) -> None:
    page = book.add_worksheet(sheet.name)
    for column, width in enumerate(sheet.widths):
        page.set_column(column, column, width, None, {"hidden": True} if column in sheet.hidden_columns else {})
    for row in sheet.hidden_rows:
        page.set_row(row, None, None, {"hidden": True})
    for (row, column), cell in sorted(sheet.cells.items()):
        _cell(page, sheet.name, row, column, cell, formats[cell.style], places)
    for (row, column), text in sorted(sheet.comments.items()):
        page.write_comment(row, column, places.take(text, address_of(sheet.name, row, column)))
    if sheet.filter_range:
        page.autofilter(sheet.filter_range)
    for chart in sheet.charts:
        made = book.add_chart({"type": chart.kind})
        for name, values in chart.values:
            made.add_series({"name": name, "categories": f"={chart.categories}", "values": f"={values}"})
        made.set_title({"name": chart.title})
        page.insert_chart(chart.anchor, made)
    if sheet.is_hidden:
        page.hide()


def _cell(page: Any, sheet: str, row: int, column: int, cell: Cell, style: Any, places: Places) -> None:
    value = cell.value
    if isinstance(value, str):
        value = places.take(value, address_of(sheet, row, column))
    if cell.fact:
        places.found.append((cell.fact, _shown(value), address_of(sheet, row, column)))
    if cell.formula:
        page.write_formula(row, column, cell.formula, style, value)
    elif isinstance(value, bool):
        page.write_boolean(row, column, value, style)
    elif isinstance(value, int | float):
        page.write_number(row, column, value, style)
    elif value is None:
        page.write_blank(row, column, None, style)
    else:
        page.write_string(row, column, value, style)


def _shown(value: str | int | float | bool | None) -> str:
    return (
        repr(value)
        if isinstance(value, float) and not value.is_integer()
        else str(int(value) if isinstance(value, float) else value)
    )
