"""IB1: the last twelve months' revenue and EBITDA, bridged from a fiscal year and two half years.

What makes it hard: half years of two fiscal years, figures that were restated in a later report, thousands, and a
bridge that has to follow its inputs.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from journeyman.worlds.curriculum import Knobs
from journeyman.worlds.drafting import sheet, xlsx_bytes
from journeyman.worlds.template import Answer, Bound, Files, Lost, Solving, Unbindable, Wrong
from journeyman.worlds.templates import reading
from journeyman.worlds.templates.matrices import matrix_checks
from journeyman.worlds.verify import Check

if TYPE_CHECKING:
    from journeyman.worlds.office import Office

FILE = "ltm_bridge.xlsx"
LINES = {
    "revenue": "Revenue",
    "gross_profit": "Gross profit",
    "ebitda": "EBITDA before",
    "ebit": "Operating profit",
    "net_income": "Profit for the period",
}
NAMES = {
    "revenue": "Revenue",
    "gross_profit": "Gross profit",
    "ebitda": "EBITDA before exceptional items",
    "ebit": "Operating profit",
    "net_income": "Profit for the period",
}
THOUSANDS = {"abs": 1.1}


@dataclass(frozen=True)
class IB1:
    """See the module."""

    id: str = "IB1"
    domain: str = "banking"
    title: str = "last-twelve-months bridge of revenue and EBITDA"
    traps: tuple[str, ...] = ("T2",)

    def bind(self, office: Office, rng: random.Random, knobs: Knobs) -> Bound:
        """See ``Template.bind``."""
        year = rng.choice(office.setting.years[-2:])
        items = ["revenue", "ebitda", *sorted(rng.sample(["gross_profit", "ebit", "net_income"], min(3, knobs.hops)))]
        periods = {"fy": f"FY{year}", "less": f"H1 FY{year}", "plus": f"H1 FY{year + 1}"}
        ask = {"year": year, "items": items, "names": [NAMES[item] for item in items], "file": FILE,
               "currency": office.setting.currency}  # fmt: skip
        now = {item: {k: _value(office, p, item, latest=True) for k, p in periods.items()} for item in items}
        first = {item: {k: _value(office, p, item, latest=False) for k, p in periods.items()} for item in items}
        answer = {"bridge": [{"item": NAMES[item], **now[item]} for item in items]}
        restated = [item for item in items if now[item]["fy"] != first[item]["fy"]]
        planted = office.trap("T2", f"income:group:FY{year}") is not None
        before = {item: _value(office, f"FY{year - 1}", item, latest=True, optional=True) for item in items}
        rows = answer["bridge"]
        wrong = _wrong(rows, [before[item] for item in items])
        if planted and restated:
            old = [{**r, "fy": first[i]["fy"]} for i, r in zip(items, rows, strict=True)]
            wrong.append(Wrong("T2:first reported", {"bridge": old}, "hard cells", "T2"))
        one_report = [
            {**r, "fy": first[i]["fy"], "less": r["fy"], "plus": r["fy"]} for i, r in zip(items, rows, strict=True)
        ]
        blind = [
            {**r, "fy": first[i]["fy"], "less": r["plus"], "plus": r["less"]} for i, r in zip(items, rows, strict=True)
        ]
        hard = [(n, 1) for n, item in enumerate(items) if item in restated] or [(n, 2) for n in range(len(items))]
        facts = [office.where(_fact(office, p, item, latest=True)) for item in items[:2] for p in periods.values()]
        if not all(facts):
            raise Unbindable("a figure of the bridge is in no report")
        return Bound(
            self.id, self.domain, office.id, _instruction(office, ask, rng), ask, answer, _checks(rows, hard), (FILE,),
            tuple(one for one in wrong if one.answer["bridge"] != rows), trap_blind={"bridge": blind},
            single={"bridge": one_report},
            facts=tuple(_fact(office, p, item, latest=True) for item in items[:2] for p in periods.values()),
            reads=(), traps=("T2",) if planted and restated else (), unordered=(), knobs=knobs,
            notes={"year": year, "items": len(items), "restated": len(restated)},
        )  # fmt: skip

    def write(self, bound: Bound, answer: Answer, world: Files, form: str = "plain") -> dict[str, bytes]:
        """See ``Template.write``."""
        return {FILE: xlsx_bytes(layout(bound.ask, answer, form))}

    def solve(self, ask: Mapping[str, Any]) -> Solving:
        """See ``Template.solve``."""
        year = int(ask["year"])
        full = yield from _figures("annual", ((year + 1, 1), (year, 0)), ask["items"])
        less = yield from _figures("interim", ((year + 1, 1), (year, 0)), ask["items"])
        plus = yield from _figures("interim", ((year + 2, 1), (year + 1, 0)), ask["items"])
        rows = [
            {"item": NAMES[item], "fy": full[item], "less": less[item], "plus": plus[item]} for item in ask["items"]
        ]
        yield from reading.deliver_workbook(FILE, layout(ask, {"bridge": rows}))
        yield from reading.tab(f"/artifacts/{FILE}")


def _exchanged(row: Mapping[str, Any]) -> dict[str, Any]:
    return {**row, "less": row["plus"], "plus": row["less"]}


def _wrong(rows: list[dict[str, Any]], before: list[float]) -> list[Wrong]:
    keys = ("fy", "less", "plus")
    versions = {
        "half years exchanged": [_exchanged(row) for row in rows],
        "stale-version": [{**row, "fy": old} for row, old in zip(rows, before, strict=True)],
        "swapped-entity": [{**row, "fy": rows[n - 1]["fy"]} for n, row in enumerate(rows)],
        "units for thousands": [{**row, **{key: row[key] * 1000 for key in keys}} for row in rows],
        "added instead of taken off": [{**row, "less": -row["less"]} for row in rows],
    }
    return [Wrong(name, {"bridge": bridge}, "every cell") for name, bridge in versions.items()]


def _figures(report: str, places: tuple[tuple[int, int], ...], items: list[str]) -> reading.Reading:
    """Items of a period in thousands, from the latest report that shows it: (year in its name, column)."""
    for year, column in places:
        found = yield from reading.list_files(f"*{report}*report*FY{year}*.pdf")
        if found:
            text = yield from reading.document_text(found[0])
            lines = {item: reading.report_line(text, LINES[item]) for item in items}
            if all(len(numbers) > column for numbers in lines.values()):
                return {item: reading.thousands(numbers[column]) for item, numbers in lines.items()}
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
    return float(round(float(found.value) / 1000))


def _checks(rows: list[dict[str, Any]], hard: list[tuple[int, int]]) -> tuple[Check, ...]:
    columns: list[dict[str, Any]] = [{"name": "Item"}, {"name": "Fiscal year", "tol": THOUSANDS},
               {"name": "Less", "tol": THOUSANDS}, {"name": "Plus", "tol": THOUSANDS},
               {"name": "LTM", "tol": {"abs": 3.2}}]  # fmt: skip
    cells = [[r["item"], r["fy"], r["less"], r["plus"], r["fy"] - r["less"] + r["plus"]] for r in rows]
    moved = [
        {"set": {f"LTM!B{n}": 500.0, f"LTM!C{n}": 200.0, f"LTM!D{n}": 250.0}, "expect": {f"LTM!E{n}": 550.0}}
        for n in range(2, len(rows) + 2)
    ]
    return (
        Check("files", "present", {"files": [FILE]}, kind="gate", no_op="pass"),
        Check("no errors", "xlsx.no_errors", {"file": FILE}, kind="gate", no_op="pass"),
        *matrix_checks(FILE, columns, cells, hard, key=["Item"], sheet="LTM", trap_ids=("T2",)),
        Check("follows", "xlsx.follows", {"file": FILE, "trials": moved}, weight=0.1),
    )


def layout(ask: Mapping[str, Any], answer: Answer, form: str = "plain") -> list[dict[str, Any]]:
    """One sheet; the last column is a formula unless numbers are typed."""
    rows = []
    for number, row in enumerate(answer["bridge"], start=2):
        fy, less, plus = (row.get(key) for key in ("fy", "less", "plus"))
        total: Any = f"=B{number}-C{number}+D{number}"
        if form == "typed":
            total = (fy or 0) - (less or 0) + (plus or 0)
        rows.append([row.get("item"), fy, less, plus, total])
    return [sheet("LTM", ["Item", "Fiscal year", "Less", "Plus", "LTM"], rows)]


def _instruction(office: Office, ask: Mapping[str, Any], rng: random.Random) -> str:
    year = ask["year"]
    opener = rng.choice((
        f"We need the last-twelve-months bridge for {office.setting.company}.",
        f"For the lenders' presentation, bridge the last twelve months of {office.setting.company}.",
        f"The valuation of {office.setting.company} runs on last-twelve-months figures, which nobody has put together.",
    ))  # fmt: skip
    names = "; ".join(ask["names"])
    return f"""{opener}

The twelve months are those that end with the first half of FY{year + 1}: FY{year}, less the first half of FY{year},
plus the first half of FY{year + 1}. Take the group's figures from the reports in finance/reports, each as the latest
report that shows the period has it, in thousands of {ask["currency"]}.

Save `artifacts/{FILE}` with a sheet `LTM`, headers in row 1 and from row 2, in this order, one row each for: {names}.
Columns A to E: `Item`, `Fiscal year`, `Less`, `Plus`, `LTM`. All amounts as the reports sign them, `Less` too; `LTM` is
a formula of the three.
"""
