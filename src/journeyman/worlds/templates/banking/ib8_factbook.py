"""IB8: two slides of the factbook with native charts: revenue by line of business, and how the lines grew.

What makes it hard: three years stand in several reports in thousands, one of them restated, and a slide counts in
millions; what came after them stands in a list over several pages that no line sums up.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from journeyman.worlds.curriculum import Knobs
from journeyman.worlds.decks import pptx_bytes, save_deck, slide
from journeyman.worlds.template import Answer, Bound, Files, Lost, Solving, Unbindable, Wrong
from journeyman.worlds.templates import reading
from journeyman.worlds.verify import Check

if TYPE_CHECKING:
    from journeyman.worlds.office import Office

FILE = "revenue_slides.pptx"
FIRST, SECOND = "Revenue by line", "Growth by line"
SOURCE = "Source: annual reports"
MILLIONS = {"abs": 0.0011}
PERCENT = {"abs": 0.011}
MONTHLY = "revenue_month:"
"""Facts of the list of revenue begin so and end with the number of the line of business."""

LISTED = re.compile(r"^\s*(\[\"\d{4}-\d{2}\".*\])$", re.MULTILINE)
"""A row of that list; its header is none."""

Table = Mapping[str, Sequence[float]]
"""Line of business -> revenue of each period in thousands, the oldest first."""


@dataclass(frozen=True)
class IB8:
    """See the module."""

    id: str = "IB8"
    domain: str = "banking"
    title: str = "factbook slides with native charts of revenue by line"
    traps: tuple[str, ...] = ("T2", "T4", "T16")

    def bind(self, office: Office, rng: random.Random, knobs: Knobs) -> Bound:
        """See ``Template.bind``."""
        setting = office.setting
        names, years = list(setting.trade["lines"]), [f"FY{year}" for year in setting.years]
        latest, first, facts = {}, {}, []
        for number, name in enumerate(names, start=1):
            ids = [_latest(office, f"revenue_line:{number}:{year}") for year in years]
            facts += ids
            latest[name] = [_thousands(office, one) for one in ids]
            first[name] = [_thousands(office, one.removesuffix(":restated")) for one in ids]
        start, half = rng.choice((0, 1)), office.trap("T16", "revenue_line:")
        page: Table = {}
        if half is not None:
            rows, page = _half_year(office, names), _half_year(office, names, "p1/")
            years.append(half.site.partition(":")[2])
            for table in (latest, first):
                table.update({name: [*values, *rows[name]] for name, values in table.items()})
            facts += sorted(fact for fact in office.facts if fact.startswith(MONTHLY))
            if rows == page:
                raise Unbindable("the list of revenue has one page")
        ask = {"years": years, "from": years[start], "to": years[start + 1], "names": names,
               "half": years[-1] if half is not None else "", "by_year": rng.random() < 0.5,
               "currency": setting.currency, "file": FILE}  # fmt: skip
        answer = shown(latest, ask)
        is_restated = latest != first and office.trap("T2", "income:group:FY") is not None
        scaled = "T4" if office.trap("T4", "revenue_line:") else ""
        wrong = _wrong(latest, first if is_restated else None, page, ask, answer, scaled)
        late = _paged({name: [values[0], *values[:-1]] for name, values in latest.items()}, page)
        return Bound(
            self.id, self.domain, office.id, _instruction(office, ask, rng), ask, answer, _checks(ask, answer), (FILE,),
            wrong,
            trap_blind=shown(_paged(first, page) if is_restated else late, ask),
            single=shown({name: [0.0, *values[1:]] for name, values in late.items()}, ask),
            facts=tuple(facts),
            reads=tuple(d.path for kind in ("annual_report", "revenue_schedule") for d in office.of_kind(kind)[-2:]),
            traps=tuple(sorted({one.trap for one in wrong if one.trap})), knobs=knobs,
            notes={"lines": len(names), "restated": is_restated, "by_year": ask["by_year"], "half": bool(page)},
        )  # fmt: skip

    def write(self, bound: Bound, answer: Answer, world: Files, form: str = "plain") -> dict[str, bytes]:
        """See ``Template.write``."""
        return {FILE: pptx_bytes(slides(bound.ask, answer))}

    def solve(self, ask: Mapping[str, Any]) -> Solving:
        """See ``Template.solve``."""
        last = yield from _lines(ask["years"][2], ask["names"])
        before = yield from _lines(ask["years"][1], ask["names"])
        found = {name: [before[name][1], last[name][1], last[name][0]] for name in ask["names"]}
        if ask["half"]:
            listed = yield from reading.list_files("*revenue*by*line*.pdf", "finance")
            if len(listed) != 1:
                raise Lost(f"{len(listed)} lists of revenue by line")
            rows = LISTED.findall((yield from reading.document_text(listed[0])))
            for name, values in found.items():
                values.append(sum(reading.thousands(row[3]) for row in map(json.loads, rows) if row[2] == name) / 1000)
        yield from save_deck(FILE, slides(ask, shown(found, ask)))


def _lines(year: str, names: Sequence[str]) -> reading.Reading:
    """Line of business -> its revenue in the columns of a year's annual report. Raises Lost."""
    found = yield from reading.list_files(f"*annual*report*{year}*.pdf")
    if not found:
        raise Lost(f"no annual report {year}")
    text = yield from reading.document_text(found[0])
    rows = map(json.loads, re.findall(r"^\s*(\[.*\])$", text, re.M))
    table = {row[0]: [float(reading.whole_number(one)) for one in row[1:3]] for row in rows if row[0] in names}
    if len(table) != len(names):
        raise Lost(f"{len(table)} lines of business in {found[0]}")
    return table


def _half_year(office: Office, names: Sequence[str], page: str = "") -> dict[str, list[float]]:
    """Line of business -> the sum of its rows in the list, or of those on one page, in thousands."""
    found = {name: [0.0] for name in names}
    for fact in (one for one in office.facts.values() if one.fact_id.startswith(MONTHLY)):
        if any(place.locator.startswith(page) for place in office.where(fact.fact_id)):
            found[names[int(fact.fact_id.rpartition(":")[2]) - 1]][0] += float(fact.value) / 1000
    return found


def _paged(table: Table, page: Table) -> Table:
    """A table whose last period ends with the first page of the list, where there is a list."""
    return {name: [*values[:-1], *page[name]] if page else values for name, values in table.items()}


def _latest(office: Office, fact: str) -> str:
    restated = f"{fact}:restated"
    if fact not in office.facts:
        raise Unbindable(f"no {fact}")
    return restated if restated in office.facts else fact


def _thousands(office: Office, fact: str) -> float:
    return float(round(float(office.facts[fact].value) / 1000))


def shown(table: Table, ask: Mapping[str, Any]) -> Answer:
    """What both slides show: millions by line and year, their totals, growth in per cent."""
    start = ask["years"].index(ask["from"])
    lines = [
        {"line": name} | {year: round(value / 1000, 3) for year, value in zip(ask["years"], values, strict=True)}
        for name, values in table.items()
    ]
    totals = {year: round(sum(values[n] for values in table.values()) / 1000, 3) for n, year in enumerate(ask["years"])}
    growth = [
        {"line": name, "percent": round(100 * (values[start + 1] / values[start] - 1), 2) if values[start] else 0.0}
        for name, values in table.items()
    ]
    return {"lines": lines, "totals": totals, "growth": growth, "source": SOURCE}


def _wrong(
    latest: Table, first: Table | None, page: Table, ask: Mapping[str, Any], answer: Answer, scaled: str
) -> tuple[Wrong, ...]:
    names = list(latest)
    versions: dict[str, Table] = {
        "thousands for millions": {name: [v * 1000 for v in values] for name, values in latest.items()},
        "swapped-entity": {name: latest[names[n - 1]] for n, name in enumerate(names)},
        "stale-version": {name: [values[0], *values[:-1]] for name, values in latest.items()},
        "years from right to left": {name: values[::-1] for name, values in latest.items()},
        "last line left out": {
            name: latest[name] if name != names[-1] else [0.0] * len(ask["years"]) for name in names
        },
    }
    if first is not None:
        versions["T2:first reported"] = first
    if page:
        versions["T16:first page only"] = _paged(latest, page)
    return tuple(
        Wrong(
            name,
            made,
            "revenue",
            scaled if "thousands" in name else name.partition(":")[0] if name.startswith("T") else "",
        )
        for name, table in versions.items()
        if (made := shown(table, ask))["lines"] != answer["lines"]
    )


def slides(ask: Mapping[str, Any], answer: Answer) -> list[dict[str, Any]]:
    """Both slides with their charts."""
    lines, growth = answer["lines"], answer["growth"]
    names = [str(row.get("line") or "?") for row in lines]
    by_year = {year: [row.get(year) for row in lines] for year in ask["years"]}
    by_line = {name: [row.get(year) for year in ask["years"]] for name, row in zip(names, lines, strict=True)}
    categories, series = (names, by_year) if ask["by_year"] else (ask["years"], by_line)
    totals = [f"Total {year}: {answer['totals'].get(year)}" for year in ask["years"]]
    source = str(answer.get("source") or "")
    return [
        slide(FIRST, [*totals, source], categories, **series),
        slide(SECOND, [f"{ask['from']} to {ask['to']}, per cent", source],
              [str(row.get("line") or "?") for row in growth], Growth=[row.get("percent") for row in growth]),
    ]  # fmt: skip


def _checks(ask: Mapping[str, Any], answer: Answer) -> tuple[Check, ...]:
    revenue, growth = slides(ask, answer)
    series = [{"name": name, "values": values} for name, values in revenue["series"].items()]
    grown = [{"values": values} for values in growth["series"].values()]
    base = {"file": FILE}
    totals = [answer["totals"][year] for year in ask["years"]]
    return (
        Check("file", "present", {"files": [FILE]}, kind="gate", no_op="pass"),
        Check("titles", "deck.titles", {**base, "titles": [FIRST, SECOND]}, weight=0.03, stage="intermediate"),
        Check("revenue", "deck.series", {**base, "title": FIRST, "series": series, "categories": revenue["categories"],
              "exact": True, "tol": MILLIONS}, weight=0.5, trap_ids=("T2", "T16")),
        Check("growth", "deck.series", {**base, "title": SECOND, "series": grown, "categories": growth["categories"],
              "exact": True, "tol": PERCENT}, weight=0.25, trap_ids=("T2",)),
        Check("totals", "deck.says", {**base, "title": FIRST, "facts": totals, "tol": MILLIONS}, weight=0.15,
              stage="intermediate", trap_ids=("T2", "T16")),
        Check("sources", "deck.says", {**base, "title": FIRST, "facts": [SOURCE]}, weight=0.04, stage="intermediate"),
        Check("tidy", "deck.tidy", base, weight=0.03, stage="intermediate"),
    )  # fmt: skip


def _instruction(office: Office, ask: Mapping[str, Any], rng: random.Random) -> str:
    opener = rng.choice((
        f"The factbook on {office.setting.company} still lacks its pages on the lines of business.",
        f"Buyers of {office.setting.company} want to see revenue by line of business.",
        f"Please add what the factbook on {office.setting.company} says is pending: revenue by line.",
    ))  # fmt: skip
    years = ", ".join(ask["years"])
    how = (
        f"one series per period (named {ask['years'][0]} and so on) over the lines as categories"
        if ask["by_year"]
        else "one series per line, named as in the reports, over the periods as categories"
    )
    half = (
        f"""
{ask["half"]} is in no report by line: it is the sum of the rows of the list of revenue by line in finance.
"""
        if ask["half"]
        else ""
    )
    return f"""{opener}

Save `artifacts/{FILE}`, a presentation with two slides, each with a native column or bar chart:

- `{FIRST}`: revenue of {years} by line of business, in millions of {ask["currency"]} with three decimals; {how}. Its
  text states the total of each (such as Total {ask["years"][0]}: 12.345) and ends with `{SOURCE}`.
- `{SECOND}`: growth of each line from {ask["from"]} to {ask["to"]} in per cent with two decimals, one series over the
  lines.

Take the figures of fiscal years from the notes of the annual reports in finance/reports, each year as the latest
report that shows it has it, lines in the order of the reports, the oldest period first. Totals and growth are computed
from the figures as the reports print them, in thousands.
{half}"""
