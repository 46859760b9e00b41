"""MA2: how many review panels there are without anybody beside their own manager, and the largest one, proved.

What makes it hard: the numbers are exact and too large to list; lines of reporting cross units; an older export lies
beside the one that counts. That no panel is larger has to be shown, not claimed.
"""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from journeyman.worlds.content import Book, unmarked
from journeyman.worlds.curriculum import Knobs
from journeyman.worlds.drafting import json_bytes
from journeyman.worlds.template import Answer, Bound, Files, Lost, Solving, ToolCall, Unbindable, Wrong
from journeyman.worlds.templates import reading
from journeyman.worlds.templates.mathematics.forests import count_mixed, count_sets, largest, within
from journeyman.worlds.verify import Check

if TYPE_CHECKING:
    from journeyman.worlds.office import Office

FILE = "panels.json"
Line = tuple[str, str, str]
"""Number, unit and manager of a person."""

LEAST_MIXED = 100


@dataclass(frozen=True)
class MA2:
    """See the module."""

    id: str = "MA2"
    domain: str = "mathematics"
    title: str = "exact numbers of panels without reporting lines, and a largest one with its proof"
    traps: tuple[str, ...] = ("T1",)

    def bind(self, office: Office, rng: random.Random, knobs: Knobs) -> Bound:
        """See ``Template.bind``."""
        exports = office.of_kind("hris")
        if len(exports) != 1:
            raise Unbindable("no personnel export, or several")
        rows = office.truth.as_of(exports[0].known_from).rows(
            "SELECT p.id, p.unit, e.manager_id AS boss FROM person_at p LEFT JOIN org_edge_at e ON e.report_id = p.id"
            " WHERE p.grade IS NOT NULL ORDER BY p.id"
        )
        people = [(row["id"], row["unit"], row["boss"] or "") for row in rows]
        names = sorted({unit for _, unit, _ in people})
        units = sorted(rng.sample(names, min(len(names), rng.randint(2, 2 + min(2, knobs.fan_out)))))
        ask: dict[str, Any] = {"units": units, "size": rng.randint(max(3, len(units)), 6), "file": FILE}
        scope = [one for one, unit, _ in people if unit in units]
        if len(scope) < 10:
            raise Unbindable(f"{len(scope)} people in these units")
        answer = panels(people, ask)
        if answer["mixed_panels"] < LEAST_MIXED:
            raise Unbindable(f"{answer['mixed_panels']} mixed panels: any number of a file may be right by chance")
        old = [line for document in office.of_kind("hris_old") for line in _written(document.content)]
        wrong = _wrong(people, old, ask, answer)
        traps = tuple(sorted({one.trap for one in wrong if one.trap}))
        blind = panels(old, ask) if traps else panels([(one, unit, "") for one, unit, _ in people], ask)
        return Bound(
            self.id, self.domain, office.id, _instruction(office, ask, rng), ask, answer,
            _checks(answer, people, ask), (FILE,), wrong, trap_blind={**blind, "largest": scope}, single=None,
            facts=tuple(f"hris:{one}:manager" for one, unit, boss in people if boss and unit in units),
            reads=(exports[0].path,), traps=traps, unordered=("largest", "pairs"), knobs=knobs,
            notes={"units": len(units), "size": ask["size"], "people": len(scope)},
        )  # fmt: skip

    def write(self, bound: Bound, answer: Answer, world: Files, form: str = "plain") -> dict[str, bytes]:
        """See ``Template.write``."""
        return {FILE: json_bytes(answer)}

    def solve(self, ask: Mapping[str, Any]) -> Solving:
        """See ``Template.solve``."""
        found = yield from reading.list_files("*personnel*export*.xlsx", "people")
        current = [path for path in found if not re.search(r"\d{4}-\d\d-\d\d|v2", path, re.IGNORECASE)]
        if len(current) != 1:
            raise Lost(f"{len(current)} current personnel exports")
        text = yield from reading.tab(f"/{current[0]}")
        rows = [json.loads(match[1]) for match in re.finditer(r"^\d+: (\[.*\])$", text, re.MULTILINE)]
        lines = [(row[0], row[3], row[6] or "") for row in rows if re.fullmatch(r"P\d+", str(row[0]))]
        yield from reading.deliver_text(FILE, json_bytes(panels(lines, ask)))
        yield ToolCall(
            "code_exec", {"code": f"python3 -m json.tool artifacts/{FILE} /dev/null && wc -c artifacts/{FILE}"}
        )


def panels(people: Iterable[Line], ask: Mapping[str, Any]) -> Answer:
    """Everything that is asked about the people of some units."""
    lines, size = list(people), ask["size"]
    units = {one: unit for one, unit, _ in lines if unit in ask["units"]}
    bosses = within({one: boss for one, _, boss in lines}, units)
    count = count_sets(bosses, size)
    chance = Fraction(count, math.comb(len(units), size))
    group, pairs = largest(bosses)
    return {
        "people": len(units), "reporting_lines": sum(1 for boss in bosses.values() if boss), "panels": count,
        "mixed_panels": count_mixed(bosses, units, size),
        "chance": {"numerator": chance.numerator, "denominator": chance.denominator},
        "largest": group, "pairs": [list(pair) for pair in pairs],
    }  # fmt: skip


def _written(content: Any) -> list[Line]:
    """People of an export as its file has them."""
    if not isinstance(content, Book):
        return []
    cells = content.sheets[0].cells
    found = []
    for row in sorted({row for row, _ in cells}):
        words = [unmarked(str(cells[row, c].value or ""))[0] if (row, c) in cells else "" for c in (0, 3, 6)]
        if re.fullmatch(r"P\d+", words[0]):
            found.append((words[0], words[1], words[2]))
    return found


def _wrong(people: Sequence[Line], old: Sequence[Line], ask: Mapping[str, Any], answer: Answer) -> tuple[Wrong, ...]:
    boss_of = {one: boss for one, _, boss in people}
    size = ask["size"]
    ordered = {**answer, "panels": answer["panels"] * math.factorial(size),
               "mixed_panels": answer["mixed_panels"] * math.factorial(size)}  # fmt: skip
    own = {one: unit for one, unit, _ in people}
    inside = [(one, unit, boss if own.get(boss) == unit else "") for one, unit, boss in people]
    skipped = [(one, unit, boss_of.get(boss, "")) for one, unit, boss in people]
    others = sorted({unit for _, unit, _ in people} - set(ask["units"]))
    none = panels([(one, unit, "") for one, unit, _ in people], ask)
    found = [
        Wrong("order counted", ordered, "counts"),
        Wrong("lines across units left out", panels(inside, ask), "counts"),
        Wrong("managers' managers instead", {**panels(skipped, ask), "people": answer["people"]}, "counts"),
        Wrong("nobody is in conflict", none, "counts"),
        Wrong("a smaller panel", {**answer, "largest": answer["largest"][1:]}, "largest"),
    ]
    if others:
        swapped = panels(people, {**ask, "units": [*ask["units"][1:], others[0]]})
        found.append(Wrong("swapped-entity", swapped, "counts"))
    if old:
        found.append(Wrong("T1:old export", panels(old, ask), "counts", "T1"))
    keys = ("panels", "mixed_panels", "chance", "largest")
    return tuple(one for one in found if any(one.answer[key] != answer[key] for key in keys)
                 and (one.fails != "counts" or one.answer["panels"] != answer["panels"]))  # fmt: skip


def _checks(answer: Answer, people: Sequence[Line], ask: Mapping[str, Any]) -> tuple[Check, ...]:
    scope = [one for one, unit, _ in people if unit in ask["units"]]
    conflicts = [[one, boss] for one, unit, boss in people if one in scope and boss in scope]
    exact = {"abs": 0.0}
    counts = {name: answer[name] for name in ("people", "reporting_lines", "panels")}
    counts |= {f"chance.{part}": answer["chance"][part] for part in ("numerator", "denominator")}
    mixed = {"mixed_panels": answer["mixed_panels"]}
    return (
        Check("can be read", "present", {"files": [FILE]}, kind="gate", no_op="pass"),
        Check("counts", "json.fields", {"file": FILE, "fields": counts, "tol": exact}, weight=0.35, trap_ids=("T1",)),
        Check("mixed", "json.fields", {"file": FILE, "fields": mixed, "tol": exact}, weight=0.15, trap_ids=("T1",)),
        Check("largest", "set.independent", {"file": FILE, "people": scope, "conflicts": conflicts, "group": "largest",
                                             "pairs": "pairs"}, weight=0.5, trap_ids=("T1",)),
    )  # fmt: skip


def _instruction(office: Office, ask: Mapping[str, Any], rng: random.Random) -> str:
    opener = rng.choice((
        f"{office.setting.company} draws review panels by lot; its auditors ask how often a draw is not independent.",
        f"Internal audit at {office.setting.company} wants to know how independent its review panels can be.",
        f"The people team of {office.setting.company} has to justify how review panels are composed.",
    ))  # fmt: skip
    units, size = ", ".join(ask["units"]), ask["size"]
    return f"""{opener}

Take everybody of these units in the current personnel export in people (earlier exports do not count): {units}. A panel
is a set of {size} of these people, in no order. It is independent when none of its members is the direct manager of
another member.

Save `artifacts/{FILE}`, a JSON object with

- `people`: how many belong to these units
- `reporting_lines`: how many of them have their direct manager among them
- `panels`: the number of independent panels, exact
- `mixed_panels`: the number of those with at least one member of each of these units, exact
- `chance`: the probability that {size} of these people, all sets of {size} being equally likely, are an independent
  panel: an object with `numerator` and `denominator`, in lowest terms
- `largest`: the numbers (such as P012) of as many of these people as possible of whom none is the direct manager of
  another, whatever their number
- `pairs`: a proof that there are no more: a list of pairs [manager, report] of these people, each of them in one pair
  at most, as many pairs as there are people who are not in `largest`
"""
