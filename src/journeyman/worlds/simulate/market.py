"""What consultants look at: spend, price steps, surveys, key figures, market estimates, interviews."""

from __future__ import annotations

from datetime import timedelta
from random import Random
from typing import Any

from journeyman.worlds.data import pack
from journeyman.worlds.draft import Draft
from journeyman.worlds.simulate.calendars import month_end, month_start

NUM_SPEND, NUM_RESPONSES, NUM_INTERVIEWS = 240, 160, 24
STEPS = (
    ("list_price", "List price"),
    ("volume_discount", "Volume discount"),
    ("promotion", "Promotions"),
    ("rebate", "Year-end rebate"),
    ("freight", "Freight absorbed"),
    ("terms", "Payment terms"),
    ("pocket_price", "Pocket price"),
)
"""Steps of the price waterfall; all between the first and the last are deducted."""

SUBTOTALS = {"promotion": "Subtotal on the invoice", "terms": "Subtotal off the invoice"}
"""Step behind which a study may sum up what it deducted since the list price or the last sum -> name of that line."""


def simulate_market(draft: Draft) -> None:
    """Everything that the study of the consultants rests on."""
    rng, setting = draft.rng("market"), draft.setting
    start = setting.today - timedelta(days=80)
    _spend(draft, rng)
    _prices(draft, rng, draft.event("price study", start + timedelta(days=9), "Price waterfall drawn up"))
    _survey(draft, rng, draft.event("survey closed", start + timedelta(days=15), "Customer survey closed"))
    _key_figures(draft, rng)
    _estimates(draft, rng, draft.event("market studied", start + timedelta(days=20), "Market estimates collected"))
    _interviews(draft, rng, start)
    draft.event("personnel exported", setting.today - timedelta(days=16), "Personnel data exported for the study")
    draft.event("script broken", setting.today - timedelta(days=5), "Monthly report fails since the last change")
    draft.event("orders exported", setting.today - timedelta(days=9), "Raw orders exported from two shop systems")
    draft.event(
        "factbook drafted", setting.today - timedelta(days=24), "Factbook for the information memorandum drafted"
    )
    draft.event("file room opened", setting.today - timedelta(days=26), "Data room index and disclosure drafts")
    draft.event("debt stated", setting.today - timedelta(days=8), "Debt at the last close stated")
    draft.event("claims listed", setting.today - timedelta(days=6), "Claims of the buyer of a former subsidiary listed")
    draft.event("agreement audited", setting.today - timedelta(days=21), "Draft shareholders' agreement circulated")
    for back in (1, 31, 61, 91):
        draft.event("daily business", setting.today - timedelta(days=back), "Everyday traffic", back=back)
    draft.event("statement received", setting.today - timedelta(days=6), "Statement of account received")


def _spend(draft: Draft, rng: Random) -> None:
    """Payments to suppliers in the last twelve months, names as clerks typed them."""
    months, rows = draft.setting.months[-12:], []
    event = draft.event("spend extracted", draft.setting.today - timedelta(days=70), "Spend of twelve months extracted")
    for _ in range(NUM_SPEND):
        supplier = rng.choice(draft.notes["suppliers"])
        name = supplier["name"]
        style = rng.randrange(7)
        written = {0: name.upper(), 1: name.replace(" ", "  ", 1), 2: name.replace(".", ""), 3: name.lower()}.get(
            style, name
        )
        day = (month_start(rng.choice(months)) + timedelta(days=rng.randrange(28))).isoformat()
        rows.append(
            {
                "id": draft.next_id("PY", 4),
                "supplier_id": supplier["id"],
                "as_written": written,
                "date": day,
                "amount": 10 * rng.randrange(40, 9000),
                "category": supplier["category"],
                "valid_from": day,
                "known_from": day,
            }
        )
    draft.truth.add("spend", rows, event=event)


def _prices(draft: Draft, rng: Random, event: str) -> None:
    rows = []
    for segment in draft.setting.trade["segments"]:
        listed = 10 * rng.randrange(60, 240)
        left: float = listed
        for sort, (step, _) in enumerate(STEPS):
            if step == "list_price":
                amount: float = listed
            elif step == "pocket_price":
                amount = left
            else:
                amount = round(listed * rng.uniform(0.01, 0.08), 2)
                left = round(left - amount, 2)
            rows.append({"id": f"{segment}:{step}", "segment": segment, "step": step, "sort": sort, "amount": amount})
    draft.truth.add("price", rows, event=event, at=draft.setting.today.isoformat())


def _survey(draft: Draft, rng: Random, event: str) -> None:
    """Scores from 0 to 10 by segment; one stratum was never asked. Populations are known for all."""
    strata = [*draft.setting.trade["segments"], "New customers"]
    absent = rng.randrange(1, 5)
    draft.notes["missing stratum"] = strata[absent]
    draft.truth.add(
        "stratum",
        [{"id": name, "segment": name, "population": 10 * rng.randrange(12, 190)} for name in strata],
        event=event,
        at=draft.setting.today.isoformat(),
    )
    rows, lean = [], {name: rng.uniform(5.2, 8.8) for name in strata}
    asked = [name for name in strata if name != strata[absent]]
    for _ in range(NUM_RESPONSES):
        segment = rng.choice(asked)
        score = min(10, max(0, round(rng.gauss(lean[segment], 2))))
        day = (draft.setting.today - timedelta(days=rng.randrange(66, 90))).isoformat()
        rows.append(
            {
                "id": draft.next_id("RS", 4),
                "customer_id": rng.choice(draft.notes["customers"])["id"],
                "segment": segment,
                "score": score,
                "date": day,
                "comment": "",
                "valid_from": day,
                "known_from": day,
            }
        )
    draft.truth.add("survey_response", rows, event=event)


def _key_figures(draft: Draft, rng: Random) -> None:
    setting, rows = draft.setting, []
    levels = {name: rng.uniform(40, 96) for name in setting.trade["kpis"]}
    event = ""
    for year in (*setting.years, setting.years[-1] + 1):
        for quarter in range(1, 5):
            months = setting.quarter_months(year, quarter)
            if months[-1] not in setting.months:
                continue
            day = (month_end(months[-1]) + timedelta(days=22)).isoformat()
            event = draft.event(
                "key figures reported", day, f"Key figures Q{quarter} FY{year}", period=f"Q{quarter} FY{year}"
            )
            for name in levels:
                levels[name] = min(99.5, max(8.0, levels[name] + rng.gauss(0.3, 1.6)))
                rows.append(
                    {
                        "id": f"{name}:Q{quarter} FY{year}",
                        "name": name,
                        "period": f"Q{quarter} FY{year}",
                        "value": round(levels[name], 1),
                        "unit": "index",
                        "valid_from": day,
                        "known_from": day,
                        "source_event_id": event,
                    }
                )
    draft.truth.add("kpi", rows, event=event)
    draft.notes["periods"] = list(dict.fromkeys(row["period"] for row in rows))


def _estimates(draft: Draft, rng: Random, event: str) -> None:
    """Three sources with a stated rank; they differ, and count in different scales."""
    base, year, rows = rng.uniform(4e8, 3e9), draft.setting.today.year - 1, []
    for rank, source in enumerate(rng.sample(pack("firms")["sources"], 3), start=1):
        bias = rng.uniform(0.8, 1.25)
        scale = 1_000_000
        for offset in range(3):
            amount = scale * round(base * bias * 1.05**offset / scale)
            rows.append(
                {
                    "id": f"ME{rank}-{year - 2 + offset}",
                    "source": source,
                    "rank": rank,
                    "year": year - 2 + offset,
                    "amount": amount,
                    "currency": draft.setting.currency,
                    "scale": scale,
                }
            )
    draft.truth.add("market_estimate", rows, event=event, at=draft.setting.today.isoformat())
    draft.notes["estimates"] = rows


def _interviews(draft: Draft, rng: Random, start: Any) -> None:
    library = pack("interviews")
    codes = sorted(library["codes"])
    bags: dict[str, list[str]] = {}
    roles = ("Head of Purchasing", "Site Manager", "Finance Lead", "Operations Planner", "Owner", "Branch Manager")
    for number in range(1, NUM_INTERVIEWS + 1):
        interview, chosen = f"IV{number:02d}", sorted(rng.sample(codes, rng.randrange(1, 4)))
        customer = draft.notes["customers"][(number * 5) % len(draft.notes["customers"])]
        day = (start + timedelta(days=number)).isoformat()
        event = draft.event("interview held", day, f"Interview {interview} held", interview=interview)
        row = {
            "id": interview,
            "interviewee": f"{rng.choice(roles)}, {customer['name']}",
            "role": "customer",
            "customer_id": customer["id"],
            "date": day,
            "codes": chosen,
        }
        draft.truth.add("interview", row, event=event, at=day)
        quotes = []
        for code in chosen:
            bag = bags.setdefault(code, [])
            if not bag:
                bag += rng.sample(library["answers"][code], len(library["answers"][code]))
            quotes.append({"id": f"{interview}:{code}", "interview_id": interview, "code": code, "text": bag.pop()})
        draft.truth.add("quote", quotes, event=event, at=day)
