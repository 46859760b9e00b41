"""The sale of a subsidiary: bidders, comparable companies, who holds the shares, what the purchase agreement says."""

from __future__ import annotations

from datetime import date, timedelta
from random import Random
from typing import Any

from journeyman.worlds.data import pack
from journeyman.worlds.draft import Draft
from journeyman.worlds.simulate.calendars import month_end
from journeyman.worlds.simulate.figures import figures_at, labels

CODE_NAMES = (
    "Harrier",
    "Basalt",
    "Marigold",
    "Cascade",
    "Saffron",
    "Tundra",
    "Peregrine",
    "Juniper",
    "Obsidian",
    "Linnet",
)
FINANCING = ("committed", "highly confident", "subject to financing")
DILIGENCE = ("confirmatory only", "full", "none")
TIGHTER = {
    "cap_percent": 30,
    "survival_months": 36,
    "escrow_percent": 12.5,
    "non_compete_months": 48,
    "long_stop_days": 240,
}
"""What buyers ask for instead of what was agreed."""


def simulate_deals(draft: Draft) -> None:
    """The deal and its timetable; each date is an event that emits documents."""
    rng, setting = draft.rng("deals"), draft.setting
    start = setting.today - timedelta(days=34)
    name = f"Project {rng.choice(CODE_NAMES)}"
    target = draft.notes["entities"][0]["name"]
    event = draft.event("process launched", start, f"{name}: process letter sent", deal="D1")
    draft.truth.add(
        "deal",
        {
            "id": "D1",
            "name": name,
            "target": target,
            "seller": draft.notes["entities"][3]["name"],
            "buyer": None,
            "status": "bids received",
            "signing_date": (setting.today + timedelta(days=40)).isoformat(),
        },
        event=event,
        at=start.isoformat(),
    )
    draft.notes["deal"] = {"id": "D1", "name": name, "target": target, "start": start.isoformat(), "event": event}
    _bids(draft, rng, start)
    _comps(draft, rng, start)
    _capital(draft, rng, start)
    _terms(draft, rng, start)


def enterprise_value(draft: Draft) -> float:
    """What the group is worth at eight times its last twelve months' EBITDA, or revenue if that is small."""
    income = figures_at(draft).income(labels(draft, draft.setting.months[-12:]))
    return max(8.0 * income.ebitda, 1.1 * income.revenue)


def _bids(draft: Draft, rng: Random, start: date) -> None:
    worth = enterprise_value(draft)
    bids: list[dict[str, Any]] = []
    for number, bidder in enumerate(rng.sample(pack("firms")["bidders"], 6), start=1):
        day = start + timedelta(days=rng.randrange(14, 22))
        while day.weekday() >= 5:
            day += timedelta(days=1)
        conditions = {
            "financing": rng.choice(FINANCING),
            "due_diligence": rng.choice(DILIGENCE),
            "exclusivity_days": rng.choice((0, 14, 21, 30)),
            "antitrust": rng.choice((True, False)),
            "mac_clause": rng.choice((True, False)),
            "management_rollover": rng.choice((True, False)),
            "wording": rng.randrange(3),
            "locked_box": rng.choice((True, False)),
        }
        price = 100_000 * round(worth * rng.uniform(0.82, 1.22) / 100_000)
        event = draft.event("bid received", day, f"Offer of {bidder}", bid=f"B{number}")
        row = {
            "id": f"B{number}",
            "deal_id": "D1",
            "bidder": bidder,
            "bidder_alias": f"{bidder.split()[0]} BidCo Ltd",
            "date": day.isoformat(),
            "price": price,
            "currency": draft.setting.currency,
            "conditions_json": conditions,
            "supersedes": None,
        }
        while any(one["price"] == row["price"] for one in bids):
            row["price"] += 100_000
        draft.truth.add("bid", row, event=event, at=day.isoformat())
        bids.append(row)
    draft.notes["bids"] = bids


def _comps(draft: Draft, rng: Random, start: date) -> None:
    """Listed peers; traps give some of them other currencies and fiscal years."""
    group = draft.setting.currency
    event = draft.event("comparables drawn", start + timedelta(days=3), "Peer group data drawn", deal="D1")
    rows = []
    for number, stem in enumerate(rng.sample(pack("firms")["peers"], 8), start=1):
        currency = group
        revenue = 10_000 * rng.randrange(900, 26_000)
        margin = rng.uniform(0.09, 0.27)
        prior = round(revenue / (1 + rng.uniform(-0.03, 0.16)), -4)
        ebitda = round(revenue * margin, -4)
        rows.append(
            {
                "id": f"PC{number}",
                "name": f"{stem} {rng.choice(('plc', 'SE', 'Inc', 'AG', 'NV'))}",
                "currency": currency,
                "fiscal_year_end": 12,
                "revenue": revenue,
                "ebitda": int(ebitda),
                "revenue_prior": int(prior),
                "ebitda_prior": int(round(prior * margin * 0.97, -4)),
                "net_debt": int(round(ebitda * rng.uniform(-0.4, 2.6), -4)),
                "market_cap": int(round(ebitda * rng.uniform(6.5, 13.5), -4)),
            }
        )
    draft.truth.add("comp_company", rows, event=event, at=start.isoformat())
    draft.notes["comps"] = rows
    draft.event("papers prepared", draft.setting.today - timedelta(days=5), "Working papers prepared", deal="D1")
    draft.event("models built", start + timedelta(days=6), "Valuation models built", deal="D1")


def _capital(draft: Draft, rng: Random, start: date) -> None:
    """Share classes of the parent: common, preferred with preferences, options; every entry of the register."""
    firms = pack("firms")
    holders = rng.sample(firms["holders"][:3] + firms["holders"][5:], 4)
    founder = draft.roles["ceo"]["name"]
    worth = enterprise_value(draft)
    rows: list[dict[str, Any]] = [
        {"holder": founder, "share_class": "Common", "shares": 10_000 * rng.randrange(120, 300)},
        {"holder": "Founders' Trust", "share_class": "Common", "shares": 10_000 * rng.randrange(60, 160)},
    ]
    for seniority, (series, holder) in enumerate(zip(("Series A", "Series B"), holders, strict=False), start=1):
        rows.append(
            {
                "holder": holder,
                "share_class": series,
                "shares": 10_000 * rng.randrange(50, 140),
                "preference": 100_000 * round(worth * rng.uniform(0.06, 0.16) / 100_000),
                "participating": rng.choice((0, 1)),
                "seniority": seniority,
            }
        )
    rows.append({"holder": holders[2], "share_class": "Common", "shares": 10_000 * rng.randrange(20, 70)})
    for tranche, strike in enumerate((rng.randrange(2, 6), rng.randrange(7, 15)), start=1):
        rows.append(
            {
                "holder": f"Employee options, tranche {tranche}",
                "share_class": "Option",
                "shares": 10_000 * rng.randrange(8, 30),
                "strike": strike,
            }
        )
    event = draft.event("cap table confirmed", start + timedelta(days=4), "Capitalisation confirmed by the secretary")
    for number, row in enumerate(rows, start=1):
        row |= {"id": f"SC{number}", **{k: row.get(k) for k in ("strike", "preference", "participating", "seniority")}}
    draft.truth.add("security", rows, event=event, at=start.isoformat())
    draft.notes["securities"] = rows
    _register(draft, rng, rows, event)


def _register(draft: Draft, rng: Random, rows: list[dict[str, Any]], event: str) -> None:
    """One or two issues for each holding."""
    entries: list[dict[str, Any]] = []
    day = month_end(draft.setting.months[0])
    for row in rows:
        if row["share_class"] != "Option":
            parts = (
                (row["shares"],)
                if rng.random() < 0.4
                else (row["shares"] * 6 // 10, row["shares"] - row["shares"] * 6 // 10)
            )
            for shares in parts:
                day += timedelta(days=rng.randrange(20, 90))
                entry = f"SR{len(entries) + 1:02d}"
                issued = draft.event("shares issued", day, f"{shares} {row['share_class']} shares issued", entry=entry)
                entries.append(
                    {
                        "id": entry,
                        "holder": row["holder"],
                        "share_class": row["share_class"],
                        "shares": shares,
                        "date": day.isoformat(),
                        "kind": "issue",
                        "reference": f"RES-{len(entries) + 1:02d}",
                        "source_event_id": issued,
                        "valid_from": day.isoformat(),
                        "known_from": day.isoformat(),
                    }
                )
    draft.truth.add("share_entry", entries, event=event)
    draft.notes["register"] = entries


def _terms(draft: Draft, rng: Random, start: date) -> None:
    """Terms of the purchase as agreed in the term sheet, and as the first draft of the agreement has them."""
    best = max(draft.notes["bids"], key=lambda bid: int(bid["price"]))
    day = draft.setting.today - timedelta(days=7)
    agreed = {
        "price": int(best["price"]),
        "cap_percent": rng.choice((10, 15, 20, 25)),
        "basket": 50_000 * rng.randrange(2, 8),
        "de_minimis": 5_000 * rng.randrange(2, 8),
        "escrow_percent": rng.choice((5, 7.5, 10)),
        "survival_months": rng.choice((12, 18, 24)),
        "non_compete_months": rng.choice((24, 36)),
        "long_stop_days": rng.choice((90, 120, 180)),
        "peg_months": 12,
        "basket_type": rng.choice(("deductible", "tipping")),
    }
    drafted = dict(agreed)
    changes = {**TIGHTER, "basket": agreed["basket"] * 2}
    for key in rng.sample(sorted(changes), 4):
        drafted[key] = changes[key]
    event = draft.event("terms agreed", day, "Term sheet signed", deal="D1", bidder=best["id"])
    rows = [
        {"id": f"{model}:{key}", "model": model, "name": key, "value": value}
        for model, values in (("term sheet", agreed), ("spa draft", drafted))
        for key, value in values.items()
    ]
    draft.truth.add("assumption", rows, event=event, at=day.isoformat())
    draft.notes["terms"] = {"agreed": agreed, "drafted": drafted, "buyer": best["bidder"], "date": day.isoformat()}
