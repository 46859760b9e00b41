"""MC7: some slides of the board pack refreshed from the new workbook of key figures, the rest left as it is.

What makes it hard: text, table, chart and source of a slide belong together, a figure of the quarter before may have
been restated, and nothing else in the deck may change.
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
from journeyman.worlds.render.canonical import canonical_zip, rezip
from journeyman.worlds.template import Answer, Bound, Files, Lost, Solving, Unbindable, Wrong
from journeyman.worlds.templates import reading
from journeyman.worlds.templates.consulting import kpi_deck
from journeyman.worlds.templates.search.s3_absent import key_figures
from journeyman.worlds.verify import Check

if TYPE_CHECKING:
    from journeyman.worlds.office import Office

FILE = "board_pack.pptx"
QUARTERS = 4


@dataclass(frozen=True)
class MC7:
    """See the module."""

    id: str = "MC7"
    domain: str = "consulting"
    title: str = "slides of a board pack refreshed from a new workbook"
    traps: tuple[str, ...] = ("T2",)

    def bind(self, office: Office, rng: random.Random, knobs: Knobs) -> Bound:
        """See ``Template.bind``."""
        decks, books = office.of_kind("kpi_deck"), office.of_kind("kpi_workbook")
        if len(decks) != 1 or len(books) != 1 or not isinstance(decks[0].content, Deck):
            raise Unbindable("no board pack, or no workbook of key figures")
        names = list(office.setting.trade["kpis"])
        planted = office.trap("T2", "kpi:")
        restated = planted.site.split(":")[1] if planted else ""
        chosen = set(rng.sample(names, rng.randint(1, len(names) - 1))) | ({restated} if restated else set())
        if len(chosen) == len(names):
            raise Unbindable("every slide would change")
        kept = [name for name in names if name in chosen]
        quarters = _quarters(office, books[0].subject)
        ask: dict[str, Any] = {"slides": kept, "period": books[0].subject, "file": FILE}
        answer: Answer = {"periods": quarters, "slides": [_row(office, name, quarters) for name in kept]}
        baited = _baited(answer, planted.wrong["value"] if planted else None, restated)
        everything = {**answer, "slides": [_row(office, name, quarters) for name in names]}
        return Bound(
            self.id, self.domain, office.id, _instruction(office, ask, rng, decks[0].path), ask, answer,
            _checks(answer, decks[0].content, decks[0].path, restated), (FILE,),
            _wrong(office, answer, baited, everything, restated),
            trap_blind={**everything, "slides": [*baited["slides"], *(
                row for row in everything["slides"] if row["kpi"] not in chosen
            )]}, single={**answer, "slides": []},
            facts=tuple(f"kpi:{name}:{period}" for name in kept for period in quarters),
            reads=(decks[0].path, books[0].path), originals=(decks[0].path,), traps=("T2",) if restated else (),
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
        table = yield from key_figures(books[0])
        periods = list(dict.fromkeys(period for _, period in table))[-QUARTERS:]
        rows = [{"kpi": name, "values": [table[name, p][0] for p in periods]} for name in ask["slides"]]
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


def _baited(answer: Answer, old: Any, restated: str) -> Answer:
    """Values as the old deck has them where they were restated."""
    rows = [
        {**row, "values": [*row["values"][:-2], float(old), row["values"][-1]]} if row["kpi"] == restated else row
        for row in answer["slides"]
    ]
    return {**answer, "slides": rows}


def _wrong(office: Office, answer: Answer, baited: Answer, everything: Answer, restated: str) -> tuple[Wrong, ...]:
    rows, periods = answer["slides"], answer["periods"]
    names = [row["kpi"] for row in everything["slides"]]
    after = {name: names[i - 1] for i, name in enumerate(names)}
    by_name = {row["kpi"]: row["values"] for row in everything["slides"]}
    swapped = [{**row, "values": by_name[after[row["kpi"]]]} for row in rows]
    stale = [{**row, "values": [row["values"][0], *row["values"][:-1]]} for row in rows]
    turned = {"periods": periods[::-1], "slides": [{**row, "values": row["values"][::-1]} for row in rows]}
    tenths = [{**row, "values": [round(value / 10, 1) for value in row["values"]]} for row in rows]
    first = f"chart of {restated or rows[0]['kpi']}"
    found = [
        Wrong("every slide refreshed", everything, "nothing else"),
        Wrong("swapped-entity", {**answer, "slides": swapped}, first),
        Wrong("stale-version", {**answer, "slides": stale}, first),
        Wrong("newest first", turned, first),
        Wrong("a tenth", {**answer, "slides": tenths}, first),
    ]
    if restated:
        found.append(Wrong("T2:as first reported", baited, first, "T2"))
    return tuple(one for one in found if one.answer != answer)


def _checks(answer: Answer, deck: Deck, path: str, restated: str) -> tuple[Check, ...]:
    titles = [slide.title.lower() for slide in deck.slides]
    rows, periods = answer["slides"], answer["periods"]
    places = [f"s{titles.index(row['kpi'].lower()) + 1}/sh{n}" for row in rows for n in (3, 4, 5, 6)]
    others = 0.45 / (len(rows) - 1) if len(rows) > 1 else 0.0
    checks = [
        Check("files", "present", {"files": [FILE]}, kind="gate", no_op="pass"),
        Check("nothing else", "deck.shapes_changed", {"file": FILE, "original": path, "places": places}, kind="gate"),
    ]
    for row in rows:
        is_heavy = row["kpi"] == restated or not others
        weight = 0.55 if is_heavy else others if restated else 1 / len(rows)
        checks.append(Check(f"chart of {row['kpi']}", "deck.series", {
            "file": FILE, "title": row["kpi"], "categories": periods, "series": [{"values": row["values"]}],
            "tol": {"abs": 0.051},
        }, weight=0.6 * weight, trap_ids=("T2",)))  # fmt: skip
        checks.append(Check(f"words of {row['kpi']}", "deck.says", {
            "file": FILE, "title": row["kpi"], "tol": {"abs": 0.011},
            "facts": [*row["values"], *periods, f"Source: KPI workbook {periods[-1]}", f"{periods[-1]}:"],
        }, weight=0.4 * weight, stage="intermediate", trap_ids=("T2",)))  # fmt: skip
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
- the table: the last four quarters up to {ask["period"]}, oldest first, with the figures of the new workbook
- the chart, still a native one: the same four quarters and figures
- the source: the workbook of {ask["period"]}, worded as before

Everything else stays as it is, on these slides and on all others. Save the whole deck as `artifacts/{FILE}`; leave the
original as it is.
"""
