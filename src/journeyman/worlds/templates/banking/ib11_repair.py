"""IB11: repair a debt schedule in which one formula has a wrong sign, and say what the repair changes.

What makes it hard: the file opens without an error, one year out of five differs from the others by one sign, and
nothing but that cell may change.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from journeyman.worlds.curriculum import Knobs
from journeyman.worlds.drafting import json_bytes
from journeyman.worlds.events.models import DEBT_INPUTS, YEARS, debt_values
from journeyman.worlds.template import FOLDER, Answer, Bound, Files, Lost, Solving, ToolCall, Unbindable, Wrong
from journeyman.worlds.templates import reading
from journeyman.worlds.templates.banking.sheets import one_file, sheet_rows
from journeyman.worlds.verify import Check

if TYPE_CHECKING:
    from journeyman.worlds.office import Office

FILE, REPORT = "debt_model.xlsx", "repair.json"
TOL = {"rel": 1e-6, "abs": 1.0}
COLUMNS = "BCDEF"
LINES = {"interest": 6, "available": 8, "swept": 9, "closing": 10, "cash": 11}
"""Line of the schedule -> its row."""

WORDS = {
    "interest": "Interest",
    "available": "Available for sweep",
    "swept": "Cash sweep",
    "closing": "Term loan, closing",
    "cash": "Cash, closing",
}
_STATED = re.compile(r"^(.*) \{(=.*)\}$")


@dataclass(frozen=True)
class IB11:
    """See the module."""

    id: str = "IB11"
    domain: str = "banking"
    title: str = "repair of a debt schedule with a cash sweep"
    traps: tuple[str, ...] = ("T6",)

    def bind(self, office: Office, rng: random.Random, knobs: Knobs) -> Bound:
        """See ``Template.bind``."""
        planted, found = office.trap("T6", "model:debt:"), office.of_kind("debt_model")
        if planted is None or len(found) != 1:
            raise Unbindable("the debt model has no error")
        rows = office.truth.rows("SELECT * FROM assumption WHERE model = 'debt'")
        given = {row["name"]: row["value"] for row in rows}
        cell = planted.site.removeprefix("model:debt:")
        year = COLUMNS.index(cell.partition("!")[2][0]) + 1
        lines = ["closing", *sorted(rng.sample(["available", "cash", "interest", "swept"], 1 + min(2, knobs.hops)))]
        ask = {"model": found[0].path, "lines": lines}
        right, before = (_shown(debt_values(dict(given), wrong), lines) for wrong in (0, year))
        if right["closing"] == before["closing"]:
            raise Unbindable("nothing is swept in the year of the error")
        answer = {"cell": cell, "formula": str(planted.right["formula"]), "before": before, "after": right}
        blind = {**answer, "cell": "Schedule!B10", "formula": "", "after": before}
        return Bound(
            self.id, self.domain, office.id, _instruction(office, ask, rng), ask, answer,
            _checks(ask, answer, given), (FILE, REPORT), _wrong(answer, given, lines, blind), trap_blind=blind,
            single={**blind, "before": {line: [0.0] * YEARS for line in lines}},
            facts=tuple(f"debt_model:{name}" for name, _ in DEBT_INPUTS), reads=(found[0].path,),
            originals=(found[0].path,), traps=("T6",), knobs=knobs, notes={"year": year, "lines": len(lines)},
        )  # fmt: skip

    def write(self, bound: Bound, answer: Answer, world: Files, form: str = "plain") -> dict[str, bytes]:
        """See ``Template.write``. Only the right formula is put into the workbook; every other one is left out."""
        from journeyman.documents import edit

        path, formula = bound.ask["model"], answer.get("formula")
        changes: list[dict[str, Any]] = []
        if formula == bound.answer["formula"] and answer.get("cell") == bound.answer["cell"]:
            typed = bound.answer["after"]["closing"][COLUMNS.index(answer["cell"].partition("!")[2][0])]
            value = {"value": typed} if form == "typed" else {"formula": formula}
            changes = [{"op": "set", "address": answer["cell"], **value}]
        changes += answer.get("also", [])
        data = edit(world[path], path, changes).data if changes else world[path]
        report = {key: answer.get(key) for key in ("cell", "before", "after")}
        return {FILE: data, REPORT: json_bytes(report)}

    def solve(self, ask: Mapping[str, Any]) -> Solving:
        """See ``Template.solve``."""
        path = yield from one_file("*debt*model*.xlsx")
        rows = yield from sheet_rows(path, 1, formulas=True)
        before = {line: [_value(cell) for cell in rows[LINES[line]][1:6]] for line in ask["lines"]}
        cell, formula = _odd(rows)
        yield from reading.shell(f"mkdir -p {FOLDER} && cp '{path}' {FOLDER}/{FILE}")
        operations = [{"type": "set_cell", "sheet": "Schedule", "cell": cell, "value": formula}]
        yield ToolCall("spreadsheets_edit_spreadsheet", {"file_path": f"/{FOLDER}/{FILE}", "operations": operations})
        rows = yield from sheet_rows(f"{FOLDER}/{FILE}", 1)
        after = {line: [round(float(one), 2) for one in rows[LINES[line]][1:6]] for line in ask["lines"]}
        report = {"cell": f"Schedule!{cell}", "before": before, "after": after}
        yield from reading.deliver_text(REPORT, json_bytes(report))


def _value(shown: Any) -> float:
    match = _STATED.match(str(shown))
    return round(float(match[1] if match else shown), 2)


def _odd(rows: Mapping[int, list[Any]]) -> tuple[str, str]:
    """The cell whose formula differs from those of the other years, and what it should be. Raises Lost."""
    for row in sorted(rows):
        formulas = {}
        for letter, shown in zip(COLUMNS[1:], rows[row][2:6], strict=False):
            match = _STATED.match(str(shown))
            if match:
                formulas[letter] = re.sub(rf"(?<![A-Z$!]){letter}(?=\d)", "@", match[2])
        shapes = list(formulas.values())
        for letter, shape in formulas.items():
            mine = re.sub(r"(?<![A-Z$!])[A-F](?=\d)", "#", shape)
            others = [re.sub(r"(?<![A-Z$!])[A-F](?=\d)", "#", one) for one in shapes]
            if others.count(mine) == 1 and len(others) > 2:
                model = next(one for one, other in zip(shapes, others, strict=True) if other != mine)
                return f"{letter}{row}", model.replace("@", letter)
    raise Lost("every year has the formulas of the others")


def _shown(values: list[dict[str, float]], lines: list[str]) -> dict[str, list[float]]:
    return {line: [round(float(row[line]), 2) for row in values] for line in lines}


def _wrong(answer: Answer, given: Mapping[str, Any], lines: list[str], blind: Answer) -> tuple[Wrong, ...]:
    number = COLUMNS.index(answer["cell"].partition("!")[2][0])
    other = COLUMNS[number - 1] if number else COLUMNS[number + 1]
    late = {line: [*values[1:], values[-1]] for line, values in answer["after"].items()}
    closing = {"op": "set", "address": f"Schedule!{other}10", "formula": f"={other}4-{other}7"}
    unswept = _shown(debt_values({**given, "sweep": 0.0}), lines)
    return (
        Wrong("T6:not seen", blind, "repaired", "T6"),
        Wrong("stale-version", {**answer, "after": answer["before"], "formula": ""}, "repaired"),
        Wrong("swapped-entity", {**answer, "cell": f"Schedule!{other}10", "formula": ""}, "repaired"),
        Wrong("a second cell changed", {**answer, "also": [closing], "after": unswept}, "repaired"),
        Wrong("a year too late", {**answer, "after": late, "formula": ""}, "after"),
    )


def _checks(ask: Mapping[str, Any], answer: Answer, given: Mapping[str, Any]) -> tuple[Check, ...]:
    cells = {
        f"Schedule!{letter}{LINES[line]}": value
        for line in ("closing", "cash", "swept")
        for letter, value in zip(COLUMNS, _shown(debt_values(dict(given)), [line])[line], strict=True)
    }
    place = answer["cell"].partition("!")[2]
    for factor in (1.1, 1.5, 2.0, 4.0):  # until the repaired year shows it: a debt that is paid off stays at nothing
        moved = {**given, "opening_term": given["opening_term"] * factor, "rate": 0.05}
        other = _shown(debt_values(moved), ["closing"])["closing"]
        if abs(other[COLUMNS.index(place[0])] - answer["after"]["closing"][COLUMNS.index(place[0])]) > 1:
            break
    trial = {
        "set": {"Inputs!B3": moved["opening_term"], "Inputs!B6": moved["rate"]},
        "expect": {f"Schedule!{letter}10": value for letter, value in zip(COLUMNS, other, strict=True)},
    }
    fields = {
        part: {f"{part}.{line}.{n}": v for line, values in answer[part].items() for n, v in enumerate(values)}
        for part in ("before", "after")
    }
    named = {"one_of": [answer["cell"], place, answer["cell"].replace("!", " ")]}
    return (
        Check("shape", "json.shape", {"file": REPORT, "keys": {"cell": "text", "before": "object", "after": "object"}},
              kind="gate"),
        Check("no errors", "xlsx.no_errors", {"file": FILE}, kind="gate", no_op="pass"),
        Check("repaired", "changed_set", {"file": FILE, "original": ask["model"], "places": [answer["cell"]]},
              weight=0.3, trap_ids=("T6",)),
        Check("schedule", "xlsx.cells", {"file": FILE, "cells": cells, "tol": TOL}, weight=0.2, trap_ids=("T6",)),
        Check("follows", "xlsx.follows", {"file": FILE, "trials": [trial], "tol": TOL}, weight=0.1, trap_ids=("T6",)),
        Check("named", "json.fields", {"file": REPORT, "fields": {"cell": named}}, weight=0.1, stage="intermediate"),
        Check("after", "json.fields", {"file": REPORT, "fields": fields["after"], "tol": TOL}, weight=0.2,
              trap_ids=("T6",)),
        Check("before", "json.fields", {"file": REPORT, "fields": fields["before"], "tol": TOL}, weight=0.1,
              stage="intermediate"),
    )  # fmt: skip


def _instruction(office: Office, ask: Mapping[str, Any], rng: random.Random) -> str:
    opener = rng.choice((
        f"The lender says that the debt model of {office.setting.company} cannot be right.",
        f"Somebody broke the debt schedule of {office.setting.company}, and nobody knows where.",
        f"The cash sweep in the debt model of {office.setting.company} does not add up in one year.",
    ))  # fmt: skip
    lines = ", ".join(f"`{line}` ({WORDS[line]})" for line in ask["lines"])
    return f"""{opener}

Take {ask["model"]}. On the sheet Schedule exactly one formula differs in its logic from the same line of the other
years. Put it right by a formula in the style of its neighbours, change nothing else, and save the workbook as
`artifacts/{FILE}`.

Also save `artifacts/{REPORT}`, a JSON object with

- `cell`: the cell that you repaired, as `Schedule!B4`
- `before`, `after`: objects with what the schedule showed before and shows after the repair, each with a list of the
  five years' amounts under these names: {lines}
"""
