"""MC1: cohorts, churn and net revenue retention from the invoice registers.

What makes it hard: only recurring lines count, invoices that were exported twice count once, amounts that were exported
as text count as well, and a cohort is the fiscal year of a customer's first recurring invoice in any register.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from journeyman.worlds.content import Delimited, unmarked
from journeyman.worlds.curriculum import Knobs
from journeyman.worlds.drafting import sheet, xlsx_bytes
from journeyman.worlds.template import Answer, Bound, Files, Lost, Solving, Unbindable, Wrong
from journeyman.worlds.templates import reading
from journeyman.worlds.verify import Check

if TYPE_CHECKING:
    from journeyman.worlds.office import Office

FILE = "retention.xlsx"
AMOUNT = {"abs": 0.6, "rel": 1e-6}
RATE = {"abs": 0.0006}

Entry = tuple[str, str, str, str, str]
"""Invoice number, customer id, line, ISO date, net amount as written."""


@dataclass(frozen=True)
class MC1:
    """See the module."""

    id: str = "MC1"
    domain: str = "consulting"
    title: str = "cohort churn and net revenue retention from invoice registers"
    traps: tuple[str, ...] = ("T14", "T15")

    def bind(self, office: Office, rng: random.Random, knobs: Knobs) -> Bound:
        """See ``Template.bind``."""
        registers = office.of_kind("invoice_register")
        if len(registers) < 3:
            raise Unbindable("fewer than three invoice registers")
        setting = office.setting
        years = list(setting.years)[max(0, 3 - (1 + knobs.fan_out)) :]
        if len(years) < 2:
            years = list(setting.years)[-2:]
        ends = {f"FY{year}": setting.label(setting.year_months(year)[-1]) for year in years}
        lines = tuple(setting.trade["lines"][:2])
        ask: dict[str, Any] = {
            "years": list(ends),
            "ends": ends,
            "lines": list(lines),
            "starts": _starts(office),
            "file": FILE,
        }
        truth = [
            (row["id"], row["customer_id"], row["line"], row["date"], str(row["net"]))
            for row in office.truth.rows("SELECT id, customer_id, line, date, net FROM invoice ORDER BY id")
        ]
        written = [entry for document in registers for entry in _written(document.content)]
        answer = retention(truth, ask)
        traps = tuple(t for t in self.traps if (p := office.trap(t)) is not None and "invoice" in p.site)
        wrong = _wrong(truth, written, ask, answer, traps, registers)
        last = registers[-1].path
        return Bound(
            self.id, self.domain, office.id, _instruction(office, ask, rng), ask, answer, _checks(ask, answer),
            (FILE,), wrong,
            trap_blind=retention(written, {**ask, "lines": []}, is_careless=True),
            single=_of_one_register(answer),
            reads=tuple(document.path for document in registers),
            traps=tuple(sorted({one.trap for one in wrong if one.trap})), unordered=("cohorts",), knobs=knobs,
            notes={"years": len(years), "newest": last.rpartition("/")[2]},
        )  # fmt: skip

    def write(self, bound: Bound, answer: Answer, world: Files, form: str = "plain") -> dict[str, bytes]:
        """See ``Template.write``."""
        return {FILE: xlsx_bytes(layout(bound.ask, answer, form))}

    def solve(self, ask: Mapping[str, Any]) -> Solving:
        """See ``Template.solve``."""
        registers = yield from reading.list_files("*invoice*register*.csv")
        if not registers:
            raise Lost("no invoice register")
        entries: dict[str, Entry] = {}
        for path in registers:
            records = yield from reading.csv_records(path)
            for record, day in zip(records, reading.days([one["date"] for one in records]), strict=True):
                entries[record["invoice_no"].strip()] = _entry(record, day)
        yield from reading.deliver_workbook(FILE, layout(ask, retention(list(entries.values()), ask)))
        yield from reading.tab(f"/artifacts/{FILE}", 1)


def _entry(record: Mapping[str, str], day: str) -> Entry:
    return (
        record["invoice_no"].strip(),
        record["customer_id"].strip(),
        record["line"].strip(),
        day,
        record["net"],
    )


def retention(entries: Iterable[Entry], ask: Mapping[str, Any], *, is_careless: bool = False) -> Answer:
    """Cohorts and retention.

    Args:
        entries: invoices; in a careful reading each number once.
        ask: ``years``, ``ends`` (year -> last month), ``starts`` (year -> first day), ``lines`` (empty: all count).
        is_careless: doubles count, and amounts that are no plain number do not.
    """
    first: dict[str, str] = {}
    billed: dict[tuple[str, str], float] = {}
    for _, customer, line, day, net in sorted(set(entries) if not is_careless else entries):
        if ask["lines"] and line not in ask["lines"]:
            continue
        amount = _plain(net) if is_careless else reading.number(net)
        if amount is None:
            continue
        first.setdefault(customer, day)
        first[customer] = min(first[customer], day)
        billed[customer, day[:7]] = billed.get((customer, day[:7]), 0.0) + amount
    years, ends = list(ask["years"]), ask["ends"]
    cohort_of = {customer: _year_of(day, ask["starts"]) for customer, day in first.items()}
    cohorts = []
    for cohort in sorted({one for one in cohort_of.values() if one <= years[-1]}):
        members = [customer for customer, one in cohort_of.items() if one == cohort]
        row: dict[str, Any] = {"cohort": cohort, "customers": len(members)}
        for year in years:
            amounts = [billed.get((customer, ends[year]), 0.0) for customer in members]
            row[f"active {year}"] = sum(amount > 0 for amount in amounts)
            row[f"billed {year}"] = round(sum(amounts), 2)
        cohorts.append(row)
    retained = []
    for before, after in pairwise(years):
        base = {customer: a for (customer, month), a in billed.items() if month == ends[before] and a > 0}
        kept = sum(billed.get((customer, ends[after]), 0.0) for customer in base)
        lost = sum(billed.get((customer, ends[after]), 0.0) <= 0 for customer in base)
        retained.append({"year": after, "opening": round(sum(base.values()), 2), "retained": round(kept, 2),
                         "customers": len(base), "lost": lost})  # fmt: skip
    return {"cohorts": cohorts, "retention": retained}


def _plain(net: str) -> float | None:
    try:
        return float(net)
    except ValueError:
        return None


def _year_of(day: str, starts: Mapping[str, str]) -> str:
    return max((year for year, start in starts.items() if start <= day), default=min(starts))


def _starts(office: Office) -> dict[str, str]:
    setting = office.setting
    months = {f"FY{year}": setting.label(setting.year_months(year)[0]) for year in setting.years}
    months[f"FY{setting.years[-1] + 1}"] = setting.label(setting.year_months(setting.years[-1])[-1] + 1)
    return {year: f"{month}-01" for year, month in months.items()}


def _written(content: Any) -> list[Entry]:
    """The rows of a register as they stand in the file."""
    if not isinstance(content, Delimited):
        return []
    head = [unmarked(word)[0] for word in content.rows[0]]
    wanted = [head.index(name) for name in ("invoice_no", "customer_id", "line", "date", "net")]
    rows = [[unmarked(row[i])[0] for i in wanted] for row in content.rows[1:]]
    return [(row[0], row[1], row[2], row[3], row[4]) for row in rows]


def _wrong(
    truth: Sequence[Entry], written: Sequence[Entry], ask: Mapping[str, Any], answer: Answer, traps: Sequence[str],
    registers: Sequence[Any],
) -> tuple[Wrong, ...]:  # fmt: skip
    known = {entry[0] for entry in truth}
    doubled = [*truth, *_doubles(written)]
    unread = {entry[0] for entry in written if _plain(entry[4]) is None}
    one_off = retention(truth, {**ask, "lines": []})
    shifted = retention([(n, c, line, _month_before(d), a) for n, c, line, d, a in truth], ask)
    swapped = {
        **answer,
        "retention": [{**row, "opening": row["retained"], "retained": row["opening"]} for row in answer["retention"]],
    }
    stale = retention([entry for entry in truth if entry[3] < ask["starts"][ask["years"][-1]]], ask)
    found = [
        Wrong("one-off lines counted", one_off, "retention"),
        Wrong("swapped-entity", swapped, "retention"),
        Wrong("stale-version", stale, "retention"),
        Wrong("a month too early", shifted, "retention"),
    ]
    if "T14" in traps and _doubles(written):
        found.append(Wrong("T14:counted twice", retention(doubled, ask, is_careless=True), "retention", "T14"))
    if "T15" in traps and unread & known:
        rest = [entry for entry in truth if entry[0] not in unread]
        found.append(Wrong("T15:text left out", retention(rest, ask), "retention", "T15"))
    return tuple(one for one in found if one.answer["retention"] != answer["retention"])


def _of_one_register(answer: Answer) -> Answer:
    """Who opens the newest register only takes what is billed at its end for both amounts, and knows no cohort."""
    rows = [{**row, "opening": row["retained"], "lost": 0} for row in answer["retention"]]
    return {"cohorts": answer["cohorts"][-1:], "retention": rows}


def _doubles(written: Sequence[Entry]) -> list[Entry]:
    seen: set[str] = set()
    again = []
    for entry in written:
        if entry[0] in seen and _plain(entry[4]) is not None:
            again.append(entry)
        seen.add(entry[0])
    return again


def _month_before(day: str) -> str:
    year, month = int(day[:4]), int(day[5:7])
    return f"{year - 1}-12{day[7:]}" if month == 1 else f"{year}-{month - 1:02d}{day[7:]}"


def _checks(ask: Mapping[str, Any], answer: Answer) -> tuple[Check, ...]:
    years = list(ask["years"])
    billed = [f"billed {year}" for year in years]
    active = [f"active {year}" for year in years]
    retention_rows = [
        [row["year"], row["opening"], row["retained"], row["retained"] / row["opening"] if row["opening"] else 0.0]
        for row in answer["retention"]
    ]
    names = ("Year", "Opening", "Retained", "NRR")
    columns = [{"name": n, "tol": RATE if n == "NRR" else AMOUNT} for n in names]
    moved = [
        {"set": {f"Retention!C{row}": 1000.0, f"Retention!B{row}": 800.0}, "expect": {f"Retention!D{row}": 1.25}}
        for row in range(2, len(answer["retention"]) + 2)
    ]
    return (
        Check("files", "present", {"files": [FILE]}, kind="gate", no_op="pass"),
        Check("no errors", "xlsx.no_errors", {"file": FILE}, kind="gate", no_op="pass"),
        Check("retention", "table", {"file": FILE, "sheet": "Retention", "columns": columns, "rows": retention_rows},
              weight=0.5, trap_ids=("T14", "T15")),
        Check("cohorts", "table", _cohort_table(answer, billed, AMOUNT), weight=0.2, trap_ids=("T14", "T15")),
        Check("customers", "table", _cohort_table(answer, ["customers", *active], {"abs": 0.0}), weight=0.1,
              stage="intermediate"),
        Check("churn", "table", {
            "file": FILE, "sheet": "Retention", "columns": [{"name": "Year"}, {"name": "Customers"}, {"name": "Lost"}],
            "rows": [[row["year"], row["customers"], row["lost"]] for row in answer["retention"]],
        }, weight=0.05, stage="intermediate"),
        Check("formulas", "xlsx.follows", {"file": FILE, "trials": moved, "tol": RATE}, weight=0.15),
    )  # fmt: skip


def _cohort_table(answer: Answer, keys: Sequence[str], tol: Mapping[str, float]) -> dict[str, Any]:
    return {
        "file": FILE,
        "sheet": "Cohorts",
        "columns": [
            {"name": "Cohort"},
            *({"name": key.capitalize() if key == "customers" else key, "tol": dict(tol)} for key in keys),
        ],
        "rows": [[row["cohort"], *(row[key] for key in keys)] for row in answer["cohorts"]],
    }


def layout(ask: Mapping[str, Any], answer: Answer, form: str = "plain") -> list[dict[str, Any]]:
    """Both sheets; retention is a formula of the two amounts beside it, unless numbers are typed."""
    keys = [f"{word} {year}" for word in ("active", "billed") for year in ask["years"]]
    cohorts = [[row.get("cohort"), row.get("customers"), *(row.get(key) for key in keys)] for row in answer["cohorts"]]
    kept = []
    for number, row in enumerate(answer["retention"], start=2):
        opening, retained = row.get("opening"), row.get("retained")
        rate: Any = f"=C{number}/B{number}"
        if form == "typed":
            rate = retained / opening if opening and retained is not None else None
        kept.append([row.get("year"), opening, retained, rate, row.get("customers"), row.get("lost")])
    return [
        sheet("Cohorts", ["Cohort", "Customers", *keys], cohorts),
        sheet("Retention", ["Year", "Opening", "Retained", "NRR", "Customers", "Lost"], kept),
    ]


def _instruction(office: Office, ask: Mapping[str, Any], rng: random.Random) -> str:
    years, ends = ask["years"], ask["ends"]
    opener = rng.choice((
        f"We are preparing the retention pages of a commercial review of {office.setting.company}.",
        f"A partner wants to see how well {office.setting.company} keeps its customers before tomorrow's meeting.",
        f"For the diligence report on {office.setting.company} we need the customer retention analysis.",
    ))  # fmt: skip
    months = "; ".join(f"{year} ends with {ends[year]}" for year in years)
    lines = " and ".join(ask["lines"])
    active, billed = (", ".join(f"`{word} {year}`" for year in years) for word in ("active", "billed"))
    return f"""{opener}

Work from the invoice registers in the folder commercial (one file per fiscal year, all of them count; {months}). Only
the recurring lines count: {lines}. Everything else is one-off. Amounts are net of tax. An invoice number is one
invoice, however often an export lists it.

Save `artifacts/{FILE}` with two sheets, headers in row 1:

- `Cohorts`: one row per cohort, which is the fiscal year (such as {years[-1]}) of a customer's first recurring invoice
  in any register, up to {years[-1]}. Columns: `Cohort`, `Customers` (how many began), {active} (how many of them are
  billed in the last month of that year), {billed} (their recurring net billing in that month).
- `Retention`: one row per year from {years[1]} to {years[-1]}, in order, from row 2. Columns in this order: `Year`,
  `Opening` (recurring net billing in the last month of the year before), `Retained` (billing of the same customers in
  the last month of the year), `NRR` (a formula, retained over opening), `Customers` (how many are behind the opening
  amount), `Lost` (how many of them are no longer billed).
"""
