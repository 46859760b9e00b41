"""Contracts with typed clauses, the amendments that supersede some of them, public holidays, the credit agreement."""

from __future__ import annotations

from datetime import date, timedelta
from random import Random
from typing import Any

from journeyman.worlds.data import pack
from journeyman.worlds.draft import Draft
from journeyman.worlds.simulate.calendars import month_end, month_start

COUNTS = {"customer": 18, "supply": 11, "lease": 4, "licence": 4, "distribution": 4, "consultancy": 3}
NUM_AMENDED = 12
AMENDABLE = ("renewal_notice", "payment_days", "liability_cap", "termination_convenience", "price_adjustment", "term")
HOLIDAYS = ((1, 1), (1, 6), (5, 1), (5, 25), (6, 19), (7, 4), (8, 15), (10, 3), (11, 1), (12, 25), (12, 26))


def simulate_legal(draft: Draft) -> None:
    """Forty-four contracts, twelve of them amended; holidays; a credit agreement with an amendment."""
    rng, setting = draft.rng("legal"), draft.setting
    first, last = month_start(setting.first_month), setting.today
    event = draft.event("holidays published", first, "Public holidays at the seat of the company")
    rows = [
        {"id": f"HD{year}{month:02d}{day:02d}", "date": date(year, month, day).isoformat(), "name": "public holiday"}
        for year in range(first.year, last.year + 2)
        for month, day in HOLIDAYS
    ]
    draft.truth.add("holiday", rows, event=event, at=first.isoformat())
    _suppliers(draft, rng, event)
    contracts = [_contract(draft, rng, kind) for kind, count in COUNTS.items() for _ in range(count)]
    for contract in rng.sample(contracts, NUM_AMENDED):
        _amend(draft, rng, contract)
    _credit_agreement(draft, rng)


def _suppliers(draft: Draft, rng: Random, event: str) -> None:
    """Some suppliers are one group under several names; the books write all of them in their own way."""
    stems = rng.sample(pack("firms")["suppliers"], 20)
    rows: list[dict[str, Any]] = []
    for number, stem in enumerate(stems):
        category = draft.setting.trade["supplies"][number % 4]
        names = [f"{stem} {rng.choice(draft.setting.locale['forms'])}"]
        if number < 6:
            names.append(rng.choice((f"{stem} Trading {draft.setting.locale['forms'][0]}", f"{stem} International")))
        for name in names:
            rows.append({"id": draft.next_id("VE"), "name": name, "category": category, "group_name": stem})
    draft.truth.add("supplier", rows, event=event, at=month_start(draft.setting.first_month).isoformat())
    draft.notes["suppliers"] = rows


def _counterparty(draft: Draft, rng: Random, kind: str, number: int) -> tuple[str, str | None]:
    customers, suppliers = draft.notes["customers"], draft.notes["suppliers"]
    if kind in ("customer", "distribution"):
        row = customers[number % len(customers)]
        return row["name"], row["id"]
    if kind == "supply":
        return suppliers[number % len(suppliers)]["name"], None
    if kind == "consultancy":
        return rng.choice(pack("firms")["consultants"]), None
    stem = rng.choice(pack("firms")["peers"])
    return f"{stem} {'Estates' if kind == 'lease' else 'Software'} {rng.choice(draft.setting.locale['forms'])}", None


def _contract(draft: Draft, rng: Random, kind: str) -> dict[str, Any]:
    library, setting = pack("clauses"), draft.setting
    contract_id = draft.next_id("K")
    number = int(contract_id[1:])
    counterparty, customer = _counterparty(draft, rng, kind, number)
    months = setting.months
    day = month_start(rng.randrange(months[0] - 14, months[-8])) + timedelta(days=rng.randrange(28))
    title = library["kinds"][kind]["title"]
    event = draft.event("contract signed", day, f"{title} with {counterparty} signed", contract=contract_id)
    contract = {
        "id": contract_id, "kind": kind, "counterparty": counterparty, "customer_id": customer,
        "date": day.isoformat(), "title": title, "format": rng.choice(("pdf", "pdf", "docx")), "signed": 1,
    }  # fmt: skip
    draft.truth.add("contract", contract, event=event, at=day.isoformat())
    types = library["kinds"][kind]["types"]
    clauses = [
        {"id": f"{contract_id}/{no}", "contract_id": contract_id, "no": no, "type": clause,
         "params_json": draw_params(rng, clause, setting.currency, setting.locale["law"]), "supersedes": None,
         "amendment_id": None}
        for no, clause in enumerate(types, start=4)
    ]  # fmt: skip
    draft.truth.add("clause", clauses, event=event, at=day.isoformat())
    draft.notes.setdefault("contracts", {})[contract_id] = {**contract, "clauses": clauses, "event": event}
    return contract


def draw_params(rng: Random, clause: str, currency: str, law: str = "") -> dict[str, Any]:
    """What a clause of a type says: ``value`` and, where it has one, ``days``; the wording it uses."""
    kind = pack("clauses")["types"][clause]
    value = law if clause == "governing_law" and law and rng.random() < 0.6 else rng.choice(kind["values"])
    params: dict[str, Any] = {"value": value, "unit": kind["unit"], "wording": rng.randrange(6)}
    if kind["unit"] == "currency":
        params["currency"] = currency
    if clause == "change_of_control" and value != "none":
        params["days"] = rng.choice((10, 15, 20, 30, 45))
    return params


def _amend(draft: Draft, rng: Random, contract: dict[str, Any]) -> None:
    """A signed amendment that replaces one clause, some time after the contract."""
    known = draft.notes["contracts"][contract["id"]]
    sites = [row for row in known["clauses"] if row["type"] in AMENDABLE]
    old = rng.choice(sites)
    signed = date.fromisoformat(contract["date"])
    day = signed + timedelta(days=rng.randrange(120, max(150, (draft.setting.today - signed).days - 30)))
    new = draw_params(rng, old["type"], draft.setting.currency)
    while new["value"] in (old["params_json"]["value"], 0):
        new = draw_params(rng, old["type"], draft.setting.currency)
    amendment = f"{contract['id']}-A1"
    event = draft.event("amendment executed", day, f"Amendment to {contract['id']} executed", contract=contract["id"],
                        amendment=amendment, clause=old["id"])  # fmt: skip
    at = day.isoformat()
    draft.truth.add("amendment", {"id": amendment, "contract_id": contract["id"], "no": 1, "date": at, "signed": 1},
                    event=event, at=at)  # fmt: skip
    draft.truth.close("clause", old["id"], valid_to=at)
    row = {**old, "id": f"{old['id']}b", "params_json": new, "supersedes": old["id"], "amendment_id": amendment}
    draft.truth.add("clause", row, event=event, at=at)
    known["amendment"] = {"id": amendment, "date": at, "event": event, "old": old, "new": row}


def _credit_agreement(draft: Draft, rng: Random) -> None:
    setting = draft.setting
    day = month_end(setting.months[0]) + timedelta(days=9)
    lender = draft.notes["firms"]["lender"]
    event = draft.event("credit agreement signed", day, f"Facilities agreement with {lender} signed")
    draft.truth.add(
        "contract",
        {"id": "CA", "kind": "credit", "counterparty": lender, "customer_id": None, "date": day.isoformat(),
         "title": "Senior Facilities Agreement", "format": "pdf", "signed": 1}, event=event, at=day.isoformat(),
    )  # fmt: skip
    levels = {"leverage": rng.choice((3.25, 3.5, 3.75)), "interest_cover": rng.choice((3.0, 3.5, 4.0)),
              "liquidity": 50_000 * rng.randrange(4, 14)}  # fmt: skip
    numbers = {"leverage": 21, "interest_cover": 22, "liquidity": 23}
    rows = [
        {"id": f"CV-{name}", "contract_id": "CA", "name": name, "clause_no": numbers[name], "threshold": level,
         "direction": "max" if name == "leverage" else "min"}
        for name, level in levels.items()
    ]  # fmt: skip
    draft.truth.add("covenant", rows, event=event, at=day.isoformat())
    later = month_end(setting.months[-9]) + timedelta(days=rng.randrange(5, 25))
    amended = draft.event("facility amended", later, "Amendment no. 1 to the facilities agreement executed")
    draft.truth.close("covenant", "CV-leverage", valid_to=later.isoformat())
    reset = {**rows[0], "id": "CV-leverage-b", "threshold": levels["leverage"] - 0.5}
    draft.truth.add("covenant", reset, event=amended, at=later.isoformat())
    draft.notes["credit"] = {"date": day.isoformat(), "levels": levels, "numbers": numbers, "event": event,
                             "amended": later.isoformat(), "reset": reset["threshold"]}  # fmt: skip
