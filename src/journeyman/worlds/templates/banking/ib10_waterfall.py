"""IB10: who gets what at three exit values: preferences, conversion, participation, options.

What makes it hard: signed deeds have changed what the cap table shows, a draft has not, and one deed bears a change
that was declined; a class converts only where that gives it more, which depends on what the others do, options are
exercised only above their strike, and below the sum of preferences seniority decides.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from journeyman.worlds.curriculum import Knobs
from journeyman.worlds.drafting import sheet, xlsx_bytes
from journeyman.worlds.template import Answer, Bound, Files, Lost, Solving, Unbindable, Wrong
from journeyman.worlds.templates import reading
from journeyman.worlds.templates.banking.declined import is_marked, what_stays
from journeyman.worlds.templates.banking.proceeds import Holding, Split, forgetful, pro_rata, split
from journeyman.worlds.templates.banking.sheets import one_file, records, sheet_rows
from journeyman.worlds.templates.matrices import matrix_checks
from journeyman.worlds.verify import Check

if TYPE_CHECKING:
    from journeyman.worlds.office import Office

FILE = "waterfall.xlsx"
SHEET, CLASSES, TERMS = "Waterfall", "Classes", "Stages"
EXITS = ("Exit 1", "Exit 2", "Exit 3")
STAGES = ("Exit", "Amount", "Preferences", "Strikes", "Shares", "Value", "Converts")
TOL = {"abs": 2.0, "rel": 1e-7}
ROUNDS = 8
"""Draws of exit values until each misreading of the rights shows."""

AMENDED = re.compile(r"The preference of (.+?), until now .+?, is replaced .+? of this deed by (.+?), payable once")


@dataclass(frozen=True)
class IB10:
    """See the module."""

    id: str = "IB10"
    domain: str = "banking"
    title: str = "waterfall of the proceeds over the cap table"
    traps: tuple[str, ...] = ("T1", "T17")

    def bind(self, office: Office, rng: random.Random, knobs: Knobs) -> Bound:
        """See ``Template.bind``."""
        holdings = office.truth.rows("SELECT * FROM security ORDER BY id")
        if len({(row["holder"], row["share_class"]) for row in holdings}) < len(holdings):
            raise Unbindable("a holder has one class twice")
        baits = _baits(office, holdings)
        exits = _exits(holdings, [read for _, read in baits.values()], rng)
        ask = {"exits": exits, "currency": office.setting.currency, "today": office.today, "file": FILE}
        answer = answered(holdings, exits)
        rows: list[dict[str, Any]] = answer["payouts"]
        plain = _answer(holdings, exits, [pro_rata(holdings, value) for value in exits])
        fooled = holdings
        for _, read in baits.values():
            changed = {row["id"]: row for row, right in zip(read, holdings, strict=True) if row != right}
            fooled = [changed.get(row["id"], row) for row in fooled]
        blind = answered(forgetful(fooled), exits)
        hard = [
            (number, column)
            for number, (row, other) in enumerate(zip(rows, blind["payouts"], strict=True))
            for column, name in enumerate(EXITS, start=2)
            if abs(row[name] - other[name]) > TOL["abs"]
        ]
        if not hard:
            raise Unbindable("rights make no difference at these exits")
        wrong = _wrong(holdings, exits, answer, plain, baits)
        stated = (f"security:{row['id']}:{key}" for row in holdings for key in ("shares", "preference"))
        return Bound(
            self.id, self.domain, office.id, _instruction(office, ask, rng), ask, answer,
            _checks(answer, hard), (FILE,), wrong, trap_blind=blind, single=plain,
            facts=tuple(fact for fact in stated if fact in office.facts),
            reads=tuple(one.path for kind in ("cap_table", "rights_deed") for one in office.of_kind(kind)),
            traps=tuple(sorted({one.trap for one in wrong if one.trap})), unordered=("payouts",), knobs=knobs,
            notes={"converts": [len(row["converts"].split("; ")) for row in answer["per_share"]]},
        )  # fmt: skip

    def write(self, bound: Bound, answer: Answer, world: Files, form: str = "plain") -> dict[str, bytes]:
        """See ``Template.write``."""
        return {FILE: xlsx_bytes(layout(answer, form))}

    def solve(self, ask: Mapping[str, Any]) -> Solving:
        """See ``Template.solve``."""
        path = yield from one_file("*cap*table*.xlsx")
        table = records((yield from sheet_rows(path)), "Holder")
        rights = yield from reading.tab(path, 1)
        if "Participating" not in rights:
            raise Lost("the rights of the classes are not described")
        money = ask["currency"]
        amended = yield from _amended()
        holdings = [
            {
                "holder": row["Holder"], "share_class": row["Class"], "shares": row["Shares"],
                "strike": row[f"Strike ({money})"],
                "preference": amended.get(row["Class"], row[f"Preference ({money})"]),
                "participating": {"yes": 1, "no": 0}.get(str(row["Participating"])),
                "seniority": next(value for key, value in row.items() if str(key).startswith("Seniority")),
            }
            for row in table
            if row["Class"]
        ]  # fmt: skip
        answer = answered(holdings, ask["exits"])
        yield from reading.deliver_workbook(FILE, layout(answer))
        yield from reading.tab(f"/artifacts/{FILE}")


def _amended() -> reading.Reading:
    """Class -> the preference that the last signed deed gives it, without changes that were declined."""
    found = {}
    for deed in (yield from reading.list_files("*deed*amendment*", "legal/corporate")):
        raw = yield from reading.addressed_text(deed)
        flat = " ".join(reading.without_addresses(raw).split())
        new = AMENDED.search(flat)
        if new is None or not reading.is_signed(flat):
            continue
        amount = new[2]
        if is_marked(raw):
            subject = f"Deed of amendment, {new[1]}: change not accepted"
            amount = yield from what_stays(subject, "The preference stays at", " in total")
        found[new[1]] = reading.whole_number(amount)
    return found


def _baits(office: Office, holdings: Sequence[Holding]) -> dict[str, tuple[str, list[dict[str, Any]]]]:
    """Misreading -> (its trap, the holdings as its victim takes them): preferences that deeds have not left so."""
    names = {"table": "preference of the cap table", "draft": "unsigned deed", "preference": "tracked change"}
    found = {}
    for planted in office.planted:
        if planted.trap in ("T1", "T17") and planted.site.startswith("security:"):
            number = planted.site.split(":")[1]
            for key, value in planted.wrong.items():
                read = [{**row, "preference": value} if row["id"] == number else dict(row) for row in holdings]
                found[f"{planted.trap}:{names[key]}"] = (planted.trap, read)
    return found


def _exits(holdings: Sequence[Holding], others: Sequence[Sequence[Holding]], rng: random.Random) -> list[int]:
    """A value below the preferences, one near them, one far above; no decision is close. Raises Unbindable.

    Args:
        others: holdings as victims of traps take them; each should get something else at one of the values at least.
    """
    best: tuple[int, list[int]] = (-1, [])
    for _ in range(ROUNDS):
        exits = _three(holdings, rng)
        told = sum(any(_differs(holdings, other, value) for value in exits) for other in others)
        best = max(best, (told, exits), key=lambda one: one[0])
        if told == len(others):
            break
    return best[1]


def _three(holdings: Sequence[Holding], rng: random.Random) -> list[int]:
    owed = sum(row["preference"] or 0 for row in holdings)
    strikes = [row["strike"] for row in holdings if row["share_class"] == "Option"]
    count = sum(row["shares"] for row in holdings)
    high = owed + count * max(strikes, default=5)
    found = []
    for low, top in ((0.45 * owed, 0.95 * owed), (1.2 * owed, 0.6 * high), (1.05 * high, 2.2 * high)):
        for _ in range(12):
            value = 100_000 * round(rng.uniform(low, max(top, 1.3 * low)) / 100_000)
            if not split(holdings, value).is_close:
                found.append(value)
                break
    if len(found) != len(EXITS):
        raise Unbindable("a decision hangs on a hair at every exit")
    return found


def _differs(holdings: Sequence[Holding], other: Sequence[Holding], value: float) -> bool:
    pairs = zip(split(holdings, value).payouts, split(other, value).payouts, strict=True)
    return any(abs(one - two) > 0.001 * value for one, two in pairs)


def answered(holdings: Sequence[Holding], exits: Sequence[float]) -> Answer:
    """Payouts by holding, and how each exit value comes down to a common share."""
    return _answer(holdings, exits, [split(holdings, value) for value in exits])


def _answer(holdings: Sequence[Holding], exits: Sequence[float], splits: Sequence[Split]) -> Answer:
    payouts = [
        {"holder": row["holder"], "class": row["share_class"]}
        | {name: round(one.payouts[n], 2) for name, one in zip(EXITS, splits, strict=True)}
        for n, row in enumerate(holdings)
    ]
    terms = [
        {"exit": name, "amount": value, "preferences": round(one.preferences, 2), "strikes": round(one.strikes, 2),
         "shares": one.shares, "converts": "; ".join(one.converts) or "none"}
        for name, value, one in zip(EXITS, exits, splits, strict=True)
    ]  # fmt: skip
    return {"payouts": payouts, "per_share": terms}


def _wrong(
    holdings: Sequence[Holding], exits: Sequence[float], answer: Answer, plain: Answer,
    baits: Mapping[str, tuple[str, Sequence[Holding]]],
) -> tuple[Wrong, ...]:  # fmt: skip
    rows: list[dict[str, Any]] = answer["payouts"]
    junior = [{**row, "seniority": None if row["seniority"] is None else 3 - row["seniority"]} for row in holdings]
    free = [{**row, "strike": None if row["strike"] is None else 0.0} for row in holdings]
    before = [row for row in holdings if row["share_class"] != "Option"]
    gross = [dict(row) for row in rows]
    for row, holding in zip(gross, holdings, strict=True):
        for name in EXITS:
            row[name] += holding["shares"] * (holding["strike"] or 0) if row[name] else 0
    shifted = [{**row, "Exit 3": rows[n - 1]["Exit 3"]} for n, row in enumerate(rows)]
    exchanged = [{**row, "Exit 1": row["Exit 2"], "Exit 2": row["Exit 1"]} for row in rows]
    versions = {
        "by shares alone": (plain, "stages"),
        "seniority the other way": (answered(junior, exits), "classes"),
        "options for free": (answered(free, exits), "every cell"),
        "strike not deducted": ({**answer, "payouts": gross}, "adds up"),
        "stale-version": (answered(before, exits), "every cell"),
        "swapped-entity": ({**answer, "payouts": shifted}, "every cell"),
        "exits exchanged": ({**answer, "payouts": exchanged}, "sheets agree"),
        **{name: (answered(read, exits), "every cell") for name, (_, read) in baits.items()},
    }
    return tuple(
        Wrong(name, made, fails, baits[name][0] if name in baits else "")
        for name, (made, fails) in versions.items()
        if made["payouts"] != rows
    )


def _checks(answer: Answer, hard: list[tuple[int, int]]) -> tuple[Check, ...]:
    columns: list[dict[str, Any]] = [{"name": "Holder"}, {"name": "Class"}, *({"name": n, "tol": TOL} for n in EXITS)]
    cells = [[row["holder"], row["class"], *(row[name] for name in EXITS)] for row in answer["payouts"]]
    return (
        Check("files", "present", {"files": [FILE]}, kind="gate", no_op="pass"),
        Check("no errors", "xlsx.no_errors", {"file": FILE}, kind="gate", no_op="pass"),
        *matrix_checks(FILE, columns, cells, hard, key=["Holder", "Class"], sheet=SHEET, trap_ids=("T1", "T17")),
        *_stage_checks(answer["per_share"]),
        *_sum_checks(answer),
    )


def _stage_checks(terms: Sequence[Mapping[str, Any]]) -> tuple[Check, ...]:
    """Each step from the exit value to a common share, and that the last one is computed from those before."""
    rows = [
        [row["exit"], row["amount"], row["preferences"], row["strikes"], row["shares"], per_share(row),
         {"set": row["converts"].split("; ")}]
        for row in terms
    ]  # fmt: skip
    whole = {"abs": 1.0, "rel": 1e-7}
    tolerances = (None, whole, whole, whole, {"abs": 0.5}, {"abs": 0.0001, "rel": 1e-6}, None)
    trials = []
    for number in range(2, len(terms) + 2):
        given = {"B": 9000.0 + number, "C": 1000.0, "D": 250.0 * number, "E": 50.0}
        value = (given["B"] - given["C"] + given["D"]) / given["E"]
        trials.append({"set": {f"{TERMS}!{column}{number}": amount for column, amount in given.items()},
                       "expect": {f"{TERMS}!F{number}": value}})  # fmt: skip
    return (
        Check("stages", "table", {"file": FILE, "sheet": TERMS, "rows": rows, "ordered": True, "columns": [
            {"name": name, **({"tol": tol} if tol else {})} for name, tol in zip(STAGES, tolerances, strict=True)
        ]}, weight=0.08, stage="intermediate", trap_ids=("T1", "T17")),
        Check("value follows", "xlsx.follows", {"file": FILE, "trials": trials, "tol": {"rel": 1e-9}}, weight=0.02),
    )  # fmt: skip


def _sum_checks(answer: Answer) -> tuple[Check, ...]:
    """Payouts add up to what was distributed, by class and in total, and nothing is lost between the sheets."""
    payouts, terms = answer["payouts"], answer["per_share"]
    classes = sorted({str(row["class"]) for row in payouts})
    sums = [[one, *(sum(row[name] for row in payouts if row["class"] == one) for name in EXITS)] for one in classes]
    last = len(payouts) + 2
    totals = {f"{SHEET}!{letter}{last}": float(row["amount"]) for letter, row in zip("CDE", terms, strict=True)}
    below = [f"{CLASSES}!{letter}{len(classes) + 2}" for letter in "BCD"]
    pairs = [
        {"a": {"file": FILE, "cell": here}, "b": {"file": FILE, "cell": there}}
        for here, there in (*zip(totals, below, strict=True),
                            *zip(below, (f"{TERMS}!B{n}" for n in range(2, len(terms) + 2)), strict=True))
    ]  # fmt: skip
    changed = {f"{SHEET}!{letter}{row}": 10.0 * row for letter in "CDE" for row in range(2, last)}
    expected = {place: sum(10.0 * row for row in range(2, last)) for place in (*totals, *below)}
    return (
        Check("adds up", "xlsx.cells", {"file": FILE, "cells": totals, "tol": TOL}, weight=0.04),
        Check("classes", "table", {"file": FILE, "sheet": CLASSES, "rows": sums, "extra": "ignored", "columns": [
            {"name": "Class"}, *({"name": name, "tol": TOL} for name in EXITS)
        ]}, weight=0.04, stage="intermediate", trap_ids=("T1", "T17")),
        Check("sheets agree", "agree", {"pairs": pairs, "tol": TOL}, weight=0.04, stage="intermediate"),
        Check("sums follow", "xlsx.follows", {"file": FILE, "trials": [{"set": changed, "expect": expected}]},
              weight=0.02),
    )  # fmt: skip


def per_share(row: Mapping[str, Any]) -> float:
    """What a common share gets: the exit value less preferences, plus strikes paid in, over the shares that share."""
    return float((row["amount"] - row["preferences"] + row["strikes"]) / row["shares"])


def layout(answer: Answer, form: str = "plain") -> list[dict[str, Any]]:
    """Payouts by holding, their sums by class, the way from each exit to a common share; sums are formulas."""
    rows = [[row.get("holder"), row.get("class"), *(row.get(name) for name in EXITS)] for row in answer["payouts"]]
    last, classes = len(rows) + 1, sorted({str(row[1]) for row in rows})
    total: list[Any] = ["Total", None, *(f"=SUM({letter}2:{letter}{last})" for letter in "CDE")]
    sums: list[list[Any]] = [
        [one, *(f"=SUMIF({SHEET}!$B$2:$B${last},$A{n},{SHEET}!{letter}$2:{letter}${last})" for letter in "CDE")]
        for n, one in enumerate(classes, start=2)
    ]
    end: list[Any] = ["Total", *(f"=SUM({letter}2:{letter}{len(classes) + 1})" for letter in "BCD")]
    terms = []
    for n, row in enumerate(answer["per_share"], start=2):
        known = [row.get(key) for key in ("exit", "amount", "preferences", "strikes", "shares")]
        terms.append([*known, f"=(B{n}-C{n}+D{n})/E{n}", row.get("converts")])
    if form == "typed":
        total = ["Total", None, *(sum(row[n] or 0 for row in rows) for n in (2, 3, 4))]
        sums = [[one, *(sum(row[n] or 0 for row in rows if str(row[1]) == one) for n in (2, 3, 4))] for one in classes]
        end = ["Total", *total[2:]]
        for made, row in zip(terms, answer["per_share"], strict=True):
            made[5] = per_share(row)
    return [
        sheet(SHEET, ["Holder", "Class", *EXITS], [*rows, total]),
        sheet(CLASSES, ["Class", *EXITS], [*sums, end]),
        sheet(TERMS, list(STAGES), terms),
    ]


def _instruction(office: Office, ask: Mapping[str, Any], rng: random.Random) -> str:
    opener = rng.choice((
        f"The shareholders of {office.setting.company} ask what a sale would bring each of them.",
        f"Before the board of {office.setting.company} meets, we need the waterfall of the proceeds.",
        f"Who gets what when {office.setting.company} is sold?",
    ))  # fmt: skip
    values = "; ".join(f"{name}: {ask['currency']} {value:,}" for name, value in zip(EXITS, ask["exits"], strict=True))
    return f"""{opener}

The cap table in deals lists holdings, and its second sheet the rights of the classes. Deeds that have changed a
preference since lie in legal/corporate: rights count as they stand on {ask["today"]}, with every deed that both sides
have signed; drafts, and changes that are only tracked and were declined by mail, change nothing. Distribute these
amounts, which are what all holders together receive for their shares and options: {values}. A class converts only where
that gives it more than not converting, given what the others do. The payout of options is net of the strike.

Save `artifacts/{FILE}` with three sheets, headers in row 1, nothing rounded, amounts in {ask["currency"]}:

- `{SHEET}`: one row per line of the cap table, `Holder` and `Class` as written there, then `Exit 1`, `Exit 2`, `Exit 3`
  with the payout; right below them a row `Total` with the sums as formulas
- `{CLASSES}`: one row per class, `Class` and the sums of its payouts at `Exit 1`, `Exit 2`, `Exit 3`; right below them
  a row `Total`; all sums are formulas that follow the first sheet
- `{TERMS}`: in rows 2 to 4 the three exits, columns A to G: `Exit` (such as Exit 1), `Amount` (what is distributed),
  `Preferences` (paid as such, of all classes), `Strikes` (cash that exercised options pay in), `Shares` (that share in
  the rest: common, participating and converting classes, exercised options), `Value` (what one common share receives, a
  formula of the four before) and `Converts` (the classes that convert, separated by semicolons, or `none`)
"""
