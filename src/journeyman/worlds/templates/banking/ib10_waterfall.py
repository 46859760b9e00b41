"""IB10: who gets what at three exit values: preferences, conversion, participation, options.

What makes it hard: a class converts only where that gives it more, which depends on what the others do, options are
exercised only above their strike, and below the sum of preferences seniority decides.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

from journeyman.worlds.curriculum import Knobs
from journeyman.worlds.drafting import sheet, xlsx_bytes
from journeyman.worlds.template import Answer, Bound, Files, Lost, Solving, Unbindable, Wrong
from journeyman.worlds.templates import reading
from journeyman.worlds.templates.banking.sheets import one_file, records, sheet_rows
from journeyman.worlds.templates.matrices import matrix_checks
from journeyman.worlds.verify import Check

if TYPE_CHECKING:
    from journeyman.worlds.office import Office

FILE = "waterfall.xlsx"
SHEET, TERMS = "Waterfall", "Per share"
EXITS = ("Exit 1", "Exit 2", "Exit 3")
TOL = {"abs": 2.0, "rel": 1e-7}
MARGIN = 0.02
"""Decisions that hang on less than this share are no fair question."""

Holding = Mapping[str, Any]
"""``holder``, ``share_class``, ``shares``, ``strike``, ``preference``, ``participating``, ``seniority``."""


@dataclass(frozen=True)
class Split:
    """What one exit value comes to: net payouts in the order of the holdings, value of a common share, conversions."""

    payouts: tuple[float, ...]
    per_share: float
    converts: tuple[str, ...]
    is_close: bool


@dataclass(frozen=True)
class IB10:
    """See the module."""

    id: str = "IB10"
    domain: str = "banking"
    title: str = "waterfall of the proceeds over the cap table"
    traps: tuple[str, ...] = ()

    def bind(self, office: Office, rng: random.Random, knobs: Knobs) -> Bound:
        """See ``Template.bind``."""
        holdings = office.truth.rows("SELECT * FROM security ORDER BY id")
        if len({(row["holder"], row["share_class"]) for row in holdings}) < len(holdings):
            raise Unbindable("a holder has one class twice")
        exits = _exits(holdings, rng)
        ask = {"exits": exits, "currency": office.setting.currency, "file": FILE}
        answer = answered(holdings, exits)
        rows: list[dict[str, Any]] = answer["payouts"]
        plain = _answer(holdings, [_pro_rata(holdings, value) for value in exits])
        blind = answered(_forgetful(holdings), exits)
        hard = [
            (number, column)
            for number, (row, other) in enumerate(zip(rows, blind["payouts"], strict=True))
            for column, name in enumerate(EXITS, start=2)
            if abs(row[name] - other[name]) > TOL["abs"]
        ]
        if not hard:
            raise Unbindable("rights make no difference at these exits")
        return Bound(
            self.id, self.domain, office.id, _instruction(office, ask, rng), ask, answer, _checks(answer, hard),
            (FILE,), _wrong(holdings, exits, answer, plain), trap_blind=blind, single=plain,
            facts=tuple(f"security:{row['id']}:shares" for row in holdings),
            reads=(office.of_kind("cap_table")[0].path,), traps=(), unordered=("payouts",), knobs=knobs,
            notes={"converts": [len(row["converts"].split("; ")) for row in answer["per_share"]]},
        )  # fmt: skip

    def write(self, bound: Bound, answer: Answer, world: Files, form: str = "plain") -> dict[str, bytes]:
        """See ``Template.write``."""
        return {FILE: xlsx_bytes(layout(answer))}

    def solve(self, ask: Mapping[str, Any]) -> Solving:
        """See ``Template.solve``."""
        path = yield from one_file("*cap*table*.xlsx")
        table = records((yield from sheet_rows(path)), "Holder")
        rights = yield from reading.tab(path, 1)
        if "Participating" not in rights:
            raise Lost("the rights of the classes are not described")
        money = ask["currency"]
        holdings = [
            {
                "holder": row["Holder"], "share_class": row["Class"], "shares": row["Shares"],
                "strike": row[f"Strike ({money})"], "preference": row[f"Preference ({money})"],
                "participating": {"yes": 1, "no": 0}.get(str(row["Participating"])),
                "seniority": next(value for key, value in row.items() if str(key).startswith("Seniority")),
            }
            for row in table
            if row["Class"]
        ]  # fmt: skip
        answer = answered(holdings, ask["exits"])
        yield from reading.deliver_workbook(FILE, layout(answer))
        yield from reading.tab(f"/artifacts/{FILE}")


def split(holdings: Sequence[Holding], value: float) -> Split:
    """Distribute an exit value; a class converts only where that gives it more, given what the others do.

    Raises:
        Unbindable: no set of conversions, or several, would be kept by everybody.
    """
    fixed = [n for n, row in enumerate(holdings) if row["preference"] is not None and not row["participating"]]
    sets = [frozenset(chosen) for size in range(len(fixed) + 1) for chosen in combinations(fixed, size)]
    found = {chosen: _distributed(holdings, value, chosen) for chosen in sets}
    stable = []
    for chosen, made in found.items():
        gains = {
            n: found[chosen | {n}].payouts[n] - found[chosen - {n}].payouts[n]
            for n in fixed
        }  # fmt: skip
        if all((gains[n] > 0) == (n in chosen) for n in fixed):
            is_close = any(0 < abs(gain) < MARGIN * holdings[n]["preference"] for n, gain in gains.items())
            stable.append(replace(made, is_close=made.is_close or is_close))
    if len(stable) != 1:
        raise Unbindable(f"{len(stable)} stable sets of conversions at {value:g}")
    return stable[0]


def _distributed(holdings: Sequence[Holding], value: float, convert: frozenset[int]) -> Split:
    """The distribution when these classes convert: preferences by seniority, then shares, options by their strike."""
    left, payouts = value, [0.0] * len(holdings)
    ranked = [n for n, row in enumerate(holdings) if row["preference"] is not None and n not in convert]
    for n in sorted(ranked, key=lambda n: -int(holdings[n]["seniority"])):
        payouts[n] = min(left, float(holdings[n]["preference"]))
        left -= payouts[n]
    sharing = [
        n
        for n, row in enumerate(holdings)
        if row["share_class"] == "Common" or n in convert or row["participating"] == 1
    ]
    options = sorted(
        (n for n, row in enumerate(holdings) if row["share_class"] == "Option"),
        key=lambda n: float(holdings[n]["strike"]),
    )
    count = sum(holdings[n]["shares"] for n in sharing)
    per_share, exercised = left / count, 0
    while exercised < len(options) and per_share > holdings[options[exercised]]["strike"]:
        row = holdings[options[exercised]]
        per_share = (per_share * count + row["shares"] * row["strike"]) / (count + row["shares"])
        count, exercised = count + row["shares"], exercised + 1
    for n in (*sharing, *options[:exercised]):
        payouts[n] += holdings[n]["shares"] * (per_share - (holdings[n]["strike"] or 0.0))
    is_close = any(abs(per_share - holdings[n]["strike"]) < MARGIN * holdings[n]["strike"] for n in options)
    classes = tuple(sorted(str(holdings[n]["share_class"]) for n in convert))
    return Split(tuple(payouts), per_share, classes, is_close)


def _exits(holdings: Sequence[Holding], rng: random.Random) -> list[int]:
    """A value below the preferences, one near them, one far above; no decision is close. Raises Unbindable."""
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


def _pro_rata(holdings: Sequence[Holding], value: float) -> Split:
    """By shares alone, options like any other."""
    count = sum(row["shares"] for row in holdings)
    return Split(tuple(value * row["shares"] / count for row in holdings), value / count, (), False)


def _forgetful(holdings: Sequence[Holding]) -> list[dict[str, Any]]:
    """The same cap table read by somebody who takes every preferred share to participate and options for free."""
    return [
        {
            **row,
            "participating": None if row["preference"] is None else 1,
            "strike": None if row["strike"] is None else 0.0,
        }
        for row in holdings
    ]


def answered(holdings: Sequence[Holding], exits: Sequence[float]) -> Answer:
    """Payouts by holding, and what a common share gets."""
    return _answer(holdings, [split(holdings, value) for value in exits])


def _answer(holdings: Sequence[Holding], splits: Sequence[Split]) -> Answer:
    payouts = [
        {"holder": row["holder"], "class": row["share_class"]}
        | {name: round(one.payouts[n], 2) for name, one in zip(EXITS, splits, strict=True)}
        for n, row in enumerate(holdings)
    ]
    terms = [
        {"exit": name, "value": round(one.per_share, 6), "converts": "; ".join(one.converts) or "none"}
        for name, one in zip(EXITS, splits, strict=True)
    ]
    return {"payouts": payouts, "per_share": terms}


def _wrong(holdings: Sequence[Holding], exits: Sequence[float], answer: Answer, plain: Answer) -> tuple[Wrong, ...]:
    rows: list[dict[str, Any]] = answer["payouts"]
    junior = [{**row, "seniority": None if row["seniority"] is None else 3 - row["seniority"]} for row in holdings]
    free = [{**row, "strike": None if row["strike"] is None else 0.0} for row in holdings]
    before = [row for row in holdings if row["share_class"] != "Option"]
    gross = [dict(row) for row in rows]
    for row, holding in zip(gross, holdings, strict=True):
        for name in EXITS:
            row[name] += holding["shares"] * (holding["strike"] or 0) if row[name] else 0
    versions = {
        "by shares alone": plain,
        "seniority the other way": answered(junior, exits),
        "options for free": answered(free, exits),
        "strike not deducted": {**answer, "payouts": gross},
        "stale-version": answered(before, exits),
        "swapped-entity": {
            **answer,
            "payouts": [{**row, "Exit 3": rows[n - 1]["Exit 3"]} for n, row in enumerate(rows)],
        },
        "exits exchanged": {**answer, "payouts": [{**r, "Exit 1": r["Exit 2"], "Exit 2": r["Exit 1"]} for r in rows]},
    }
    return tuple(Wrong(name, made, "every cell") for name, made in versions.items() if made["payouts"] != rows)


def _checks(answer: Answer, hard: list[tuple[int, int]]) -> tuple[Check, ...]:
    columns: list[dict[str, Any]] = [{"name": "Holder"}, {"name": "Class"}, *({"name": n, "tol": TOL} for n in EXITS)]
    cells = [[row["holder"], row["class"], *(row[name] for name in EXITS)] for row in answer["payouts"]]
    terms = [
        [row["exit"], row["value"], {"set": row["converts"].split("; ")}]
        for row in answer["per_share"]
    ]  # fmt: skip
    return (
        Check("files", "present", {"files": [FILE]}, kind="gate", no_op="pass"),
        Check("no errors", "xlsx.no_errors", {"file": FILE}, kind="gate", no_op="pass"),
        *matrix_checks(FILE, columns, cells, hard, key=["Holder", "Class"], sheet=SHEET),
        Check("per share", "table", {"file": FILE, "sheet": TERMS, "rows": terms, "columns": [
            {"name": "Exit"}, {"name": "Value", "tol": {"abs": 0.0001, "rel": 1e-6}}, {"name": "Converts"},
        ]}, weight=0.1, stage="intermediate"),
    )  # fmt: skip


def layout(answer: Answer) -> list[dict[str, Any]]:
    """Payouts by holding with their sums, and the terms of each exit."""
    rows = [[row.get("holder"), row.get("class"), *(row.get(name) for name in EXITS)] for row in answer["payouts"]]
    last = len(rows) + 1
    total = ["Total", None, *(f"=SUM({letter}2:{letter}{last})" for letter in "CDE")]
    terms = [[row.get("exit"), row.get("value"), row.get("converts")] for row in answer["per_share"]]
    return [
        sheet(SHEET, ["Holder", "Class", *EXITS], [*rows, total]),
        sheet(TERMS, ["Exit", "Value", "Converts"], terms),
    ]


def _instruction(office: Office, ask: Mapping[str, Any], rng: random.Random) -> str:
    opener = rng.choice((
        f"The shareholders of {office.setting.company} ask what a sale would bring each of them.",
        f"Before the board of {office.setting.company} meets, we need the waterfall of the proceeds.",
        f"Who gets what when {office.setting.company} is sold?",
    ))  # fmt: skip
    values = "; ".join(f"{name}: {ask['currency']} {value:,}" for name, value in zip(EXITS, ask["exits"], strict=True))
    return f"""{opener}

The cap table in deals lists holdings, and its second sheet the rights of the classes. Distribute these amounts, which
are what all holders together receive for their shares and options: {values}. A class converts only where that gives it
more than not converting, given what the others do. The payout of options is net of the strike.

Save `artifacts/{FILE}` with two sheets, headers in row 1:

- `{SHEET}`: one row per line of the cap table, `Holder` and `Class` as written there, then `Exit 1`, `Exit 2`, `Exit 3`
  with the payout in {ask["currency"]}, not rounded (a last row `Total` may follow)
- `{TERMS}`: one row per exit, `Exit` (such as Exit 1), `Value` (what one common share receives) and `Converts` (the
  classes that convert, separated by semicolons, or `none`)
"""
