"""IB1: the last twelve months' revenue and EBITDA, bridged from a fiscal year and two half years.

What makes it hard: half years of two fiscal years, figures that were restated in a later report or note, a misprint
that a note below the table corrects, a calendar year beside fiscal ones, and a bridge that has to follow its inputs.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from journeyman.worlds.curriculum import Knobs
from journeyman.worlds.drafting import sheet, xlsx_bytes
from journeyman.worlds.simulate.calendars import month_end
from journeyman.worlds.template import Answer, Bound, Files, Lost, Solving, Unbindable, Wrong
from journeyman.worlds.templates import reading
from journeyman.worlds.templates.matrices import matrix_checks
from journeyman.worlds.verify import Check

if TYPE_CHECKING:
    from journeyman.worlds.office import Office

FILE = "ltm_bridge.xlsx"
SHEET, REVIEW = "LTM", "Review"
LINES = {
    "revenue": "Revenue",
    "gross_profit": "Gross profit",
    "ebitda": "EBITDA before",
    "ebit": "Operating profit",
    "net_income": "Profit for the period",
}
NAMES = {**LINES, "ebitda": "EBITDA before exceptional items"}
KEYS = ("fy", "less", "plus", "first")
REVIEWED = (
    "Item", "First reported", "Restatement", "Second half", "LTM by halves", "Difference", "Growth", "Margin",
)  # fmt: skip
THOUSANDS = {"abs": 1.1}

Rows = list[dict[str, Any]]
"""Lines of the bridge: ``item``, and ``KEYS`` in thousands; ``first`` is the fiscal year as it was first reported."""


@dataclass(frozen=True)
class IB1:
    """See the module."""

    id: str = "IB1"
    domain: str = "banking"
    title: str = "last-twelve-months bridge of revenue and EBITDA"
    traps: tuple[str, ...] = ("T2", "T5", "T9")

    def bind(self, office: Office, rng: random.Random, knobs: Knobs) -> Bound:
        """See ``Template.bind``."""
        year = rng.choice(office.setting.years[-2:])
        items = ["revenue", "ebitda", *sorted(rng.sample(["gross_profit", "ebit", "net_income"], min(3, knobs.hops)))]
        periods = {"fy": f"FY{year}", "less": f"H1 FY{year}", "plus": f"H1 FY{year + 1}"}
        is_dated = office.trap("T5", f"ltm:FY{year}") is not None
        end = month_end(office.setting.year_months(year + 1)[5]).isoformat()
        ask = {"year": None if is_dated else year, "end": end, "items": items, "names": [NAMES[item] for item in items],
               "file": FILE, "currency": office.setting.currency}  # fmt: skip
        rows: Rows = [
            {"item": NAMES[item], **{k: _value(office, p, item, latest=True) for k, p in periods.items()},
             "first": _value(office, periods["fy"], item, latest=False)}
            for item in items
        ]  # fmt: skip
        if not all(row["fy"] for row in rows) or not bridged(rows[0]):
            raise Unbindable("growth or margin of nothing")
        before = [_value(office, f"FY{year - 1}", item, latest=True, optional=True) for item in items]
        victims = _victims(office, year, items, rows)
        places = {(n, key) for made in victims.values() for n, row in enumerate(made) for key in KEYS[:3]
                  if row[key] != rows[n][key]}  # fmt: skip
        blind = [dict(row) for row in rows] if victims else [_exchanged(row) for row in rows]
        for made in victims.values():
            for n, key in places:
                blind[n][key] = made[n][key] if made[n][key] != rows[n][key] else blind[n][key]
        facts = [_fact(office, p, item, latest=True) for item in items[:2] for p in periods.values()]
        if not all(office.where(fact) for fact in facts):
            raise Unbindable("a figure of the bridge is in no report")
        hard = sorted({(n, 1 + KEYS.index(key)) for n, key in places} | {(n, 2) for n in range(len(items))})
        return Bound(
            self.id, self.domain, office.id, _instruction(office, ask, rng), ask, {"bridge": rows},
            _checks(rows, hard), (FILE,), _wrong(rows, before, victims), trap_blind={"bridge": blind},
            single={"bridge": [{**row, **dict.fromkeys(KEYS[:3], row["first"]), "first": None} for row in rows]},
            facts=tuple(facts), reads=(), traps=tuple(victims), unordered=(), knobs=knobs,
            notes={"year": year, "items": len(items), "restated": sum(row["fy"] != row["first"] for row in rows)},
        )  # fmt: skip

    def write(self, bound: Bound, answer: Answer, world: Files, form: str = "plain") -> dict[str, bytes]:
        """See ``Template.write``."""
        return {FILE: xlsx_bytes(layout(bound.ask, answer, form))}

    def solve(self, ask: Mapping[str, Any]) -> Solving:
        """See ``Template.solve``."""
        items = ask["items"]
        year = ask["year"] or (yield from _year_of(ask["end"]))
        first = yield from _figures("annual", f"FY{year}", ((year, 0),), items)
        full = yield from _figures("annual", f"FY{year}", ((year + 1, 1), (year, 0)), items)
        for path in (yield from reading.list_files(f"*restatement*FY{year}*.pdf")) if full == first else ():
            text = yield from reading.document_text(path)
            lines = {item: reading.report_line(text, LINES[item]) for item in items}
            full = {**full, **{item: reading.thousands(told[1]) for item, told in lines.items() if len(told) > 1}}
        less = yield from _figures("interim", f"H1 FY{year}", ((year + 1, 1), (year, 0)), items)
        plus = yield from _figures("interim", f"H1 FY{year + 1}", ((year + 2, 1), (year + 1, 0)), items)
        rows = [
            {"item": NAMES[item], "fy": full[item], "less": less[item], "plus": plus[item], "first": first[item]}
            for item in items
        ]
        yield from reading.deliver_workbook(FILE, layout(ask, {"bridge": rows}))
        yield from reading.tab(f"/artifacts/{FILE}")


def bridged(row: Mapping[str, Any]) -> float:
    """The last twelve months of a line."""
    return float(row["fy"] - row["less"] + row["plus"])


def _exchanged(row: Mapping[str, Any]) -> dict[str, Any]:
    return {**row, "less": row["plus"], "plus": row["less"]}


def _victims(office: Office, year: int, items: Sequence[str], rows: Rows) -> dict[str, Rows]:
    """Trap -> the bridge of whoever falls for it; only traps that change it."""
    found: dict[str, Rows] = {}
    if office.trap("T2", f"income:group:FY{year}"):
        found["T2"] = [{**row, "fy": row["first"]} for row in rows]
    if dated := office.trap("T5", f"ltm:FY{year}"):
        shown = dated.bait_facts[0].rpartition(":")[0]
        found["T5"] = [
            {**row, "fy": _thousands(office.facts[f"{shown}:{item}"].value)}
            for item, row in zip(items, rows, strict=True)
        ]
    noted = office.trap("T9", "income:group:")
    column = {f"H1 FY{year}": "less", f"H1 FY{year + 1}": "plus"}.get(noted.site.split(":")[2] if noted else "")
    if noted and column:
        printed = _thousands(noted.wrong["ebitda"])
        found["T9"] = [{**row, column: printed} if item == "ebitda" else row
                       for item, row in zip(items, rows, strict=True)]  # fmt: skip
    return {trap: made for trap, made in found.items() if made != rows}


def _wrong(rows: Rows, before: list[float], victims: Mapping[str, Rows]) -> tuple[Wrong, ...]:
    versions: dict[str, tuple[Rows, str]] = {
        "half years exchanged": ([_exchanged(row) for row in rows], "halves"),
        "stale-version": ([{**row, "fy": old, "first": old} for row, old in zip(rows, before, strict=True)],
                          "restatement"),
        "swapped-entity": ([{**row, "fy": rows[n - 1]["fy"]} for n, row in enumerate(rows)], "every cell"),
        "units for thousands": ([{**row, **{key: row[key] * 1000 for key in KEYS}} for row in rows], "every cell"),
        "added instead of taken off": ([{**row, "less": -row["less"]} for row in rows], "ratios"),
    }  # fmt: skip
    names = {"T2": "T2:first reported", "T5": "T5:calendar year", "T9": "T9:table without its note"}
    found = [Wrong(name, {"bridge": made}, fails) for name, (made, fails) in versions.items() if made != rows]
    return (*found, *(Wrong(names[t], {"bridge": made}, "hard cells", t) for t, made in victims.items()))


def _year_of(end: str) -> reading.Reading:
    """The fiscal year before the half year that ended on a day, by what interim reports say they cover. Raises Lost."""
    for path in (yield from reading.list_files("*interim*report*.pdf")):
        text = " ".join((yield from reading.document_text(path)).split())
        found = re.search(r"six months that ended on (.+?), the first half of FY(\d{4})", text)
        if found and reading.day(found[1]) == end:
            return int(found[2]) - 1
    raise Lost(f"no half year ended on {end}")


def _figures(report: str, period: str, places: tuple[tuple[int, int], ...], items: list[str]) -> reading.Reading:
    """Items of a period in thousands, from the latest report that shows it: (year in its name, column)."""
    for year, column in places:
        found = yield from reading.list_files(f"*{report}*report*FY{year}*.pdf")
        if found:
            text = yield from reading.document_text(found[0])
            lines = {item: reading.report_line(text, LINES[item]) for item in items}
            if all(len(numbers) > column for numbers in lines.values()):
                values = {item: reading.thousands(numbers[column]) for item, numbers in lines.items()}
                for item in items:
                    misprint = rf"\(1\) Misprint: {re.escape(NAMES[item])} of {period} is ([\d.,()]+)"
                    if noted := re.search(misprint, " ".join(text.split())):
                        values[item] = reading.thousands(noted[1])
                return values
    raise Lost(f"no {report} report of {places}")


def _fact(office: Office, period: str, item: str, *, latest: bool) -> str:
    fact = f"income:group:{period}:{item}"
    return f"{fact}:restated" if latest and f"{fact}:restated" in office.facts else fact


def _value(office: Office, period: str, item: str, *, latest: bool, optional: bool = False) -> float:
    """In thousands, rounded as reports are. Raises Unbindable when the record has no such figure."""
    found = office.facts.get(_fact(office, period, item, latest=latest))
    if found is None:
        if optional:
            return 0.0
        raise Unbindable(f"no {item} of {period}")
    return _thousands(found.value)


def _thousands(value: Any) -> float:
    return float(round(float(value) / 1000))


def _checks(rows: Rows, hard: list[tuple[int, int]]) -> tuple[Check, ...]:
    columns: list[dict[str, Any]] = [{"name": "Item"}, {"name": "Fiscal year", "tol": THOUSANDS},
               {"name": "Less", "tol": THOUSANDS}, {"name": "Plus", "tol": THOUSANDS},
               {"name": "LTM", "tol": {"abs": 3.2}}]  # fmt: skip
    cells = [[r["item"], r["fy"], r["less"], r["plus"], bridged(r)] for r in rows]
    moved = []
    for n in range(2, len(rows) + 2):
        half = {f"{REVIEW}!D{n}": 300.0, f"{REVIEW}!E{n}": 550.0, f"{REVIEW}!F{n}": 0.0, f"{REVIEW}!G{n}": 0.1}
        inputs = {f"{SHEET}!B{n}": 500.0, f"{SHEET}!C{n}": 200.0, f"{SHEET}!D{n}": 250.0}
        moved.append({"set": inputs, "expect": {f"{SHEET}!E{n}": 550.0, **half}})
    return (
        Check("files", "present", {"files": [FILE]}, kind="gate", no_op="pass"),
        Check("no errors", "xlsx.no_errors", {"file": FILE}, kind="gate", no_op="pass"),
        *matrix_checks(FILE, columns, cells, hard, key=["Item"], sheet=SHEET, trap_ids=("T2", "T5", "T9")),
        *_review_checks(rows),
        Check("follows", "xlsx.follows", {"file": FILE, "trials": moved}, weight=0.05),
    )


def _review_checks(rows: Rows) -> tuple[Check, ...]:
    """What a reviewer recomputes: what was restated, the way over second halves, growth and margin; each a formula."""
    whole, halves, ratio = {"abs": 2.2}, {"abs": 3.2}, {"abs": 0.002, "rel": 0.002}
    tolerances = (None, THOUSANDS, whole, whole, halves, {"abs": 0.6}, ratio, ratio)
    columns = [{"name": name, **({"tol": tol} if tol else {})} for name, tol in zip(REVIEWED, tolerances, strict=True)]
    total = bridged(rows[0])
    lines = []
    for row in rows:
        second, year = row["fy"] - row["less"], bridged(row)
        line = [row["item"], row["first"], row["fy"] - row["first"], second, second + row["plus"], 0.0]
        lines.append([*line, year / row["fy"] - 1, year / total])
    review = {"file": FILE, "sheet": REVIEW, "columns": columns, "key": ["Item"], "rows": lines}
    calculated = [f"{REVIEW}!{letter}{n}" for n in range(2, len(rows) + 2) for letter in "CDEFGH"]
    return (
        Check("restatement", "table", {**review, "only": REVIEWED[1:3]}, weight=0.05, stage="intermediate",
              trap_ids=("T2", "T5")),
        Check("halves", "table", {**review, "only": REVIEWED[3:6]}, weight=0.05, stage="intermediate",
              trap_ids=("T5", "T9")),
        Check("ratios", "table", {**review, "only": REVIEWED[6:]}, weight=0.05),
        Check("formulas", "xlsx.formulas", {"file": FILE, "cells": calculated}, weight=0.03, stage="intermediate"),
    )  # fmt: skip


def layout(ask: Mapping[str, Any], answer: Answer, form: str = "plain") -> list[dict[str, Any]]:
    """The bridge and its review; all but the figures of reports are formulas unless numbers are typed."""
    rows, review = [], []
    bridge: Rows = [{**row, "ltm": sum(s * (row.get(k) or 0) for s, k in ((1, "fy"), (-1, "less"), (1, "plus")))}
                    for row in answer["bridge"]]  # fmt: skip
    for n, row in enumerate(bridge, start=2):
        fy, less, plus, first = (row.get(key) for key in KEYS)
        total: Any = f"=B{n}-C{n}+D{n}"
        lines: list[Any] = [
            f"='{SHEET}'!B{n}-B{n}", f"='{SHEET}'!B{n}-'{SHEET}'!C{n}", f"=D{n}+'{SHEET}'!D{n}",
            f"='{SHEET}'!E{n}-E{n}", f"='{SHEET}'!E{n}/'{SHEET}'!B{n}-1", f"='{SHEET}'!E{n}/'{SHEET}'!E$2",
        ]  # fmt: skip
        if form == "typed":
            total = row["ltm"]
            lines = [(fy or 0) - (first or 0), (fy or 0) - (less or 0), total, 0.0, total / (fy or 1) - 1,
                     total / (bridge[0]["ltm"] or 1)]  # fmt: skip
        rows.append([row.get("item"), fy, less, plus, total])
        review.append([row.get("item"), first, *lines])
    return [sheet(SHEET, ["Item", "Fiscal year", "Less", "Plus", "LTM"], rows), sheet(REVIEW, REVIEWED, review)]


def _instruction(office: Office, ask: Mapping[str, Any], rng: random.Random) -> str:
    year = ask["year"]
    opener = rng.choice((
        f"We need the last-twelve-months bridge for {office.setting.company}.",
        f"For the lenders' presentation, bridge the last twelve months of {office.setting.company}.",
        f"The valuation of {office.setting.company} runs on last-twelve-months figures, which nobody has put together.",
    ))  # fmt: skip
    if year is None:
        months = f"""on {office.setting.day(ask["end"])}: the last fiscal year that was complete by then, less its
first half, plus the first half of the next fiscal year."""
    else:
        months = f"""with the first half of FY{year + 1}: FY{year}, less the first half of FY{year},
plus the first half of FY{year + 1}."""
    names = "; ".join(ask["names"])
    return f"""{opener}

The twelve months are those that end {months}
Take the group's figures from the reports and notes in finance/reports, each as the latest of them that shows it for the
period has it, in thousands of {ask["currency"]}.

Save `artifacts/{FILE}` with a sheet `{SHEET}`, headers in row 1 and from row 2, in this order, one row each for:
{names}.
Columns A to E: `Item`, `Fiscal year`, `Less`, `Plus`, `LTM`. All amounts as the reports sign them, `Less` too; `LTM` is
a formula of the three.

A second sheet `{REVIEW}` has the same items in the same rows, and what a reviewer recomputes, in columns A to H:

- `Item`; `First reported`: the figure of the fiscal year in the annual report of that year; `Restatement`:
  `Fiscal year` less `First reported`
- `Second half`: `Fiscal year` less `Less`; `LTM by halves`: `Second half` plus `Plus`; `Difference`: `LTM` less that
- `Growth`: `LTM` over `Fiscal year`, less 1; `Margin`: `LTM` over that of revenue; both as fractions such as 0.125

C to H are formulas that follow the first sheet.
"""
