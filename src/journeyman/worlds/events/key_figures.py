"""The workbook of key figures: quarters, each by a formula over its months, which stand on a sheet of their own."""

from __future__ import annotations

from journeyman.worlds.content import Book, Cell, Sheet
from journeyman.worlds.draft import Draft
from journeyman.worlds.events.tables import sheet_of
from journeyman.worlds.render.xlsx import column_letters
from journeyman.worlds.truth.store import Row

QUARTERS, MONTHS = "KPI", "Months"
"""Names of the sheets."""

FIRST = 3
"""Row of the first key figure on both sheets, from 0."""

APART = 9
"""Tenths by which the first two months of a quarter may differ from its figure."""


def figure_of(draft: Draft, name: str, period: str) -> float:
    """A key figure as it is known now."""
    sql = "SELECT value FROM kpi WHERE name = :n AND period = :p AND known_to IS NULL"
    return float(draft.truth.value(sql, n=name, p=period))


def figures_book(draft: Draft, event: Row, periods: list[str]) -> None:
    """Plan the workbook of the last of these quarters."""
    rows = []
    for row, name in enumerate(draft.setting.trade["kpis"], start=FIRST + 1):
        cells = []
        for number, period in enumerate(periods):
            value, fact = figure_of(draft, name, period), f"kpi:{name}:{period}"
            draft.fact(
                fact, "", value, "index", subject=f"kpi:{name}", predicate=period, as_of=event["date"],
                known=event["date"], rows=(f"kpi:{name}:{period}",),
            )  # fmt: skip
            cells.append(Cell(value, quarter_formula(number, row), "one", fact))
        rows.append((name, *cells))
    sheet = sheet_of(QUARTERS, ("Key figure", *periods), rows, title="Key figures", widths=(40, *(14,) * len(periods)))
    draft.document(
        f"reporting/{draft.setting.file_name('kpi workbook', periods[-1])}.xlsx",
        "kpi_workbook",
        Book((sheet, _months(draft, periods)), "Key figures"),
        event["id"],
        day=event["date"],
        author=draft.roles["fpa"]["name"],
        subject=periods[-1],
    )


def quarter_formula(number: int, row: int) -> str:
    """Formula of a quarter (from 0) in a row of the sheet (from 1)."""
    first, last = (column_letters(1 + 3 * number + month) for month in (0, 2))
    return f"=ROUND(AVERAGE({MONTHS}!{first}{row}:{last}{row}),1)"


def _months(draft: Draft, periods: list[str]) -> Sheet:
    """Three months of each quarter, whose mean is its figure."""
    setting, rng = draft.setting, draft.rng("key figures by month")
    labels = [setting.label(m) for p in periods for m in setting.quarter_months(int(p[-4:]), int(p[1]))]
    rows = []
    for name in setting.trade["kpis"]:
        values: list[float] = []
        for period in periods:
            tenths, first, second = (
                round(10 * figure_of(draft, name, period)),
                *rng.choices(range(-APART, APART + 1), k=2),
            )
            values += [(tenths + apart) / 10 for apart in (first, second, -first - second)]
        rows.append((name, *(Cell(value, style="one") for value in values)))
    head = ("Key figure", *labels)
    sheet = sheet_of(MONTHS, head, rows, title="Key figures by month", widths=(40, *(10,) * len(labels)))
    for column in range(1, len(labels) + 1):
        sheet.cells[FIRST - 2, column] = Cell(periods[(column - 1) // 3], style="note")
    return sheet
