"""IB6: working capital at completion from three trial balances, and the adjustment of the price against the peg.

What makes it hard: liabilities are negative, two companies report in other currencies, subtotals stand among the
accounts of the parent, a subsidiary shows what it owes without a sign or has a stale number among its balances, and
cash and taxes are no working capital although they stand next to it. Long variants build the peg from the month-end
balances of every company, each month at its own rates.
"""

from __future__ import annotations

import csv
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from journeyman.worlds.content import Delimited
from journeyman.worlds.curriculum import Knobs
from journeyman.worlds.drafting import sheet, xlsx_bytes
from journeyman.worlds.events.worksheets import WORKING_CAPITAL
from journeyman.worlds.template import Answer, Bound, Files, Lost, Solving, Unbindable, Wrong
from journeyman.worlds.templates import reading
from journeyman.worlds.templates.banking.sheets import one_file, records, sheet_rows
from journeyman.worlds.templates.matrices import matrix_checks
from journeyman.worlds.verify import Check

if TYPE_CHECKING:
    from journeyman.worlds.office import Office

FILE = "working_capital.xlsx"
COMPLETION, PEG = "Completion", "Peg"
ACCOUNTS = tuple(code for code, _ in WORKING_CAPITAL)
ENTITIES = ("G", "S1", "S2")
TOL = {"abs": 2.0, "rel": 1e-7}
TRAPS = ("T6", "T10", "T13")

MONTHS = {1: (6, 9), 2: (34, 40)}
"""Knob ``length`` -> least and most months of the peg; each is read from three files."""

COMPANIES = ("Month", "Parent", "Subsidiary 1", "Subsidiary 2", "Rate 1", "Rate 2")

Balances = Mapping[str, Mapping[str, float]]
"""Company -> account -> balance in its own currency, debit positive."""


@dataclass(frozen=True)
class IB6:
    """See the module."""

    id: str = "IB6"
    domain: str = "banking"
    title: str = "working-capital peg and adjustment of the price"
    traps: tuple[str, ...] = TRAPS

    def bind(self, office: Office, rng: random.Random, knobs: Knobs) -> Bound:
        """See ``Template.bind``."""
        setting = office.setting
        last = setting.label(setting.months[-1])
        count = rng.randint(*MONTHS[min(knobs.length, 2)]) if knobs.length else rng.randrange(6, 12)
        months = [setting.label(month) for month in setting.months[-1 - count : -1]]
        balances = {
            entity: {code: _fact(office, f"balance:{entity}:{last}:{code}") for code in (*ACCOUNTS, "1000")}
            for entity in ENTITIES
        }
        companies = [_of_month(office, month) for month in months] if knobs.length else []
        by_month = [{"month": row["month"], "amount": converted(row)} for row in companies] or [
            {"month": m, "amount": sum(_fact(office, f"group_balance:{m}:{code}") for code in ACCOUNTS)} for m in months
        ]
        rates = dict.fromkeys(ENTITIES, 1.0) | {
            entity: _rate(office, f"{currency}/{setting.currency}", last)
            for entity, currency in zip(ENTITIES[1:], setting.foreign, strict=True)
        }
        papers = {entity: office.of_kind("trial_balance", f"{entity}:{last}") for entity in ENTITIES}
        if not all(papers.values()) or not office.of_kind("working_capital"):
            raise Unbindable("a trial balance or the monthly balances are missing")
        ask: dict[str, Any] = {
            "months": months, "last": last, "file": FILE, "currency": setting.currency,
            "currencies": dict(zip(ENTITIES, (setting.currency, *setting.foreign), strict=True)),
            "balances": {entity: found[0].path for entity, found in papers.items()}, "is_long": bool(companies),
        }  # fmt: skip
        answer = {"completion": _rows(balances), "rates": rates, "months": by_month}
        if companies:
            answer["companies"] = companies
        shown = {entity: _shown(office, f"balance:{entity}:{last}", own) for entity, own in balances.items()}
        wide = _rows({e: {**own, "1300": own["1300"] + own["1000"]} for e, own in shown.items()})
        flat = dict.fromkeys(ENTITIES, 1.0)
        return Bound(
            self.id, self.domain, office.id, _instruction(office, ask, rng), ask, answer, _checks(answer), (FILE,),
            _wrong(office, balances, shown, answer, months),
            trap_blind={**answer, **_flat(companies), "completion": wide, "rates": flat},
            single={"completion": _rows(dict.fromkeys(ENTITIES, balances["G"])), "rates": flat, "months": [],
                    "companies": []},
            facts=tuple(f"balance:{e}:{last}:{code}" for e in ENTITIES for code in ACCOUNTS),
            reads=(*ask["balances"].values(), *_papers(office, months, bool(companies))),
            traps=tuple(trap for trap in TRAPS if office.trap(trap, "balance:")), unordered=(), knobs=knobs,
            notes={"months": count},
        )  # fmt: skip

    def write(self, bound: Bound, answer: Answer, world: Files, form: str = "plain") -> dict[str, bytes]:
        """See ``Template.write``."""
        return {FILE: xlsx_bytes(layout(answer, form))}

    def solve(self, ask: Mapping[str, Any]) -> Solving:
        """See ``Template.solve``."""
        balances: dict[str, dict[str, float]] = {}
        for entity, path in ask["balances"].items():
            rows = yield from sheet_rows(path)
            lines = {str(row[0]): row[2:4] for row in rows.values() if row and len(row) > 3 and row[0]}
            balances[entity] = {code: float(lines[code][0]) - float(lines[code][1]) for code in ACCOUNTS}
        listed = records((yield from sheet_rows((yield from one_file("*exchange*rates*.xlsx")))), "Pair")
        known = {(row["Pair"], row["Month end"][:7]): row["Rate"] for row in listed if row["Kind"] == "closing"}
        rates = {"G": 1.0} | {entity: _known_rate(known, ask, entity, ask["last"]) for entity in ENTITIES[1:]}
        answer: Answer = {"completion": _rows(balances), "rates": rates}
        if ask["is_long"]:
            answer["companies"] = yield from _read_months(known, ask)
            answer["months"] = [{"month": row["month"], "amount": converted(row)} for row in answer["companies"]]
        else:
            table = records(
                (yield from sheet_rows((yield from one_file("*working*capital*.xlsx", "deals")))), "Account"
            )
            answer["months"] = [{"month": month, "amount": sum(row[month] for row in table)} for month in ask["months"]]
        yield from reading.deliver_workbook(FILE, layout(answer))
        yield from reading.tab(f"/artifacts/{FILE}", 1)


def _known_rate(known: Mapping[tuple[str, str], float], ask: Mapping[str, Any], entity: str, month: str) -> float:
    pair = f"{ask['currencies'][entity]}/{ask['currency']}"
    if not known.get((pair, month)):
        raise Lost(f"no rate of {pair} at the end of {month}")
    return float(known[pair, month])


def _read_months(known: Mapping[tuple[str, str], float], ask: Mapping[str, Any]) -> reading.Reading:
    """Working capital of every company at every month end, from a file each, and the rates of the month."""
    listed = yield from reading.list_files("*month*end*.csv", "finance/monthly")
    found = []
    for month in ask["months"]:
        row: dict[str, Any] = {"month": month}
        for entity in ENTITIES:
            name = re.compile(rf"[_\W]{entity}[_\W]{month}\.csv$", re.IGNORECASE)
            path = next((one for one in listed if name.search(one)), "")
            if not path:
                raise Lost(f"no balances of {entity} at the end of {month}")
            lines = csv.DictReader((yield from reading.plain_text(path)).splitlines())
            row[entity] = sum(int(line["balance"]) for line in lines if line["account"] in ACCOUNTS)
        row |= {f"rate_{e}": _known_rate(known, ask, e, month) for e in ENTITIES[1:]}
        found.append(row)
    return found


def converted(row: Mapping[str, Any]) -> float:
    """Working capital of the group in a month."""
    return float(row["G"] + sum(row[entity] * row[f"rate_{entity}"] for entity in ENTITIES[1:]))


def _of_month(office: Office, month: str) -> dict[str, Any]:
    """What the files of a month end say, and its closing rates."""
    row: dict[str, Any] = {"month": month}
    for entity in ENTITIES:
        papers = office.of_kind("month_end", f"{entity}:{month}")
        if len(papers) != 1 or not isinstance(papers[0].content, Delimited):
            raise Unbindable(f"{len(papers)} balances of {entity} at the end of {month}")
        row[entity] = sum(int(line[2]) for line in papers[0].content.rows[1:] if line[0] in ACCOUNTS)
    for entity, currency in zip(ENTITIES[1:], office.setting.foreign, strict=True):
        row[f"rate_{entity}"] = _rate(office, f"{currency}/{office.setting.currency}", month)
    return row


def _papers(office: Office, months: Sequence[str], is_long: bool) -> list[str]:
    if not is_long:
        return [office.of_kind("working_capital")[0].path]
    return [office.of_kind("month_end", f"{entity}:{month}")[0].path for month in months for entity in ENTITIES]


def _flat(companies: Sequence[Mapping[str, Any]]) -> Answer:
    """Months that nobody converted."""
    rows = [{**row, **{f"rate_{entity}": 1.0 for entity in ENTITIES[1:]}} for row in companies]
    months = [{"month": row["month"], "amount": converted(row)} for row in rows]
    return {"companies": rows, "months": months} if rows else {}


def _fact(office: Office, fact: str) -> float:
    found = office.facts.get(fact)
    if found is None:
        raise Unbindable(f"no {fact}")
    return float(found.value)


def _shown(office: Office, base: str, own: Mapping[str, float]) -> dict[str, float]:
    """What the column of balances shows, where that is not debit less credit."""
    baits = {code: office.facts.get(f"{base}:{code}:shown") for code in own}
    return {code: float(bait.value) if (bait := baits[code]) else value for code, value in own.items()}


def _rate(office: Office, pair: str, month: str) -> float:
    sql = "SELECT rate FROM fx_rate WHERE pair = :p AND kind = 'close' AND substr(date, 1, 7) = :m"
    return float(office.truth.value(sql, p=pair, m=month))


def _rows(balances: Balances) -> list[dict[str, Any]]:
    """One row per account, one column per company."""
    return [{"account": code, **{entity: balances[entity][code] for entity in ENTITIES}} for code in ACCOUNTS]


def totals(answer: Mapping[str, Any]) -> dict[str, float]:
    """Peg, working capital at completion, adjustment."""
    completion = sum(row[e] * answer["rates"][e] for row in answer["completion"] for e in ENTITIES)
    amounts = [row["amount"] for row in answer["months"]]
    peg = sum(amounts) / len(amounts) if amounts else 0.0
    return {"peg": peg, "completion": completion, "adjustment": completion - peg}


def _wrong(
    office: Office, balances: Balances, shown: Balances, answer: Answer, months: Sequence[str]
) -> tuple[Wrong, ...]:
    setting = office.setting
    planted = {trap: found for trap in TRAPS if (found := office.trap(trap, "balance:"))}
    subtotal = float(planted["T10"].right["current_assets"]) if "T10" in planted else 0.0
    ends = [setting.label(month) for month in setting.months[-len(months) - 2 : -2]]
    early = [{"month": m, "amount": row["amount"]} for m, row in zip(ends, answer["months"], strict=True)]
    positive = _rows({e: {code: abs(value) for code, value in own.items()} for e, own in balances.items()})
    swapped = [{**row, "S1": row["S2"], "S2": row["S1"]} for row in answer["completion"]]
    own = balances["G"]
    doubled = _rows({**balances, "G": {**own, "1100": own["1100"] + subtotal}})
    flat = dict.fromkeys(ENTITIES, 1.0)
    divided = {entity: 1 / rate for entity, rate in answer["rates"].items()}
    versions: dict[str, tuple[Answer, str]] = {
        "liabilities added": ({**answer, "completion": positive}, "every cell"),
        "swapped-entity": ({**answer, "completion": swapped}, "every cell"),
        "not converted": ({**answer, **_flat(answer.get("companies", ())), "rates": flat}, "every cell"),
        "divided by the rate": ({**answer, "rates": divided}, "every cell"),
        "stale-version": ({**answer, "months": early, "completion": _rows({**balances, "S1": own})}, "every cell"),
    }
    fallen = {"T10": ("subtotal counted", doubled)} if subtotal else {}
    for trap, words in (("T6", "sign as shown"), ("T13", "pasted balance kept")):
        if trap in planted:
            entity = planted[trap].site.split(":")[1]
            fallen[trap] = (words, _rows({**balances, entity: shown[entity]}))
    return (
        *(Wrong(name, made, fails) for name, (made, fails) in versions.items()),
        *(Wrong(f"{trap}:{words}", {**answer, "completion": made}, "every cell", trap)
          for trap, (words, made) in fallen.items()),
    )  # fmt: skip


def _checks(answer: Answer) -> tuple[Check, ...]:
    rates = answer["rates"]
    names = ("Account", "Parent", "Subsidiary 1", "Subsidiary 2", "Group")
    columns: list[dict[str, Any]] = [{"name": name, "tol": TOL} for name in names]
    columns[0].pop("tol")
    cells = [
        [
            {"one_of": [row["account"], int(row["account"])]},
            *(row[e] for e in ENTITIES),
            sum(row[e] * rates[e] for e in ENTITIES),
        ]
        for row in answer["completion"]
    ]
    cells.append(["Rate", *(None for _ in names[1:])])
    hard = [(number, column) for number in range(len(ACCOUNTS)) for column in (1, 4)]
    months = [[row["month"], row["amount"]] for row in answer["months"]]
    last = len(months) + 2
    found = totals(answer)
    results = {f"{PEG}!B{last}": found["peg"], f"{PEG}!B{last + 1}": found["completion"],
               f"{PEG}!B{last + 2}": found["adjustment"]}  # fmt: skip
    moved: dict[str, float] = {f"{COMPLETION}!C8": 2.0, f"{COMPLETION}!D8": 0.5, f"{COMPLETION}!B2": 1_000_000.0}
    changed = [dict(row) for row in answer["completion"]]
    changed[0]["G"] = 1_000_000.0
    other = totals({**answer, "completion": changed, "rates": {"G": 1.0, "S1": 2.0, "S2": 0.5}})
    expect = {f"{PEG}!B{last + 1}": other["completion"], f"{PEG}!B{last + 2}": other["adjustment"]}
    return (
        Check("files", "present", {"files": [FILE]}, kind="gate", no_op="pass"),
        Check("no errors", "xlsx.no_errors", {"file": FILE}, kind="gate", no_op="pass"),
        *_weighed(matrix_checks(FILE, columns, cells, hard, key=["Account"], sheet=COMPLETION, trap_ids=TRAPS)),
        Check("months", "table", {"file": FILE, "sheet": PEG, "rows": months, "extra": "ignored",
              "columns": [{"name": "Month"}, {"name": "Working capital", "tol": TOL}]}, weight=0.05,
              stage="intermediate"),
        Check("rates", "xlsx.cells", {"file": FILE, "tol": {"rel": 1e-6}, "cells": {
            f"{COMPLETION}!{letter}8": rates[entity] for letter, entity in zip("BCD", ENTITIES, strict=True)
        }}, weight=0.05, stage="intermediate"),
        Check("results", "xlsx.cells", {"file": FILE, "cells": results, "tol": TOL}, weight=0.3, trap_ids=TRAPS),
        Check("follows", "xlsx.follows", {"file": FILE, "trials": [{"set": moved, "expect": expect}], "tol": TOL},
              weight=0.1),
        *(_company_checks(answer["companies"]) if "companies" in answer else ()),
    )  # fmt: skip


def _company_checks(companies: Sequence[Mapping[str, Any]]) -> tuple[Check, ...]:
    """What the peg is built from: every company in every month, and the rates."""
    amounts, rates = ([{"name": one, "tol": tol} for one in names] for names, tol in (
        (COMPANIES[1:4], TOL), (COMPANIES[4:], {"rel": 1e-6})
    ))  # fmt: skip
    base: dict[str, Any] = {"file": FILE, "sheet": "Companies"}
    return (
        Check("companies", "table", {**base, "columns": [{"name": "Month"}, *amounts],
              "rows": [[row["month"], *(row[e] for e in ENTITIES)] for row in companies]}, weight=0.05,
              stage="intermediate"),
        Check("monthly rates", "table", {**base, "columns": [{"name": "Month"}, *rates],
              "rows": [[row["month"], *(row[f"rate_{e}"] for e in ENTITIES[1:])] for row in companies]}, weight=0.05,
              stage="intermediate"),
    )  # fmt: skip


def _weighed(checks: tuple[Check, ...]) -> tuple[Check, ...]:
    """The same checks with weights that leave half to the results."""
    weights = {"every cell": 0.3, "hard cells": 0.15, "most cells": 0.05}
    return tuple(replace(check, weight=weights[check.id]) for check in checks)


def layout(answer: Answer, form: str = "plain") -> list[dict[str, Any]]:
    """Both sheets; the group and the results are formulas unless numbers are typed."""
    is_typed, rates = form == "typed", answer["rates"]
    accounts: list[list[Any]] = []
    for number, row in enumerate(answer["completion"], start=2):
        own = [row.get(entity) for entity in ENTITIES]
        group: Any = f"=B{number}*B$8+C{number}*C$8+D{number}*D$8"
        if is_typed:
            group = sum((value or 0) * rates[entity] for value, entity in zip(own, ENTITIES, strict=True))
        accounts.append([row.get("account"), *own, group])
    accounts += [[None] * 5 for _ in range(6 - len(accounts))]
    accounts.append(["Rate", *(rates.get(entity) for entity in ENTITIES), None])
    months = [[row.get("month"), row.get("amount")] for row in answer["months"]]
    last = len(months) + 1
    results: list[Any] = [
        f"=AVERAGE(B2:B{last})" if months else 0,
        f"=SUM({COMPLETION}!E2:E7)",
        f"=B{last + 2}-B{last + 1}",
    ]
    if is_typed:
        results = list(totals(answer).values())
    lines = zip(("Peg", "Completion", "Adjustment"), results, strict=True)
    own = [[row.get(key) for key in ("month", *ENTITIES, "rate_S1", "rate_S2")] for row in answer.get("companies", ())]
    return [
        sheet(COMPLETION, ["Account", "Parent", "Subsidiary 1", "Subsidiary 2", "Group"], accounts),
        sheet(PEG, ["Month", "Working capital"], [*months, *map(list, lines)]),
        *([sheet("Companies", COMPANIES, own)] if "companies" in answer else []),
    ]


def _instruction(office: Office, ask: Mapping[str, Any], rng: random.Random) -> str:
    opener = rng.choice((
        f"The sale of {office.setting.company} needs its working capital adjustment.",
        f"By how much does working capital move the price of {office.setting.company}?",
        f"Buyer and seller of {office.setting.company} want to see the peg and what completion would look like today.",
    ))  # fmt: skip
    paths, months, money = ask["balances"], ask["months"], ask["currencies"]
    count = len(months)
    source, third = "from the monthly balances of the group in deals", ""
    if ask["is_long"]:
        source = "from the balances of the three companies in finance/monthly at the closing rates of each month"
        third = f"""- `Companies`: one row per month of the peg: `Month`; `Parent`, `Subsidiary 1`, `Subsidiary 2`
  (working capital, in the company's own currency); `Rate 1`, `Rate 2` ({ask["currency"]} for one unit of the
  subsidiary's currency at the end of the month)
"""
    return f"""{opener}

Working capital is, as the draft purchase agreement defines it, trade receivables, inventories and prepaid expenses less
trade payables, accrued expenses and deferred income (accounts {", ".join(ACCOUNTS)}), and nothing else. The peg is its
average over the {count} month ends from {months[0]} to {months[-1]}, {source}.
Completion is taken to be the end of {ask["last"]}, from the trial balances of the parent ({paths["G"]}), subsidiary 1
({paths["S1"]}, {money["S1"]}) and subsidiary 2 ({paths["S2"]}, {money["S2"]}), at the closing rates of that month. An
account's balance is its debit less its credit.

Save `artifacts/{FILE}` with these sheets, headers in row 1, debit balances positive and credit balances negative:

- `{COMPLETION}`: columns A to E `Account`, `Parent`, `Subsidiary 1`, `Subsidiary 2`, `Group`; rows 2 to 7 are the
  accounts in the order above, each company in its own currency, `Group` in {ask["currency"]} by a formula with the
  rates of row 8; row 8 is `Rate`: {ask["currency"]} for one unit of each company's currency
- `{PEG}`: columns A and B `Month`, `Working capital`; rows 2 to {count + 1} the months (such as {months[0]}) with the
  group's working capital; then rows `Peg`, `Completion`, `Adjustment` (completion less peg), as formulas. Nothing is
  rounded.
{third}"""
