"""Sheets and tables from rows, as offices make them: a title, a header line, figures, totals with their formulas."""

from __future__ import annotations

from collections.abc import Sequence

from journeyman.worlds.content import Cell, Sheet
from journeyman.worlds.render.xlsx import column_letters

Value = str | int | float | bool | None | Cell


def sheet_of(
    name: str,
    header: Sequence[str],
    rows: Sequence[Sequence[Value]],
    *,
    title: str = "",
    styles: Sequence[str] = (),
    widths: Sequence[float] = (),
    total: Sequence[int] = (),
    note: str = "",
    label: str = "Total",
) -> Sheet:
    """A sheet with one table.

    Args:
        name: of the sheet.
        header: column names.
        rows: values, or cells that bring their own style and fact.
        title: line above the table.
        styles: style of each column.
        widths: of the columns, in characters.
        total: columns that are summed below.
        note: line below.
        label: of the line of sums.
    """
    cells: dict[tuple[int, int], Cell] = {}
    top = 0
    if title:
        cells[0, 0], top = Cell(title, style="title"), 2
    for column, text in enumerate(header):
        cells[top, column] = Cell(text, style="head")
    for row, values in enumerate(rows, start=top + 1):
        for column, value in enumerate(values):
            style = styles[column] if column < len(styles) else ""
            cells[row, column] = value if isinstance(value, Cell) else Cell(value, style=style)
    end = top + len(rows) + 1
    if total:
        cells[end, 0] = Cell(label, style="bold")
        for column in total:
            letters = column_letters(column)
            amount = sum(_number(row[column]) for row in rows)
            cells[end, column] = Cell(amount, f"=SUM({letters}{top + 2}:{letters}{end})", "total")
        end += 1
    if note:
        cells[end + 1, 0] = Cell(note, style="note")
    return Sheet(name, cells, tuple(widths) or (22.0,) * len(header))


def _number(value: Value) -> float | int:
    value = value.value if isinstance(value, Cell) else value
    return value if isinstance(value, int | float) else 0
