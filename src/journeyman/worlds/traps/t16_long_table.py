"""T16: a table over several pages, its header repeated on each."""

from __future__ import annotations

from datetime import timedelta
from random import Random

from journeyman.worlds.content import Heading, Paragraph, Prose, Table
from journeyman.worlds.draft import Draft
from journeyman.worlds.plan import Planted
from journeyman.worlds.traps.operator import Operator

NUM_ROWS, FIRST_PAGE = 110, 34


def apply(draft: Draft, rng: Random) -> list[Planted]:
    """A list of open receivables, without a total."""
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
    return [
        Planted(
            "T16",
            "receivables",
            (facts[0], facts[-1]),
            {"total": first, "rows": FIRST_PAGE},
            {"total": total, "rows": NUM_ROWS},
        )
    ]


T16 = Operator("T16", "table over several pages", "plan", apply)
