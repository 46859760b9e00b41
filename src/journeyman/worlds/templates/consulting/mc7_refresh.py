"""MC7: some slides of the board pack refreshed from the new workbook of key figures, the rest left as it is.

What makes it hard: text, table, chart and source of a slide belong together, a figure of the quarter before may have
been restated, a number of an earlier version may stand among the formulas of the workbook, and nothing else in the deck
may change.
"""

from __future__ import annotations

import io
import random
import re
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from journeyman.worlds.content import Deck
from journeyman.worlds.curriculum import Knobs
from journeyman.worlds.plan import Planted
from journeyman.worlds.render.canonical import canonical_zip, rezip
from journeyman.worlds.template import Answer, Bound, Files, Lost, Solving, Unbindable, Wrong
from journeyman.worlds.templates import reading
from journeyman.worlds.templates.banking.sheets import sheet_rows
from journeyman.worlds.templates.consulting import kpi_deck
from journeyman.worlds.verify import Check

if TYPE_CHECKING:
    from journeyman.worlds.office import Office

FILE = "board_pack.pptx"
QUARTERS = 4
TRAPS = ("T2", "T13")


@dataclass(frozen=True)
class MC7:
    """See the module."""

    id: str = "MC7"
    domain: str = "consulting"
    title: str = "slides of a board pack refreshed from a new workbook"
    traps: tuple[str, ...] = TRAPS

    def bind(self, office: Office, rng: random.Random, knobs: Knobs) -> Bound:
        """See ``Template.bind``."""
        decks, books = office.of_kind("kpi_deck"), office.of_kind("kpi_workbook")
        if len(decks) != 1 or len(books) != 1 or not isinstance(decks[0].content, Deck):
            raise Unbindable("no board pack, or no workbook of key figures")
        names = list(office.setting.trade["kpis"])
        planted = {trap: found for trap in TRAPS if (found := office.trap(trap, "kpi:"))}
        trapped = sorted({found.site.split(":")[1] for found in planted.values()})
        if len(trapped) > 1 or len(names) < 2:
            raise Unbindable("traps on two slides, or one slide in all")
        others = rng.sample([name for name in names if name not in trapped], len(names) - 1)
        chosen = {*trapped, *others[: rng.randint(1, len(names) - 1) - len(trapped)]}
        kept = [name for name in names if name in chosen]
        quarters = _quarters(office, books[0].subject)
        ask: dict[str, Any] = {"slides": kept, "period": books[0].subject, "file": FILE}
        answer: Answer = {"periods": quarters, "slides": [_row(office, name, quarters) for name in kept]}
        baited = _baited(answer, planted)
        everything = {**answer, "slides": [_row(office, name, quarters) for name in names]}
        return Bound(
            self.id, self.domain, office.id, _instruction(office, ask, rng, decks[0].path), ask, answer,
            _checks(answer, decks[0].content, decks[0].path, "".join(trapped)), (FILE,),
            _wrong(answer, everything, planted),
            trap_blind={**everything, "slides": [*baited["slides"], *(
                row for row in everything["slides"] if row["kpi"] not in chosen
            )]}, single={**answer, "slides": []},
            facts=_facts([f"kpi:{name}:{period}" for name in kept for period in quarters], planted.get("T13")),
            reads=(decks[0].path, books[0].path), originals=(decks[0].path,), traps=tuple(planted),
            knobs=knobs, notes={"slides": len(kept), "deck": decks[0].path},
        )  # fmt: skip

    def write(self, bound: Bound, answer: Answer, world: Files, form: str = "plain") -> dict[str, bytes]:
        """See ``Template.write``."""
        return {FILE: _undated(kpi_deck.refreshed(world[bound.notes["deck"]], dict(answer)))}

    def solve(self, ask: Mapping[str, Any]) -> Solving:
        """See ``Template.solve``."""
        decks = yield from reading.list_files("*kpi*board*pack*.pptx", "reporting")
        books = yield from reading.list_files("*kpi*workbook*.xlsx", "reporting")
        if len(decks) != 1 or len(books) != 1:
            raise Lost(f"{len(decks)} board packs, {len(books)} workbooks")
        table = yield from _means(books[0])
        periods = list(dict.fromkeys(period for _, period in table))[-QUARTERS:]
        rows = [{"kpi": name, "values": [table[name, p] for p in periods]} for name in ask["slides"]]
        plan = {"periods": periods, "slides": rows}
        text = Path(kpi_deck.__file__).read_text()
        yield from reading.shell("mkdir -p artifacts")
        text += f"\n\nsource = open({decks[0]!r}, 'rb').read()\nmade = refreshed(source, {plan!r})\n"
        code = f"{text}open('artifacts/{FILE}', 'wb').write(made)"
        yield from reading.shell(f"python3 - <<'END_OF_PROGRAM'\n{code}\nEND_OF_PROGRAM")


def _quarters(office: Office, last: str) -> list[str]:
    """The last quarters up to one."""
    known = [row["period"] for row in office.truth.rows("SELECT DISTINCT period FROM kpi")]
    known.sort(key=lambda period: (period[-6:], period))
    at = known.index(last)
    return known[at - QUARTERS + 1 : at + 1]


def _row(office: Office, name: str, periods: Sequence[str]) -> dict[str, Any]:
    values = [
        float(office.truth.value(
            "SELECT value FROM kpi WHERE name = :n AND period = :p AND known_to IS NULL", n=name, p=period
        ))
        for period in periods
    ]  # fmt: skip
    return {"kpi": name, "values": values}


def _means(path: str) -> reading.Reading:
    """(key figure, quarter) -> the mean of its months, to a decimal place. Raises Lost."""
    rows = yield from sheet_rows(path, 1)
    head = next((number for number, row in sorted(rows.items()) if row and row[0] == "Key figure"), 0)
    if head - 1 not in rows:
        raise Lost(f"{path} has no key figures by month")
    months: dict[tuple[str, str], list[float]] = {}
    for row in (row for number, row in rows.items() if number > head):
        for quarter, value in zip(rows[head - 1][1:], row[1:], strict=False):
            months.setdefault((str(row[0]), str(quarter)), []).append(float(value))
    return {place: round(sum(values) / len(values), 1) for place, values in months.items()}


def _facts(facts: Sequence[str], pasted: Planted | None) -> tuple[str, ...]:
    """Where a number was pasted over a figure, its months state it."""
    return tuple(one for one in facts if not pasted or one != pasted.site) + (pasted.fact_ids if pasted else ())


def _baited(answer: Answer, planted: Mapping[str, Planted]) -> Answer:
    """Values as the old deck has them where they were restated, and as they were pasted."""
    old = {one.site: float(one.wrong["value"]) for one in planted.values()}
    rows = [
        {**row, "values": [
            old.get(f"kpi:{row['kpi']}:{period}", value)
            for period, value in zip(answer["periods"], row["values"], strict=True)
        ]}
        for row in answer["slides"]
    ]  # fmt: skip
    return {**answer, "slides": rows}


def _wrong(answer: Answer, everything: Answer, planted: Mapping[str, Planted]) -> tuple[Wrong, ...]:
    rows, periods = answer["slides"], answer["periods"]
    names = [row["kpi"] for row in everything["slides"]]
    after = {name: names[i - 1] for i, name in enumerate(names)}
    by_name = {row["kpi"]: row["values"] for row in everything["slides"]}
    swapped = [{**row, "values": by_name[after[row["kpi"]]]} for row in rows]
    stale = [{**row, "values": [row["values"][0], *row["values"][:-1]]} for row in rows]
    turned = {"periods": periods[::-1], "slides": [{**row, "values": row["values"][::-1]} for row in rows]}
    tenths = [{**row, "values": [round(value / 10, 1) for value in row["values"]]} for row in rows]
    trapped = [found.site.split(":")[1] for found in planted.values()]
    first = f"chart of {(trapped or [rows[0]['kpi']])[0]}"
    found = [
        Wrong("every slide refreshed", everything, "nothing else"),
        Wrong("swapped-entity", {**answer, "slides": swapped}, first),
        Wrong("stale-version", {**answer, "slides": stale}, first),
        Wrong("newest first", turned, first),
        Wrong("a tenth", {**answer, "slides": tenths}, first),
    ]
    for trap, words in (("T2", "as first reported"), ("T13", "pasted number kept")):
        if trap in planted:
            found.append(Wrong(f"{trap}:{words}", _baited(answer, {trap: planted[trap]}), first, trap))
    return tuple(one for one in found if one.answer != answer)


def _checks(answer: Answer, deck: Deck, path: str, trapped: str) -> tuple[Check, ...]:
    titles = [slide.title.lower() for slide in deck.slides]
    rows, periods = answer["slides"], answer["periods"]
    places = [f"s{titles.index(row['kpi'].lower()) + 1}/sh{n}" for row in rows for n in (3, 4, 5, 6)]
    others = 0.4 / (len(rows) - 1) if len(rows) > 1 else 0.0
    checks = [
        Check("files", "present", {"files": [FILE]}, kind="gate", no_op="pass"),
        Check("nothing else", "deck.shapes_changed", {"file": FILE, "original": path, "places": places}, kind="gate"),
    ]
    for row in rows:
        is_heavy = row["kpi"] == trapped or not others
        weight = 0.6 if is_heavy else others if trapped else 1 / len(rows)
        drawn = 0.9 if is_heavy else 0.6  # words may miss a trap: another quarter may have the right figure as well
        checks.append(Check(f"chart of {row['kpi']}", "deck.series", {
            "file": FILE, "title": row["kpi"], "categories": periods, "series": [{"values": row["values"]}],
            "tol": {"abs": 0.051},
        }, weight=drawn * weight, trap_ids=TRAPS))  # fmt: skip
        checks.append(Check(f"words of {row['kpi']}", "deck.says", {
            "file": FILE, "title": row["kpi"], "tol": {"abs": 0.011},
            "facts": [*row["values"], *periods, f"Source: KPI workbook {periods[-1]}", f"{periods[-1]}:"],
        }, weight=(1 - drawn) * weight, stage="intermediate", trap_ids=TRAPS))  # fmt: skip
    return tuple(checks)


def _undated(data: bytes) -> bytes:
    """A deck whose charts carry workbooks without the instant at which the library made them. Same deck, same bytes."""
    with zipfile.ZipFile(io.BytesIO(data)) as container:
        parts = {name: container.read(name) for name in container.namelist()}
    for name, part in parts.items():
        if name.startswith("ppt/embeddings/") and name.endswith(".xlsx"):
            with zipfile.ZipFile(io.BytesIO(part)) as inner:
                inside = {one: inner.read(one) for one in inner.namelist()}
            core = inside.get("docProps/core.xml", b"")
            inside["docProps/core.xml"] = re.sub(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", b"2000-01-01T00:00:00Z", core)
            parts[name] = rezip(canonical_zip(inside))
    return rezip(canonical_zip(parts))


def _instruction(office: Office, ask: Mapping[str, Any], rng: random.Random, path: str) -> str:
    company, names = office.setting.company, ", ".join(ask["slides"])
    opener = rng.choice((
        f"The board of {company} meets tomorrow and part of its pack is a quarter old.",
        f"The workbook of key figures for {ask['period']} is out; please refresh part of the board pack of {company}.",
        f"Planning at {company} has new key figures, and some slides have to follow.",
    ))  # fmt: skip
    return f"""{opener}

The pack is {path}, the new workbook lies beside it. Refresh the slides of these key figures only: {names}. On each of
them:

- the first line of the key messages: {ask["period"]} and its figure, written as before
- the table: the last four quarters up to {ask["period"]}, oldest first, with the figures of the new workbook (a
  quarter's figure is the mean of its three months on the sheet Months, to one decimal)
- the chart, still a native one: the same four quarters and figures
- the source: the workbook of {ask["period"]}, worded as before

Everything else stays as it is, on these slides and on all others. Save the whole deck as `artifacts/{FILE}`; leave the
original as it is.
"""
