"""T2: a figure was restated; the first report is still on file."""

from __future__ import annotations

from datetime import timedelta
from random import Random

from journeyman.worlds.draft import Draft
from journeyman.worlds.plan import Planted
from journeyman.worlds.simulate.calendars import month_end
from journeyman.worlds.simulate.figures import Figures, labels
from journeyman.worlds.traps.operator import Operator


def apply(draft: Draft, rng: Random) -> list[Planted]:
    """Revenue of the fiscal year before the last is reversed in part, found while the last year was closed."""
    setting = draft.setting
    year = setting.years[-2]
    last = setting.year_months(year)[-1]
    found = month_end(setting.year_months(year + 1)[-1]) + timedelta(days=30)
    months = labels(draft, setting.year_months(year))
    group = setting.currency
    before = Figures(draft.truth, group, found.isoformat()).income(months)
    amount = 1000 * round(before.revenue * rng.uniform(0.01, 0.03) / 1000)
    event = draft.event("restatement", found, f"FY{year} restated", year=year)
    day, journal = month_end(last).isoformat(), f"J-G-{last // 12}-{last % 12 + 1:02d}-restated"
    draft.truth.add(
        "journal",
        {
            "id": journal,
            "entity_id": "G",
            "date": day,
            "memo": f"Restatement of FY{year}",
            "currency": group,
            "kind": "restated",
        },
        event=event,
        at=day,
        known=found.isoformat(),
    )
    lines = [("4030", amount, 0, "Revenue reversed: control had not passed"), ("2150", 0, amount, "Deferred income")]
    draft.truth.add(
        "journal_line",
        [
            {
                "id": f"{journal}/{n}",
                "journal_id": journal,
                "account_id": account,
                "dr": dr,
                "cr": cr,
                "text": text,
                "currency": group,
            }
            for n, (account, dr, cr, text) in enumerate(lines, start=1)
        ],
        event=event,
        at=day,
        known=found.isoformat(),
    )
    draft.notes.pop("figures", None)
    draft.notes.pop("ledger", None)
    after = Figures(draft.truth, group, found.isoformat()).income(months)
    site = f"income:group:FY{year}"
    return [
        Planted(
            "T2",
            f"{site}:{item}",
            (f"{site}:{item}:restated",),
            {item: int(getattr(before, item))},
            {item: int(getattr(after, item))},
            (f"{site}:{item}",),
        )
        for item in ("revenue", "ebitda")
    ] + [_key_figure(draft, rng)]


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
