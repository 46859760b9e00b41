"""T16: a table over several pages, its header repeated on each."""

from __future__ import annotations

from datetime import timedelta
from random import Random

from journeyman.worlds.content import Heading, Paragraph, Prose, Table
from journeyman.worlds.draft import Draft
from journeyman.worlds.plan import Planted
from journeyman.worlds.simulate.figures import figures_at, labels
from journeyman.worlds.traps.operator import Operator

NUM_ROWS, FIRST_PAGE = 110, 34


def apply(draft: Draft, rng: Random) -> list[Planted]:
    """A list of open receivables, and revenue of the half year by month, company and line; neither has a total."""
    return [_receivables(draft), _revenue(draft)]


def _receivables(draft: Draft) -> Planted:
    setting = draft.setting
    rows = draft.truth.rows(
        "SELECT i.id, i.date, i.gross, c.name FROM invoice i JOIN customer c ON c.id = i.customer_id"
        " ORDER BY i.date DESC, i.id LIMIT :n",
        n=NUM_ROWS,
    )
    rows.reverse()
    day = (setting.today - timedelta(days=4)).isoformat()
    event = draft.event("receivables listed", day, "Open receivables listed")
    lines, facts = [("Invoice", "Date", "Customer", f"Open amount ({setting.currency})")], []
    for row in rows:
        fact = f"receivable:{row['id']}"
        facts.append(fact)
        lines.append(
            (
                row["id"],
                setting.short_day(row["date"]),
                row["name"],
                draft.fact(
                    fact,
                    setting.number(row["gross"]),
                    row["gross"],
                    "currency",
                    currency=setting.currency,
                    as_of=day,
                    known=day,
                    rows=(f"invoice:{row['id']}",),
                ),
            )
        )
    blocks = (
        Heading("Open receivables", 0),
        Paragraph(f"{setting.company}, as of {setting.day(day)}. No item is in dispute."),
        Table(tuple(lines), widths=(2, 1.4, 4, 2)),
    )
    path = f"finance/{setting.file_name('open receivables', day)}.pdf"
    draft.document(
        path,
        "receivables",
        Prose(blocks, "Open receivables", header=setting.company),
        event,
        day=day,
        author=draft.roles["controller"]["name"],
    )
    total = sum(row["gross"] for row in rows)
    first = sum(row["gross"] for row in rows[:FIRST_PAGE])
    return Planted(
        "T16",
        "receivables",
        (facts[0], facts[-1]),
        {"total": first, "rows": FIRST_PAGE},
        {"total": total, "rows": NUM_ROWS},
    )


def _revenue(draft: Draft) -> Planted:
    """What the lines of business sold since the last fiscal year ended; no report divides it by line."""
    setting, year = draft.setting, draft.setting.years[-1] + 1
    months, period = labels(draft, setting.year_months(year)[:6]), f"H1 FY{year}"
    day = (setting.today - timedelta(days=20)).isoformat()
    event = draft.event("revenue listed", day, f"Revenue of {period} listed by line")
    names = {row["id"]: row["name"] for row in draft.notes["entities"]}
    lines, amounts = [("Month", "Company", "Line", setting.currency)], dict[str, int]()
    for month in months:
        for entity in ("G", "S1", "S2"):
            sold = figures_at(draft, day).revenue_of(entity, month)
            for number, line in enumerate(setting.trade["lines"], start=1):
                if amount := sold.get(f"40{number}0", 0):
                    fact = f"revenue_month:{entity}:{month}:{number}"
                    amounts[fact] = amount
                    shown = draft.fact(fact, setting.number(amount), amount, "currency", currency=setting.currency,
                                       as_of=month, known=day)  # fmt: skip
                    lines.append((month, names[entity], line, shown))
    blocks = (
        Heading(f"Revenue by line, {period}", 0),
        Paragraph(
            f"{setting.company}. What the companies sold to others, in whole {setting.currency}; subsidiaries at the"
            " average rate of the month."
        ),
        Table(tuple(lines), widths=(1.2, 4, 3, 1.8)),
    )
    draft.document(
        f"finance/{setting.file_name('revenue by line', period)}.pdf",
        "revenue_schedule",
        Prose(blocks, f"Revenue by line {period}", header=setting.company),
        event,
        day=day,
        author=draft.roles["controller"]["name"],
        subject=period,
    )
    facts = list(amounts)
    return Planted("T16", f"revenue_line:{period}", (facts[0], facts[-1]),
                   {"total": sum(amounts[fact] for fact in facts[:FIRST_PAGE])},
                   {"total": sum(amounts.values())})  # fmt: skip


T16 = Operator("T16", "table over several pages", "plan", apply)
