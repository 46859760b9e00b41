"""MC4: spans and layers by unit from the personnel export, and a slide that shows the same spans.

What makes it hard: two exports lie side by side, one of them old; layers follow from chains of managers; dates of entry
are days since 1904 in some workbooks.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

from journeyman.worlds.content import Book, unmarked
from journeyman.worlds.curriculum import Knobs
from journeyman.worlds.decks import Slide, pptx_bytes, save_deck, slide
from journeyman.worlds.drafting import sheet, xlsx_bytes
from journeyman.worlds.template import Answer, Bound, Files, Lost, Solving, ToolCall, Unbindable, Wrong
from journeyman.worlds.templates import reading
from journeyman.worlds.templates.matrices import matrix_checks
from journeyman.worlds.verify import Check

if TYPE_CHECKING:
    from journeyman.worlds.office import Office

BOOK, DECK = "spans.xlsx", "spans.pptx"
TITLE = "Spans of control"
COLUMNS = ("unit", "people", "managers", "reports", "deepest", "joined")
DAYS_1904 = 1462
"""Days between the two systems in which spreadsheets count."""

Person = dict[str, str]
"""``id``, ``unit``, ``grade``, ``hired`` (ISO date), ``manager`` (empty for the head of the company)."""


@dataclass(frozen=True)
class MC4:
    """See the module."""

    id: str = "MC4"
    domain: str = "consulting"
    title: str = "spans and layers by unit from the personnel export, with a slide"
    traps: tuple[str, ...] = ("T1", "T15")

    def bind(self, office: Office, rng: random.Random, knobs: Knobs) -> Bound:
        """See ``Template.bind``."""
        exports = office.of_kind("hris")
        if len(exports) != 1:
            raise Unbindable("no personnel export, or several")
        rows = office.truth.as_of(exports[0].known_from).rows(
            "SELECT p.id, p.unit, p.grade, p.valid_from AS hired, e.manager_id AS manager FROM person_at p LEFT JOIN"
            " org_edge_at e ON e.report_id = p.id WHERE p.grade IS NOT NULL ORDER BY p.id"
        )
        people = [{**row, "manager": row["manager"] or ""} for row in rows]
        units = sorted({one["unit"] for one in people})
        count = max(3, min(len(units), 2 + knobs.fan_out))
        dates = sorted(one["hired"] for one in people)
        ask: dict[str, Any] = {
            "units": sorted(rng.sample(units, count)),
            "since": f"{dates[rng.randrange(len(dates) // 4, 3 * len(dates) // 4)][:4]}-01-01",
        }
        answer = spans(people, ask)
        old = [person for document in office.of_kind("hris_old") for person in _written(document.content)]
        wrong = _wrong(people, old, ask, answer, office)
        shifted = [{**one, "hired": _earlier(one["hired"])} for one in old or people]
        return Bound(
            self.id, self.domain, office.id, _instruction(office, ask, rng), ask, answer,
            _checks(ask, answer, wrong), (BOOK, DECK), wrong,
            trap_blind=spans(_graded(shifted), ask), single=spans([{**one, "manager": ""} for one in shifted], ask),
            facts=tuple(f"hris:{one['id']}:manager" for one in people if one["manager"]), reads=(exports[0].path,),
            traps=tuple(sorted({one.trap for one in wrong if one.trap})), unordered=("units",), knobs=knobs,
            notes={"units": len(ask["units"]), "people": len(people)},
        )  # fmt: skip

    def write(self, bound: Bound, answer: Answer, world: Files, form: str = "plain") -> dict[str, bytes]:
        """See ``Template.write``."""
        return {BOOK: xlsx_bytes(layout(answer, form)), DECK: pptx_bytes(slides(bound.ask, answer))}

    def solve(self, ask: Mapping[str, Any]) -> Solving:
        """See ``Template.solve``."""
        found = yield from reading.list_files("*personnel*export*.xlsx", "people")
        current = [path for path in found if not re.search(r"\d{4}-\d\d-\d\d|v2", path, re.IGNORECASE)]
        if len(current) != 1:
            raise Lost(f"{len(current)} current personnel exports")
        text = yield from reading.tab(f"/{current[0]}")
        rows = [json.loads(match[1]) for match in re.finditer(r"^\d+: (\[.*\])$", text, re.MULTILINE)]
        people: list[Person] = [
            {"id": row[0], "unit": row[3], "grade": row[4], "hired": str(row[5])[:10], "manager": row[6] or ""}
            for row in rows
            if re.fullmatch(r"P\d+", str(row[0]))
        ]
        answer = spans(people, ask)
        yield from reading.deliver_workbook(BOOK, layout(answer))
        yield from save_deck(DECK, slides(ask, answer))
        yield ToolCall("presentations_read_slides", {"file_path": f"/artifacts/{DECK}"})


def spans(people: Sequence[Person], ask: Mapping[str, Any]) -> Answer:
    """Figures of the units, and what the slide shows.

    Raises:
        ValueError: the managers of somebody form a ring.
    """
    boss = {one["id"]: one["manager"] for one in people}
    reports = Counter(one["manager"] for one in people if one["manager"])
    layer: dict[str, int] = {}
    for person in boss:
        chain, at = 1, boss[person]
        while at:
            chain, at = chain + 1, boss.get(at, "")
            if chain > len(boss):
                raise ValueError(f"{person} is above and below somebody")
        layer[person] = chain
    units = []
    for unit in ask["units"]:
        members = [one for one in people if one["unit"] == unit]
        managers = [one for one in members if reports[one["id"]]]
        units.append({
            "unit": unit, "people": len(members), "managers": len(managers),
            "reports": sum(reports[one["id"]] for one in managers),
            "deepest": max((layer[one["id"]] for one in members), default=0),
            "joined": sum(one["hired"] >= ask["since"] for one in members),
        })  # fmt: skip
    shown = [{"unit": row["unit"], "span": _span(row)} for row in units]
    return {"units": units, "slide": shown}


def _span(row: Mapping[str, Any]) -> float:
    return round(row["reports"] / row["managers"], 4) if row["managers"] else 0.0


def _written(content: Any) -> list[Person]:
    """People of an export as the file has them."""
    if not isinstance(content, Book):
        return []
    page = content.sheets[0]
    found = []
    for row in sorted({row for row, _ in page.cells if row}):
        values = [page.cells[row, c].value if (row, c) in page.cells else "" for c in range(7)]
        words = [unmarked(v)[0] if isinstance(v, str) else v for v in values]
        if re.fullmatch(r"P\d+", str(words[0])):
            day = words[5] if isinstance(words[5], str) else str(date(1904, 1, 1) + timedelta(days=int(words[5] or 0)))
            found.append({"id": str(words[0]), "unit": str(words[3]), "grade": str(words[4]), "hired": day,
                          "manager": str(words[6] or "")})  # fmt: skip
    return found


def _earlier(day: str) -> str:
    return str(date.fromisoformat(day) - timedelta(days=DAYS_1904))


def _graded(people: Sequence[Person]) -> list[Person]:
    """Who guesses from grades: each reports to the first of the grade above in the unit, else to the head."""
    top = next(one["id"] for one in people if one["grade"] == "G1")
    made = []
    for one in people:
        above = [p["id"] for p in people if p["unit"] == one["unit"] and p["grade"] < one["grade"]]
        made.append({**one, "manager": "" if one["id"] == top else above[-1] if above else top})
    return made


def _wrong(
    people: Sequence[Person], old: Sequence[Person], ask: Mapping[str, Any], answer: Answer, office: Office
) -> tuple[Wrong, ...]:
    units = answer["units"]
    swapped = [{**units[i - 1], "unit": row["unit"]} for i, row in enumerate(units)]
    own = [{**one, "manager": one["manager"] if _unit(people, one["manager"]) == one["unit"] else ""} for one in people]
    found = [
        Wrong("swapped-entity", {**answer, "units": swapped}, "every cell"),
        Wrong("reports of the own unit only", spans(own, ask), "every cell"),
        Wrong("managers by grade", spans(_graded(people), ask), "every cell"),
        Wrong("layers from nought", {**answer, "units": [{**r, "deepest": r["deepest"] - 1} for r in units]},
              "every cell"),
    ]  # fmt: skip
    if old:
        found.append(Wrong("T1:old export", spans(old, ask), "every cell", "T1"))
        found.append(Wrong("stale-version", {**spans(old, ask), "slide": answer["slide"]}, "every cell"))
    if office.trap("T15", "hris") is not None:
        shifted = [{**one, "hired": _earlier(one["hired"])} for one in people]
        found.append(Wrong("T15:days since 1900", spans(shifted, ask), "hard cells", "T15"))
    return tuple(one for one in found if one.answer["units"] != units)


def _unit(people: Sequence[Person], person: str) -> str:
    return next((one["unit"] for one in people if one["id"] == person), "")


def _checks(ask: Mapping[str, Any], answer: Answer, wrong: Sequence[Wrong]) -> tuple[Check, ...]:
    names = ("Unit", "People", "Managers", "Reports", "Deepest", "Joined")
    columns: list[dict[str, Any]] = [{"name": name, "tol": {"abs": 0.0}} for name in names]
    cells = [[row[key] for key in COLUMNS] for row in answer["units"]]
    hard = [(i, 5) for i in range(len(cells))] + [(i, 3) for i in range(len(cells))]
    tables = matrix_checks(BOOK, columns, cells, hard, key=["Unit"], sheet="Units", trap_ids=("T1", "T15"))
    follow = [
        {"set": {f"Units!C{row}": 4.0, f"Units!D{row}": 26.0}, "expect": {f"Units!G{row}": 6.5}}
        for row in range(2, len(cells) + 2)
    ]
    return (
        Check("files", "present", {"files": [BOOK, DECK]}, kind="gate", no_op="pass"),
        *tables,
        Check("span formulas", "xlsx.follows", {"file": BOOK, "trials": follow, "tol": {"abs": 0.001}}, weight=0.05),
        Check("slide", "deck.series", {
            "file": DECK, "title": TITLE, "categories": [row["unit"] for row in answer["slide"]],
            "series": [{"values": [row["span"] for row in answer["slide"]]}], "tol": {"abs": 0.006},
        }, weight=0.1, stage="intermediate"),
        Check("tidy", "deck.tidy", {"file": DECK}, weight=0.02, no_op="pass"),
    )  # fmt: skip


def layout(answer: Answer, form: str = "plain") -> list[dict[str, Any]]:
    """One sheet; the span is a formula unless numbers are typed."""
    rows = []
    for number, row in enumerate(answer["units"], start=2):
        span: Any = f"=IF(C{number}=0,0,D{number}/C{number})"
        if form == "typed":
            span = (row.get("reports") or 0) / row["managers"] if row.get("managers") else 0
        rows.append([*(row.get(key) for key in COLUMNS), span])
    return [sheet("Units", ["Unit", "People", "Managers", "Reports", "Deepest", "Joined", "Span"], rows)]


def slides(ask: Mapping[str, Any], answer: Answer) -> list[Slide]:
    """One slide with the spans of the units."""
    shown = answer["slide"]
    lines = [f"{len(shown)} units, direct reports per manager"]
    return [slide(TITLE, lines, [str(row.get("unit")) for row in shown], Span=[row.get("span") for row in shown])]


def _instruction(office: Office, ask: Mapping[str, Any], rng: random.Random) -> str:
    opener = rng.choice((
        f"We review the organisation of {office.setting.company}: who leads how many, over how many layers.",
        f"The head of people at {office.setting.company} asks for spans and layers before the board meets.",
        f"For the cost review of {office.setting.company} we need spans of control.",
    ))  # fmt: skip
    units = ", ".join(ask["units"])
    return f"""{opener}

Work from the current personnel export in people; earlier exports do not count. Cover these units: {units}.

Save `artifacts/{BOOK}` with the sheet `Units`, headers in row 1, one row per unit from row 2, columns in this order:

- `Unit`
- `People`: how many belong to it
- `Managers`: how many of them have at least one direct report, in whatever unit
- `Reports`: direct reports of these managers, in whatever unit they are
- `Deepest`: the deepest layer that one of its people is on; the head of the company is on layer 1, whoever reports to
  somebody on layer 1 is on layer 2, and so on
- `Joined`: how many of its people entered on {ask["since"]} or later
- `Span`: reports per manager, a formula

Save `artifacts/{DECK}` with one slide titled `{TITLE}` and a native column chart of the spans, units from A to Z.
"""
