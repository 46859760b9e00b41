"""IB4: from a price per share to enterprise value: net debt, and fully diluted shares by the treasury-stock method.

What makes it hard: a table that shows a commitment where a footnote says what is drawn, a debt that is listed twice,
another that a later note restates, a capitalisation whose total counts every option, and options that only dilute above
their strike.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from journeyman.worlds.curriculum import Knobs
from journeyman.worlds.drafting import json_bytes, sheet, xlsx_bytes
from journeyman.worlds.template import Answer, Bound, Files, Lost, Solving, Unbindable, Wrong
from journeyman.worlds.templates import reading
from journeyman.worlds.templates.banking.sheets import one_file, records, sheet_rows
from journeyman.worlds.verify import Check

if TYPE_CHECKING:
    from journeyman.worlds.office import Office

ANSWER, BOOK = "equity_bridge.json", "equity_bridge.xlsx"
SHEET = "Bridge"
TOL = {"abs": 0.6, "rel": 1e-7}
DEBT = {"2500": "term_loan", "2510": "revolver", "2520": "leases", "1000": "cash"}
"""Account -> key of the answer."""

LINES = {
    "term_loan": "Term loan",
    "revolver": "Revolving facility",
    "leases": "Lease liabilities",
    "cash": "Cash at bank",
    "net_debt": "Net debt",
    "common": "Common shares",
    "preferred": "Preferred shares as converted",
    "options": "Option shares in the money",
    "proceeds": "Proceeds of exercise",
    "repurchased": "Shares repurchased",
    "diluted": "Fully diluted shares",
    "price": "Price per share",
    "equity_value": "Equity value",
    "enterprise_value": "Enterprise value",
}
"""Key of the answer -> line of the workbook, in order from row 2."""

FORMULAS = {
    "net_debt": "=B2+B3+B4-B5",
    "repurchased": "=B10/B13",
    "diluted": "=B7+B8+B9-B11",
    "equity_value": "=B12*B13",
    "enterprise_value": "=B14+B6",
}
MISREAD = {"T2": "T2:as first stated", "T9": "T9:commitment for drawn", "T14": "T14:debt counted twice"}
"""Trap -> its victim."""

TOTALS = ("net_debt", "diluted", "equity_value", "enterprise_value")


@dataclass(frozen=True)
class IB4:
    """See the module."""

    id: str = "IB4"
    domain: str = "banking"
    title: str = "net debt, fully diluted shares and enterprise value at a price"
    traps: tuple[str, ...] = ("T2", "T9", "T14")

    def bind(self, office: Office, rng: random.Random, knobs: Knobs) -> Bound:
        """See ``Template.bind``."""
        holdings = office.truth.rows("SELECT * FROM security ORDER BY id")
        strikes = sorted(row["strike"] for row in holdings if row["share_class"] == "Option")
        if len(strikes) < 2 or not office.of_kind("debt_overview"):
            raise Unbindable("no two tranches of options, or no overview of the debt")
        is_between = rng.random() < 0.5 and strikes[1] - strikes[0] > 1
        low, high = (strikes[0], strikes[1]) if is_between else (strikes[1], strikes[1] + 12)
        price = low + rng.randrange(1, 4 * int(high - low)) / 4
        debts = debts_of(office)
        ask = {"price": price, "currency": office.setting.currency, "files": [ANSWER, BOOK]}
        answer = bridged(debts, holdings, price)
        traps = {one.trap: one for one in office.planted if one.trap in self.traps and one.site.startswith("debt:")}
        misread = {trap: {**debts, **_amounts(one.wrong)} for trap, one in traps.items()}
        table = {**debts, **{key: v for one in traps.values() for key, v in _amounts(one.wrong).items()}}
        drawn, leases = (
            "debt:2510:drawn" if "T9" in traps else "debt:2510",
            "debt:2520:restated" if "T2" in traps else "debt:2520",
        )
        facts = (drawn, "debt:2500", leases, "debt:1000", *(f"security:{r['id']}:shares" for r in holdings))
        return Bound(
            self.id, self.domain, office.id, _instruction(office, ask, rng), ask, answer, _checks(answer),
            (ANSWER, BOOK), _wrong(office, debts, misread, holdings, price),
            trap_blind=bridged(table, holdings, price, is_careless=True),
            single=bridged(table, [], price),
            facts=facts, reads=tuple(office.of_kind(kind)[0].path for kind in ("debt_overview", "cap_table")),
            traps=tuple(sorted(traps)), knobs=knobs, notes={"between": is_between, "debts": len(traps)},
        )  # fmt: skip

    def write(self, bound: Bound, answer: Answer, world: Files, form: str = "plain") -> dict[str, bytes]:
        """See ``Template.write``."""
        return {ANSWER: json_bytes(answer), BOOK: xlsx_bytes(layout(answer, form))}

    def solve(self, ask: Mapping[str, Any]) -> Solving:
        """See ``Template.solve``."""
        debts = yield from stated_debts()
        listed = records((yield from sheet_rows((yield from one_file("*cap*table*.xlsx")))), "Holder")
        holdings = [
            {"share_class": row["Class"], "shares": row["Shares"], "strike": row[f"Strike ({ask['currency']})"]}
            for row in listed
            if row["Class"]
        ]
        if not holdings:
            raise Lost("nobody holds shares")
        answer = bridged(debts, holdings, ask["price"])
        yield from reading.deliver_workbook(BOOK, layout(answer))
        yield from reading.deliver_text(ANSWER, json_bytes(answer))
        yield from reading.tab(f"/artifacts/{BOOK}")


def bridged(
    debts: Mapping[str, int], holdings: Sequence[Mapping[str, Any]], price: float, *, is_careless: bool = False
) -> Answer:
    """The bridge, by the keys of ``LINES``.

    Args:
        debts: drawn amounts and cash by key.
        holdings: rows with ``share_class``, ``shares``, ``strike``.
        is_careless: every option counts as a share and nothing is bought back.
    """
    options = [row for row in holdings if row["share_class"] == "Option" and (is_careless or row["strike"] < price)]
    common = sum(row["shares"] for row in holdings if row["share_class"] == "Common")
    preferred = sum(row["shares"] for row in holdings if str(row["share_class"]).startswith("Series"))
    dilutive = sum(row["shares"] for row in options)
    proceeds = 0 if is_careless else sum(row["shares"] * row["strike"] for row in options)
    net_debt = debts["term_loan"] + debts["revolver"] + debts["leases"] - debts["cash"]
    diluted = common + preferred + dilutive - proceeds / price
    found = {
        **debts, "net_debt": net_debt, "common": common, "preferred": preferred, "options": dilutive,
        "proceeds": proceeds, "repurchased": round(proceeds / price, 4), "diluted": round(diluted, 4), "price": price,
        "equity_value": round(diluted * price, 2), "enterprise_value": round(diluted * price + net_debt, 2),
    }  # fmt: skip
    return {key: found[key] for key in LINES}


def read_debts(text: str) -> dict[str, int]:
    """Drawn amounts and cash of a debt overview, by the keys of ``DEBT``; a footnote replaces what the table says."""
    rows = map(json.loads, re.findall(r"^\s*(\[.*\])$", text, re.M))
    table = {line[0]: line[1] for line in rows if len(line) > 1}
    debts = {key: reading.whole_number(_unmarked(table[LINES[key]])) for key in DEBT.values()}
    note = re.search(r"Drawn at the reporting date: ([^;]*?)\. Only drawn", " ".join(text.split()))
    return debts | ({"revolver": reading.whole_number(note[1])} if note else {})


def stated_debts() -> reading.Reading:
    """Debt and cash by the keys of ``DEBT`` as they stand now: the overview, and the note that restates a line."""
    debts = read_debts((yield from reading.document_text((yield from one_file("*debt*overview*.pdf")))))
    for path in (yield from reading.list_files("*note*lease*liabilities*.pdf", "finance")):
        row = re.search(r'\["Lease liabilities", "[^"]*", "([^"]*)"\]', (yield from reading.document_text(path)))
        if row is None:
            raise Lost(f"{path} restates nothing")
        debts["leases"] = reading.whole_number(row[1])
    return debts


def debts_of(office: Office) -> dict[str, int]:
    """The same by the truth, as it is known today."""
    today = office.truth.as_of(office.today)
    return {
        key: int(today.value("SELECT amount FROM debt_at WHERE id LIKE :i", i=f"DB{code}%"))
        for code, key in DEBT.items()
    }


def _amounts(said: Mapping[str, Any]) -> dict[str, int]:
    """Of what a trap makes of the debts, the parts; sums follow from them."""
    return {key: int(said[key]) for key in DEBT.values() if key in said}


def _unmarked(text: str) -> str:
    """An amount without the mark of its footnote."""
    return re.sub(r"\s*\(\d\)\s*$", "", text)


def _wrong(
    office: Office, debts: Mapping[str, int], misread: Mapping[str, Mapping[str, int]],
    holdings: Sequence[Mapping[str, Any]], price: float,
) -> tuple[Wrong, ...]:  # fmt: skip
    right = bridged(debts, holdings, price)
    last = office.truth.rows("SELECT * FROM share_entry ORDER BY date DESC, id DESC LIMIT 1")[0]
    before = [
        {**row, "shares": row["shares"] - last["shares"]}
        if (row["holder"], row["share_class"]) == (last["holder"], last["share_class"])
        else row
        for row in holdings
    ]
    gross = bridged(debts, holdings, price, is_careless=True)
    exchanged = {**debts, "cash": debts["leases"], "leases": debts["cash"]}
    tripled = [row if row["share_class"] != "Option" else {**row, "strike": 0} for row in holdings]
    versions: dict[str, tuple[Answer, str]] = {
        "every option counted": (gross, "totals"),
        "exercise without buying back": (bridged(debts, tripled, price), "totals"),
        "stale-version": (bridged(debts, before, price), "totals"),
        "swapped-entity": (bridged(exchanged, holdings, price), "workbook"),
        "cash left out": (bridged({**debts, "cash": 0}, holdings, price), "totals"),
        "no preferred": (bridged(debts, [r for r in holdings if r["preference"] is None], price), "totals"),
    }
    found = [Wrong(name, answer, fails) for name, (answer, fails) in versions.items() if answer != right]
    found += [
        Wrong(MISREAD[trap], bridged(given, holdings, price), "workbook", trap) for trap, given in misread.items()
    ]
    return tuple(found)


def _checks(answer: Answer) -> tuple[Check, ...]:
    places = {key: f"{SHEET}!B{number}" for number, key in enumerate(LINES, start=2)}
    cells = {places[key]: answer[key] for key in LINES}
    pairs = [{"a": {"file": ANSWER, "path": key}, "b": {"file": BOOK, "cell": places[key]}} for key in LINES]
    given = {"term_loan": 900, "revolver": 150, "leases": 50, "cash": 300, "common": 1000, "preferred": 400,
             "options": 100, "proceeds": 200, "price": 10}  # fmt: skip
    expect = {"net_debt": 800, "repurchased": 20, "diluted": 1480, "equity_value": 14_800, "enterprise_value": 15_600}
    trial = {
        "set": {places[key]: float(value) for key, value in given.items()},
        "expect": {places[key]: float(value) for key, value in expect.items()},
    }
    parts = {key: answer[key] for key in LINES if key not in (*TOTALS, "price")}
    json_base = {"file": ANSWER, "tol": TOL}
    return (
        Check("shape", "json.shape", {"file": ANSWER, "keys": dict.fromkeys(LINES, "number")}, kind="gate"),
        Check("no errors", "xlsx.no_errors", {"file": BOOK}, kind="gate", no_op="pass"),
        Check("totals", "json.fields", {**json_base, "fields": {key: answer[key] for key in TOTALS}}, weight=0.4,
              trap_ids=tuple(MISREAD)),
        Check("workbook", "xlsx.cells", {"file": BOOK, "cells": cells, "tol": TOL}, weight=0.3,
              trap_ids=tuple(MISREAD)),
        Check("parts", "json.fields", {**json_base, "fields": parts, "credit": "share"}, weight=0.1,
              stage="intermediate"),
        Check("agree", "agree", {"pairs": pairs, "tol": TOL}, weight=0.1, stage="intermediate"),
        Check("follows", "xlsx.follows", {"file": BOOK, "trials": [trial], "tol": TOL}, weight=0.1),
    )  # fmt: skip


def layout(answer: Answer, form: str = "plain") -> list[dict[str, Any]]:
    """One line an item; sums are formulas unless numbers are typed."""
    rows = [
        [label, FORMULAS[key] if key in FORMULAS and form != "typed" else answer.get(key)]
        for key, label in LINES.items()
    ]
    return [sheet(SHEET, ["Item", "Amount"], rows)]


def _instruction(office: Office, ask: Mapping[str, Any], rng: random.Random) -> str:
    setting = office.setting
    opener = rng.choice((
        f"A bidder talks about {ask['currency']} {ask['price']} per share of {setting.company}.",
        f"What is {setting.company} worth in total at {ask['currency']} {ask['price']} per share?",
        f"For the fairness file: bridge a price of {ask['currency']} {ask['price']} per share of {setting.company}.",
    ))  # fmt: skip
    lines = "\n".join(f"{n}. `{label}` (`{key}`)" for n, (key, label) in enumerate(LINES.items(), start=2))
    return f"""{opener}

Bridge it to enterprise value: debt and cash from the debt overview in finance, as restated where finance has restated a
line since (only drawn amounts are debt, and each debt counts once; net debt is the three debts less cash), shares from
the cap table in deals. Preferred shares count as converted one to one, and their preference is ignored. Options follow
the treasury-stock method: those with a strike below the price are exercised in full, and their proceeds buy back shares
at the price. Nothing is rounded.

Save two files:

- `artifacts/{BOOK}` with a sheet `{SHEET}`, `Item` and `Amount` in row 1, and the lines below in the rows whose number
  they bear
- `artifacts/{ANSWER}`, one JSON object with the same amounts as numbers, under the names in brackets

{lines}

In the workbook net debt, the shares repurchased, the diluted shares and both values are formulas of the other lines.
Amounts are whole units of {ask["currency"]} or shares.
"""
