"""Working papers that wait to be filled, and the monthly balances that one of them needs."""

from __future__ import annotations

from journeyman.worlds.content import Book, Cell, Sheet
from journeyman.worlds.draft import Draft
from journeyman.worlds.events.tables import sheet_of
from journeyman.worlds.simulate.figures import figures_at
from journeyman.worlds.truth.store import Row

WORKING_CAPITAL = (("1100", 1), ("1200", 1), ("1300", 1), ("2000", -1), ("2100", -1), ("2150", -1))
"""Account -> 1 for assets, -1 for liabilities, as the purchase agreement defines working capital."""


def papers_prepared(draft: Draft, event: Row) -> None:
    """The bridge to the last twelve months, working capital by month, the paper for the peg."""
    _bridge(draft, event)
    _working_capital(draft, event)


def _bridge(draft: Draft, event: Row) -> None:
    """Labels and formulas of the sums; the figures of the periods are to be entered."""
    setting = draft.setting
    year = setting.years[-1]
    cells = {
        (0, 0): Cell(f"Last twelve months to {setting.label(setting.months[-1])}", style="title"),
        (1, 0): Cell(f"{setting.currency} thousand, from the published reports", style="note"),
    }
    for column, text in enumerate(("", "Revenue", "EBITDA before exceptional items")):
        cells[3, column] = Cell(text, style="head")
    lines = (f"FY{year}", f"plus H1 FY{year + 1}", f"less H1 FY{year}", "Last twelve months")
    for row, label in enumerate(lines, start=4):
        cells[row, 0] = Cell(label, style="bold" if row == 7 else "")
    for column, letter in ((1, "B"), (2, "C")):
        cells[7, column] = Cell(0, f"={letter}5+{letter}6-{letter}7", "total")
    path = f"deals/{setting.file_name('ltm bridge')}.xlsx"
    draft.document(
        path,
        "ltm_bridge",
        Book((Sheet("LTM", cells, (30, 20, 30)),), "LTM bridge"),
        event["id"],
        day=event["date"],
        author=draft.roles["associate"]["name"],
        subject="deal:D1",
    )


def _working_capital(draft: Draft, event: Row) -> None:
    """Balances of the accounts of working capital at the last twelve month ends, group; liabilities are negative."""
    setting, figures = draft.setting, figures_at(draft, event["date"])
    months = [setting.label(month) for month in setting.months[-12:]]
    balances = {month: figures.group_balance(month) for month in months}
    names = draft.notes["accounts"]
    rows = []
    for code, _ in WORKING_CAPITAL:
        cells = []
        for month in months:
            fact = f"group_balance:{month}:{code}"
            draft.fact(fact, "", balances[month][code], "currency", currency=setting.currency, as_of=month)
            cells.append(Cell(balances[month][code], style="int", fact=fact))
        rows.append((code, names[code], *cells))
    sheet = sheet_of(
        "Balances",
        ("Account", "Name", *months),
        rows,
        title=f"Month-end balances, group, {setting.currency}",
        widths=(12, 26, *(15,) * 12),
        note="Debit positive, credit negative. Foreign amounts at closing rates.",
    )
    paper = sheet_of(
        "Peg",
        ("Item", f"Amount {setting.currency}"),
        [
            ("Average working capital of the twelve months (Peg)", None),
            ("Working capital at the last month end", None),
            ("Adjustment of the price", None),
        ],
        title="To be completed",
        widths=(56, 22),
    )
    path = f"deals/{setting.file_name('working capital')}.xlsx"
    draft.document(
        path,
        "working_capital",
        Book((sheet, paper), "Working capital"),
        event["id"],
        day=event["date"],
        author=draft.roles["associate"]["name"],
        subject="deal:D1",
    )
