"""T2: a figure was restated; the first report is still on file."""

from __future__ import annotations

from datetime import timedelta
from random import Random

from journeyman.worlds.draft import Draft
from journeyman.worlds.plan import Planted
from journeyman.worlds.simulate.calendars import month_end
from journeyman.worlds.simulate.figures import Figures, labels
from journeyman.worlds.traps.operator import Operator

MONTH, DAYS = 4, 120
"""The month of the fiscal year that is wrong, from 0; days after the year's end on which it is found."""


def apply(draft: Draft, rng: Random) -> list[Planted]:
    """Revenue of the first half of the last fiscal year is reversed in part, found after the year was reported."""
    setting, group = draft.setting, draft.setting.currency
    year = setting.years[-1]
    months = setting.year_months(year)
    found = (month_end(months[-1]) + timedelta(days=DAYS)).isoformat()
    periods = {f"FY{year}": labels(draft, months), f"H1 FY{year}": labels(draft, months[:6])}
    before = Figures(draft.truth, group, found)
    amount = 1000 * round(before.income(periods[f"FY{year}"]).revenue * rng.uniform(0.006, 0.015) / 1000)
    event = draft.event("restatement", found, f"FY{year} restated", year=year)
    _reverse(draft, months[MONTH], amount, event, found)
    after = Figures(draft.truth, group, found)
    planted = []
    for period, span in periods.items():
        for item in ("revenue", "ebitda"):
            site = f"income:group:{period}:{item}"
            wrong, right = (int(getattr(one.income(span), item)) for one in (before, after))
            planted.append(Planted("T2", site, (f"{site}:restated",), {item: wrong}, {item: right}, (site,)))
    planted.append(_key_figure(draft, rng))
    _leases(draft, rng)
    return planted


def _reverse(draft: Draft, month: int, amount: int, event: str, found: str) -> None:
    """The journal that corrects the books, valid then and known now."""
    day, group = month_end(month).isoformat(), draft.setting.currency
    journal = f"J-G-{draft.setting.label(month)}-restated"
    memo = "Restatement: control had not passed"
    row = {"id": journal, "entity_id": "G", "date": day, "memo": memo, "currency": group, "kind": "restated"}
    draft.truth.add("journal", row, event=event, at=day, known=found)
    lines = [("4030", amount, 0), ("2150", 0, amount)]
    rows = [
        {
            "id": f"{journal}/{n}",
            "journal_id": journal,
            "account_id": account,
            "dr": dr,
            "cr": cr,
            "text": memo,
            "currency": group,
        }
        for n, (account, dr, cr) in enumerate(lines, start=1)
    ]
    draft.truth.add("journal_line", rows, event=event, at=day, known=found)
    draft.notes.pop("figures", None)
    draft.notes.pop("ledger", None)


def _leases(draft: Draft, rng: Random) -> None:
    """A lease had been left out of the debt; the event's note plants the trap, once the debt overview is written."""
    day = draft.setting.today - timedelta(days=rng.randrange(2, 7))
    draft.event("leases restated", day, "Lease liabilities restated", share=round(rng.uniform(0.12, 0.35), 3))


def _key_figure(draft: Draft, rng: Random) -> Planted:
    """A key figure of a quarter that the board pack has shown is restated in the workbook of the next."""
    period = draft.notes["periods"][-2]
    name = rng.choice(draft.setting.trade["kpis"])
    old = draft.truth.one("SELECT * FROM kpi WHERE name = :n AND period = :p", n=name, p=period)
    day = draft.truth.value("SELECT date FROM event WHERE kind = 'key figures reported' ORDER BY date DESC LIMIT 1")
    value = round(old["value"] + rng.choice((-2.4, -1.7, 1.3, 2.1)), 1)
    event = draft.event("key figure corrected", day, f"{name} of {period} corrected")
    draft.truth.close("kpi", old["id"], known_to=day)
    draft.truth.add(
        "kpi",
        {
            **old,
            "id": f"{old['id']}:restated",
            "value": value,
            "known_from": day,
            "known_to": None,
            "source_event_id": event,
        },
        event=event,
    )
    return Planted(
        "T2",
        f"kpi:{name}:{period}",
        (f"kpi:{name}:{period}",),
        {"value": old["value"]},
        {"value": value},
        (f"deck:{name}:{period}",),
    )


T2 = Operator("T2", "restated figure", "truth", apply)
