"""MC3: the cost baseline by group of suppliers, and what contracts could save, from a list of payments.

What makes it hard: clerks typed names as they liked, one group has several companies, payments stand there twice, as
text, or behind a filter, and only some months and categories count. Long variants count only what certain cost centres
bear, which the voucher of each payment says and nothing else; what was read is delivered and must agree with the sums.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

from journeyman.worlds.content import Book, unmarked
from journeyman.worlds.curriculum import Knobs
from journeyman.worlds.drafting import sheet, xlsx_bytes
from journeyman.worlds.template import Answer, Bound, Files, Lost, Solving, ToolCall, Unbindable, Wrong
from journeyman.worlds.templates import reading
from journeyman.worlds.templates.matrices import matrix_checks
from journeyman.worlds.verify import Check

if TYPE_CHECKING:
    from journeyman.worlds.office import Office

FILE = "baseline.xlsx"
ROWS_PER_LOOK = 120
PROBE = 0.2
"""Rate that the verifier puts in place of the first one."""

VOUCHERS = {1: (18, 40), 2: (100, 150), 3: (172, 230)}
"""Knob ``length`` -> least and most payments whose vouchers must be opened."""

Payment = tuple[str, str, str, str, Any]
"""Payment number, ISO date, supplier as booked, category, amount as written."""


@dataclass(frozen=True)
class MC3:
    """See the module."""

    id: str = "MC3"
    domain: str = "consulting"
    title: str = "cost baseline and savings by group of suppliers"
    traps: tuple[str, ...] = ("T7", "T8", "T14", "T15")

    def bind(self, office: Office, rng: random.Random, knobs: Knobs) -> Bound:
        """See ``Template.bind``."""
        books = office.of_kind("spend")
        if len(books) != 1 or not isinstance(books[0].content, Book):
            raise Unbindable("no list of payments")
        suppliers = office.truth.rows("SELECT name, group_name, category FROM supplier ORDER BY id")
        truth: list[Payment] = [
            (row["id"], row["date"], row["name"], row["category"], row["amount"])
            for row in office.truth.rows(
                "SELECT s.id, s.date, u.name, s.category, s.amount FROM spend s JOIN supplier u ON u.id = s.supplier_id"
                " WHERE s.valid_to IS NULL ORDER BY s.id"
            )
        ]
        categories = sorted({row["category"] for row in suppliers})
        months = sorted({payment[1][:7] for payment in truth})
        chosen = rng.sample(categories, max(2, min(len(categories) - 1, 1 + knobs.fan_out)))
        since = months[rng.randrange(1, max(2, len(months) // 2))]
        vouchers = office.truth.rows("SELECT spend_id, cost_centre FROM voucher ORDER BY id")
        centres = {row["spend_id"]: row["cost_centre"] for row in vouchers}
        if knobs.length:
            chosen, since = _long_scope(truth, categories, months, VOUCHERS[knobs.length], rng)
        ask: dict[str, Any] = {
            "rates": {one: rng.randrange(4, 25) / 200 for one in sorted(chosen)},
            "since": since,
            "floor": (10_000 if knobs.length else 50_000) * rng.randrange(3, 9),
            "file": FILE,
        }
        if knobs.length:
            ask["centres"] = sorted(rng.sample(sorted(set(centres.values())), 3))
        groups = {plain_name(row["name"]): row["group_name"] for row in suppliers}
        answer = baseline(truth, groups, ask, centres)
        below = [row for row in answer["groups"] if row["baseline"] < ask["floor"]]
        if not below or len(below) == len(answer["groups"]):
            raise Unbindable("the least baseline separates nothing")
        written = _written(books[0].content)
        wrong = _wrong(truth, written, groups, ask, answer, office, centres)
        blind = baseline(_careless(written), {}, ask)
        return Bound(
            self.id, self.domain, office.id, _instruction(office, ask, rng), ask, answer,
            _checks(ask, answer, wrong), (FILE,), wrong, trap_blind=blind,
            single=baseline(_careless(written), {}, ask, is_literal=True),
            facts=_facts(truth, ask),
            reads=(books[0].path, *(one.path for one in office.of_kind("supplier_master"))),
            traps=tuple(sorted({one.trap for one in wrong if one.trap})),
            unordered=tuple(answer), knobs=knobs,
            notes={"groups": len(answer["groups"]), "categories": len(chosen),
                   "vouchers": len(answer.get("vouchers", ()))},
        )  # fmt: skip

    def write(self, bound: Bound, answer: Answer, world: Files, form: str = "plain") -> dict[str, bytes]:
        """See ``Template.write``."""
        return {FILE: xlsx_bytes(layout(bound.ask, answer, form))}

    def solve(self, ask: Mapping[str, Any]) -> Solving:
        """See ``Template.solve``."""
        masters = yield from reading.list_files("*supplier*master*.csv")
        books = yield from reading.list_files("*supplier*spend*.xlsx")
        if len(masters) != 1 or len(books) != 1:
            raise Lost(f"{len(masters)} supplier masters, {len(books)} lists of payments")
        master = yield from reading.csv_records(masters[0])
        groups = {plain_name(row["name"]): row["group"].strip() for row in master}
        payments: dict[str, Payment] = {}
        first, found = 1, True
        while found:
            cells = f"A{first}:E{first + ROWS_PER_LOOK - 1}"
            text = yield ToolCall("spreadsheets_read_tab", {
                "file_path": f"/{books[0]}", "tab_index": 0, "cell_range": cells, "max_rows": ROWS_PER_LOOK,
            })  # fmt: skip
            rows = [json.loads(match[1]) for match in re.finditer(r"^\d+: (\[.*\])$", text, re.MULTILINE)]
            for number, day, name, category, amount in (row[:5] for row in rows):
                if number and str(number).startswith("PY"):
                    payments[number] = (number, str(day)[:10], name, category, amount)
            found, first = bool(rows), first + ROWS_PER_LOOK
        centres = yield from _vouchers([one for one in payments.values() if in_scope(one, ask)], ask)
        yield from reading.deliver_workbook(FILE, layout(ask, baseline(payments.values(), groups, ask, centres)))
        yield from reading.tab(f"/artifacts/{FILE}", 0)


def _long_scope(
    truth: Sequence[Payment], categories: Sequence[str], months: Sequence[str], bounds: tuple[int, int],
    rng: random.Random,
) -> tuple[list[str], str]:  # fmt: skip
    """Categories and first month that leave a number of payments within bounds. Raises Unbindable."""
    fit = []
    for size in range(1, len(categories) + 1):
        for chosen in combinations(categories, size):
            for since in months[:-2]:
                scope = {"rates": dict.fromkeys(chosen, 0.0), "since": since}
                if bounds[0] <= sum(in_scope(payment, scope) for payment in truth) <= bounds[1]:
                    fit.append((list(chosen), since))
    if not fit:
        raise Unbindable(f"no scope with {bounds[0]} to {bounds[1]} payments")
    return fit[rng.randrange(len(fit))]


def _facts(truth: Sequence[Payment], ask: Mapping[str, Any]) -> tuple[str, ...]:
    numbers = [payment[0] for payment in truth if in_scope(payment, ask)]
    vouchers = [f"voucher:{number}:centre" for number in numbers] if "centres" in ask else []
    return tuple([f"spend:{number}:amount" for number in numbers][:40] + vouchers)


def _vouchers(payments: Sequence[Payment], ask: Mapping[str, Any]) -> reading.Reading:
    """Payment -> cost centre, from the voucher of each; nothing where no cost centre was asked for."""
    if "centres" not in ask:
        return {}
    listed = yield from reading.list_files("*voucher*", "procurement")
    paths = {path.rpartition("/")[2].lower(): path for path in listed}
    found = {}
    for payment in payments:
        name = next((one for one in paths if one.endswith(f"{payment[0].lower()}.txt")), None)
        if name is None:
            raise Lost(f"no voucher of {payment[0]}")
        text = yield from reading.plain_text(paths[name])
        found[payment[0]] = reading.words_between(text, "Cost centre:")
    return found


def plain_name(name: str) -> str:
    """A supplier's name without what clerks leave out or change: case, dots, blanks."""
    return " ".join(name.replace(".", "").lower().split())


def in_scope(payment: Payment, ask: Mapping[str, Any]) -> bool:
    """Whether a payment counts: category and month."""
    return payment[3] in ask["rates"] and payment[1][:7] >= ask["since"]


def baseline(
    payments: Iterable[Payment], groups: Mapping[str, str], ask: Mapping[str, Any],
    centres: Mapping[str, str] | None = None, *, is_literal: bool = False,
) -> Answer:  # fmt: skip
    """Payments by group; where cost centres were asked for, also who bears which payment, and sums by cost centre.

    Args:
        payments: in a careful reading each number once.
        groups: plain name -> group; a name that is not there stands for itself.
        ask: ``rates`` (category -> rate), ``since`` (month), ``centres`` that count, if not all do.
        centres: payment -> cost centre; None where nobody looked, and all count.
        is_literal: names count as they are typed.
    """
    total: Counter[tuple[str, str]] = Counter()
    count: Counter[tuple[str, str]] = Counter()
    borne: Counter[str] = Counter()
    lines: list[dict[str, Any]] = []
    for payment in sorted(payments, key=lambda one: one[0]):
        centre = (centres or {}).get(payment[0], "")
        if centre and in_scope(payment, ask):
            lines.append({"payment": payment[0], "centre": centre})
        counts = "centres" not in ask or centres is None or centre in ask["centres"]
        if counts and in_scope(payment, ask):
            name = payment[2] if is_literal else plain_name(payment[2])
            key = groups.get(name, name), payment[3]
            amount = reading.whole_number(payment[4]) if isinstance(payment[4], str) else round(payment[4])
            total[key] += amount
            count[key] += 1
            borne[centre] += amount
    answer: Answer = {
        "groups": [
            {"group": group, "category": category, "payments": count[group, category], "baseline": amount}
            for (group, category), amount in sorted(total.items())
        ]
    }
    if "centres" in ask:
        unique = {line["payment"]: line for line in lines}
        answer["vouchers"] = list(unique.values())
        answer["centres"] = [{"centre": one, "amount": borne[one]} for one in ask["centres"]] if centres else []
    return answer


def _written(book: Book) -> list[tuple[Payment, bool]]:
    """Payments as they stand in the file, and whether a filter hides them."""
    page = book.sheets[0]
    found = []
    for row in sorted({row for row, _ in page.cells if row}):
        values = [page.cells[row, column].value if (row, column) in page.cells else None for column in range(5)]
        if str(values[0]).startswith("PY"):
            number, day, name, category, amount = (unmarked(v)[0] if isinstance(v, str) else v for v in values)
            found.append(((str(number), str(day), str(name), str(category), amount), row in page.hidden_rows))
    return found


def _careless(written: Sequence[tuple[Payment, bool]]) -> list[Payment]:
    return [payment for payment, is_hidden in written if not is_hidden and not isinstance(payment[4], str)]


def _wrong(
    truth: Sequence[Payment], written: Sequence[tuple[Payment, bool]], groups: Mapping[str, str],
    ask: Mapping[str, Any], answer: Answer, office: Office, centres: Mapping[str, str],
) -> tuple[Wrong, ...]:  # fmt: skip
    rows = answer["groups"]
    hidden = {payment[0] for payment, is_hidden in written if is_hidden}
    texts = {payment[0] for payment, _ in written if isinstance(payment[4], str)}
    alone = {name: group for name, group in groups.items() if list(groups.values()).count(group) == 1}
    everything = {**ask, "rates": dict.fromkeys({payment[3] for payment in truth}, 0.0)}
    swapped = [{**row, "baseline": rows[i - 1]["baseline"]} for i, row in enumerate(rows)]

    def read(payments: Iterable[Payment], named: Mapping[str, str] = groups, **other: Any) -> Answer:
        return baseline(payments, named, {**ask, **other}, centres)

    found = [
        Wrong("T7:groups not merged", read(truth, alone), "every cell", "T7"),
        Wrong("swapped-entity", {**answer, "groups": swapped}, "every cell"),
        Wrong("stale-version", read(truth, since=""), "every cell"),
        Wrong("all categories", baseline(truth, groups, everything, centres), "every cell"),
        Wrong("first month left out", read(truth, since=f"{ask['since']}~"), "every cell"),
        Wrong("T14:counted twice", read([p for p, _ in written]), "every cell", "T14"),
        Wrong("T15:text left out", read([p for p in truth if p[0] not in texts]), "every cell", "T15"),
        Wrong("T8:hidden left out", read([p for p in truth if p[0] not in hidden]), "every cell", "T8"),
    ]
    if "centres" in ask:
        found.append(Wrong("vouchers not opened", baseline(truth, groups, ask), "every cell"))
    planted = [one for one in found if not one.trap or _site(office, one.trap)]
    return tuple(one for one in planted if one.answer["groups"] != rows)


def _site(office: Office, trap: str) -> bool:
    return office.trap(trap, "supplier:" if trap == "T7" else "spend:") is not None


def _checks(ask: Mapping[str, Any], answer: Answer, wrong: Sequence[Wrong]) -> tuple[Check, ...]:
    columns: list[dict[str, Any]] = [{"name": name} for name in ("Group", "Category", "Payments", "Baseline", "Rate")]
    columns[4]["tol"] = {"abs": 1e-6}
    rows = answer["groups"]
    rates = {row["group"]: ask["rates"][row["category"]] if row["baseline"] >= ask["floor"] else 0.0 for row in rows}
    cells = [[row["group"], row["category"], row["payments"], row["baseline"], rates[row["group"]]] for row in rows]
    hard = [(i, 3) for i, row in enumerate(rows) if any(not _has(one.answer, row) for one in wrong if one.trap)]
    first = next(iter(ask["rates"]))
    moved = {**ask["rates"], first: PROBE}
    above = [row for row in rows if row["baseline"] >= ask["floor"]]
    total = sum(row["baseline"] for row in rows)
    saving, after = (sum(row["baseline"] * r[row["category"]] for row in above) for r in (ask["rates"], moved))
    return (
        Check("files", "present", {"files": [FILE]}, kind="gate", no_op="pass"),
        Check("no errors", "xlsx.no_errors", {"file": FILE}, kind="gate", no_op="pass"),
        *matrix_checks(FILE, columns, cells, hard or [(0, 3)], key=["Group"], sheet="Baseline",
                       trap_ids=("T7", "T8", "T14", "T15")),
        Check("totals", "xlsx.follows", {"file": FILE, "trials": [
            {"set": {"Rates!B2": ask["rates"][first]}, "expect": {"Summary!B1": total, "Summary!B2": saving}},
            {"set": {"Rates!B2": PROBE}, "expect": {"Summary!B1": total, "Summary!B2": after}},
        ], "tol": {"abs": 1.0}}, weight=0.1),
        *(_voucher_checks(answer) if "centres" in ask else ()),
    )  # fmt: skip


def _voucher_checks(answer: Answer) -> tuple[Check, ...]:
    """What stands before the sums: each voucher, each cost centre; and that both ways of adding up agree."""
    halves = {"first": answer["vouchers"][::2], "second": answer["vouchers"][1::2]}
    total = sum(row["baseline"] for row in answer["groups"])
    both = {"Summary!B1": total, "Summary!B3": total}  # that they are equal alone may be chance
    return (
        *(Check(f"vouchers, {name} half", "table", {
            "file": FILE, "sheet": "Vouchers", "columns": [{"name": "Payment"}, {"name": "Cost centre"}],
            "rows": [list(line.values()) for line in half], "extra": "ignored",
        }, weight=0.04, stage="intermediate") for name, half in halves.items()),
        Check("vouchers", "members", {"file": FILE, "sheet": "Vouchers", "column": "Payment",
              "items": [line["payment"] for line in answer["vouchers"]]}, weight=0.04, stage="intermediate"),
        Check("centres", "table", {"file": FILE, "sheet": "Centres", "columns": [{"name": "Cost centre"},
              {"name": "Amount"}], "rows": [list(one.values()) for one in answer["centres"]]}, weight=0.04,
              stage="intermediate"),
        Check("both sums agree", "xlsx.cells", {"file": FILE, "cells": both, "tol": {"abs": 0.5}}, weight=0.04,
              stage="intermediate"),
    )  # fmt: skip


def _has(answer: Answer, row: Mapping[str, Any]) -> bool:
    return any(one["group"] == row["group"] and one["baseline"] == row["baseline"] for one in answer["groups"])


def layout(ask: Mapping[str, Any], answer: Answer, form: str = "plain") -> list[dict[str, Any]]:
    """Three sheets; rates are looked up and savings multiplied, unless numbers are typed."""
    names = list(ask["rates"])
    table = f"Rates!$A$2:$B${len(names) + 1}"
    rows = []
    for number, row in enumerate(answer["groups"], start=2):
        rate: Any = f"=IF(D{number}<Rates!$E$1,0,VLOOKUP(B{number},{table},2,FALSE))"
        saving: Any = f"=D{number}*E{number}"
        if form == "typed":
            amount = row.get("baseline") or 0
            rate = ask["rates"].get(row.get("category"), 0.0) if amount >= ask["floor"] else 0.0
            saving = amount * rate
        rows.append([*(row.get(key) for key in ("group", "category", "payments", "baseline")), rate, saving])
    end = len(rows) + 1
    totals: list[list[Any]] = [["Baseline", f"=SUM(Baseline!D2:D{end})"], ["Saving", f"=SUM(Baseline!F2:F{end})"]]
    if form == "typed":
        totals = [["Baseline", sum(row[3] or 0 for row in rows)], ["Saving", sum(row[5] for row in rows)]]
    more: list[dict[str, Any]] = []
    if "centres" in ask:
        lines = [list(line.values()) for line in answer.get("vouchers", ())]
        borne = [list(one.values()) for one in answer.get("centres", ())]
        by_centre = sum(one[1] or 0 for one in borne) if form == "typed" else f"=SUM(Centres!B2:B{len(borne) + 2})"
        totals.append(["By cost centre", by_centre])
        more.append(sheet("Vouchers", ["Payment", "Cost centre"], lines))
        more.append(sheet("Centres", ["Cost centre", "Amount"], borne))
    return [
        sheet("Baseline", ["Group", "Category", "Payments", "Baseline", "Rate", "Saving"], rows),
        sheet("Rates", [], [["Category", "Rate", None, "Least baseline", ask["floor"]], *ask["rates"].items()]),
        sheet("Summary", [], totals),
        *more,
    ]


def _instruction(office: Office, ask: Mapping[str, Any], rng: random.Random) -> str:
    currency = office.setting.currency
    opener = rng.choice((
        f"We look for savings in what {office.setting.company} buys, and need the baseline first.",
        f"The purchasing project at {office.setting.company} starts with who gets how much.",
        f"For the steering committee: what {office.setting.company} pays its suppliers, and what could be saved.",
    ))  # fmt: skip
    rates = "; ".join(f"{name} {rate:.1%}" for name, rate in ask["rates"].items())
    only = sheets = ""
    if "centres" in ask:
        only = f"""
Only what the cost centres {", ".join(ask["centres"])} bear counts, for payments, baselines and savings alike. Which one
bears a payment is said by its voucher in procurement/vouchers.
"""
        sheets = """- `Vouchers`: `Payment` and `Cost centre`, one row for every payment of these months and
  categories, whichever cost centre bears it
- `Centres`: `Cost centre` and `Amount`, one row for each of the cost centres that count; their sum also stands in B3 of
  `Summary`, as a formula
"""
    return f"""{opener}

Work from the list of payments and the supplier master in procurement. Count payments dated {ask["since"]}-01 or later
in these categories, for which we expect to save: {rates}. Amounts are whole {currency}. A payment number is one
payment, and names were typed by clerks: case, dots and blanks in them say nothing. Add up by the groups of the master.
Groups with a baseline below {ask["floor"]} {currency} save nothing.
{only}
Save `artifacts/{FILE}` with these sheets:

- `Baseline`: headers in row 1, one row per group: `Group`, `Category`, `Payments` (how many), `Baseline`, `Rate` and
  `Saving` (formulas; the rate comes from the sheet Rates and is 0 where nothing is saved)
- `Rates`: headers `Category`, `Rate` in A1:B1, then the categories in the order above, rates as fractions
- `Summary`: the baseline of all groups in B1 and their saving in B2, as formulas, labels in column A
{sheets}"""
