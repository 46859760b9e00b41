"""IB11: repair a debt schedule with a wrong sign or a pasted number, and say what the repair changes.

What makes it hard: the file opens without an error, one year out of five differs from the others by one sign, or shows
a plausible number of an earlier version where they have a formula, and nothing but these cells may change.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Mapping, Sequence
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
TRAPS = ("T6", "T13")
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


FORMULAS = {
    "interest": "={here}4*Inputs!$B$6",
    "available": "=MAX(0,{before}11+{here}5-{here}6-{here}7-Inputs!$B$5)",
}
"""Line -> its formula from the second year on, by letters of columns."""


@dataclass(frozen=True)
class Error:
    """A cell that is to be repaired.

    Attributes:
        trap: ``T6`` or ``T13``.
        cell: on the sheet Schedule.
        formula: the right one.
        line, year: what the cell shows; years from 1.
        pasted: the number that stands there.
    """

    trap: str
    cell: str
    formula: str
    line: str
    year: int
    pasted: float = 0.0


@dataclass(frozen=True)
class IB11:
    """See the module."""

    id: str = "IB11"
    domain: str = "banking"
    title: str = "repair of a debt schedule with a cash sweep"
    traps: tuple[str, ...] = TRAPS

    def bind(self, office: Office, rng: random.Random, knobs: Knobs) -> Bound:
        """See ``Template.bind``."""
        errors, found = _errors(office), office.of_kind("debt_model")
        if not errors or len(found) != 1:
            raise Unbindable("the debt model has no error")
        rows = office.truth.rows("SELECT * FROM assumption WHERE model = 'debt'")
        given = {row["name"]: row["value"] for row in rows}
        lines = ["closing", *sorted(rng.sample(["available", "cash", "interest", "swept"], 1 + min(2, knobs.hops)))]
        ask = {"model": found[0].path, "lines": lines}
        right, before = _shown(given, lines), _shown(given, lines, errors)
        if any(right["closing"] == _shown(given, lines, [error])["closing"] for error in errors):
            raise Unbindable("nothing is swept in the year of an error")
        repairs = [{"cell": error.cell, "formula": error.formula} for error in errors]
        answer: Answer = {"repairs": repairs, "before": before, "after": right}
        blind: Answer = {**answer, "repairs": [{"cell": "Schedule!B10", "formula": ""}], "after": before}
        traps = tuple(error.trap for error in errors)
        return Bound(
            self.id, self.domain, office.id, _instruction(office, ask, rng), ask, answer,
            _checks(ask, answer, given, errors), (FILE, REPORT), _wrong(answer, given, errors, blind),
            trap_blind=blind, single={**blind, "before": {line: [0.0] * YEARS for line in lines}},
            facts=tuple(f"debt_model:{name}" for name, _ in DEBT_INPUTS), reads=(found[0].path,),
            originals=(found[0].path,), traps=traps, unordered=("repairs",), knobs=knobs,
            notes={"cells": [error.cell for error in errors], "lines": len(lines)},
        )  # fmt: skip

    def write(self, bound: Bound, answer: Answer, world: Files, form: str = "plain") -> dict[str, bytes]:
        """See ``Template.write``. Only right formulas are put into the workbook; every other one is left out."""
        from journeyman.documents import edit

        path, changes = bound.ask["model"], []
        values = next(check.params["cells"] for check in bound.checks if check.id == "schedule")
        for one in bound.answer["repairs"]:
            if one in answer["repairs"]:
                made = {"value": values[one["cell"]]} if form == "typed" else {"formula": one["formula"]}
                changes.append({"op": "set", "address": one["cell"], **made})
        changes += answer.get("also", [])
        data = edit(world[path], path, changes).data if changes else world[path]
        report = {
            "cells": [one.get("cell") for one in answer["repairs"]],
            **{k: answer[k] for k in ("before", "after")},
        }
        return {FILE: data, REPORT: json_bytes(report)}

    def solve(self, ask: Mapping[str, Any]) -> Solving:
        """See ``Template.solve``."""
        path = yield from one_file("*debt*model*.xlsx")
        rows = yield from sheet_rows(path, 1, formulas=True)
        before = {line: [_value(cell) for cell in rows[LINES[line]][1:6]] for line in ask["lines"]}
        repairs = _odd(rows)
        yield from reading.shell(f"mkdir -p {FOLDER} && cp '{path}' {FOLDER}/{FILE}")
        operations = [
            {"type": "set_cell", "sheet": "Schedule", "cell": cell, "value": formula} for cell, formula in repairs
        ]
        yield ToolCall("spreadsheets_edit_spreadsheet", {"file_path": f"/{FOLDER}/{FILE}", "operations": operations})
        rows = yield from sheet_rows(f"{FOLDER}/{FILE}", 1)
        after = {line: [round(float(one), 2) for one in rows[LINES[line]][1:6]] for line in ask["lines"]}
        report = {"cells": [f"Schedule!{cell}" for cell, _ in repairs], "before": before, "after": after}
        yield from reading.deliver_text(REPORT, json_bytes(report))


def _value(shown: Any) -> float:
    match = _STATED.match(str(shown))
    return round(float(match[1] if match else shown), 2)


def _shape(formula: str, column: int) -> str:
    """A formula in which its own column is ``@`` and the one before is ``<``, the same in every year."""
    for letter, sign in ((COLUMNS[column], "@"), (COLUMNS[column - 1], "<")):
        formula = re.sub(rf"(?<![A-Z$!]){letter}(?=\d)", sign, formula)
    return formula


def _odd(rows: Mapping[int, list[Any]]) -> list[tuple[str, str]]:
    """Cells that differ from those of the other years, and what they should be; the first year has no year before.

    Raises:
        Lost: there are none.
    """
    found = []
    for row in sorted(rows):
        shapes = ["" for _ in COLUMNS]
        for column, shown in enumerate(rows[row][1:6]):
            if column and (match := _STATED.match(str(shown))):
                shapes[column] = _shape(match[2], column)
        usual = max(shapes[1:], key=shapes.count)
        for column, shape in enumerate(shapes):
            if usual and column and shape != usual:
                formula = usual.replace("@", COLUMNS[column]).replace("<", COLUMNS[column - 1])
                found.append((f"{COLUMNS[column]}{row}", formula))
    if not found:
        raise Lost("every year has the formulas of the others")
    return found


def _errors(office: Office) -> list[Error]:
    found = []
    if sign := office.trap("T6", "model:debt:"):
        cell = sign.site.removeprefix("model:debt:")
        year = 1 + COLUMNS.index(cell.partition("!")[2][0])
        found.append(Error("T6", cell, str(sign.right["formula"]), "closing", year))
    if pasted := office.trap("T13", "model:debt:"):
        cell, line, number = pasted.site.removeprefix("model:debt:").split(":")
        here, before = COLUMNS[int(number) - 1], COLUMNS[int(number) - 2]
        formula = FORMULAS[line].format(here=here, before=before)
        found.append(Error("T13", cell, formula, line, int(number), float(pasted.wrong["cell"])))
    return found


def _shown(given: Mapping[str, Any], lines: Iterable[str], errors: Sequence[Error] = ()) -> dict[str, list[float]]:
    """What the schedule shows with these errors."""
    sign = next((error.year for error in errors if error.trap == "T6"), 0)
    pasted = {(error.line, error.year): error.pasted for error in errors if error.trap == "T13"}
    values = debt_values(dict(given), sign, pasted)
    return {line: [round(float(row[line]), 2) for row in values] for line in lines}


def _wrong(answer: Answer, given: Mapping[str, Any], errors: Sequence[Error], blind: Answer) -> tuple[Wrong, ...]:
    place = answer["repairs"][0]["cell"].partition("!")[2]
    number, row = COLUMNS.index(place[0]), place[1:]
    other = COLUMNS[number - 1] if number else COLUMNS[number + 1]
    lines = list(answer["after"])
    late = {line: [*values[1:], values[-1]] for line, values in answer["after"].items()}
    closing = {"op": "set", "address": f"Schedule!{other}10", "formula": f"={other}4-{other}7"}
    unswept = _shown({**given, "sweep": 0.0}, lines)
    named = [{**one, "formula": ""} for one in answer["repairs"]]
    elsewhere = [{"cell": f"Schedule!{other}{row}", "formula": ""}]
    found = [
        Wrong("stale-version", {**answer, "repairs": named, "after": answer["before"]}, "repaired"),
        Wrong("swapped-entity", {**answer, "repairs": elsewhere}, "repaired"),
        Wrong("a second cell changed", {**answer, "also": [closing], "after": unswept}, "repaired"),
        Wrong("a year too late", {**answer, "repairs": named, "after": late}, "after"),
    ]
    if len(errors) > 1:
        found.append(Wrong("nothing seen", blind, "repaired"))
    for error in errors:
        seen = [one for one in answer["repairs"] if one["cell"] != error.cell]
        made = {**answer, "repairs": seen or blind["repairs"], "after": _shown(given, lines, [error])}
        words = "sign not seen" if error.trap == "T6" else "pasted number kept"
        found.append(Wrong(f"{error.trap}:{words}", made, "repaired", error.trap))
    return tuple(found)


def _checks(
    ask: Mapping[str, Any], answer: Answer, given: Mapping[str, Any], errors: Sequence[Error]
) -> tuple[Check, ...]:
    right, places = _shown(given, LINES), [error.cell for error in errors]
    cells = _cells(right)
    for factor in (1.1, 1.5, 2.0, 4.0):  # until the repaired years show it: a debt that is paid off stays at nothing
        moved = {**given, "opening_term": given["opening_term"] * factor, "rate": 0.05}
        other = _shown(moved, LINES)
        if all(abs(other[error.line][error.year - 1] - right[error.line][error.year - 1]) > 1 for error in errors):
            break
    watched = {"closing": other["closing"], **{error.line: other[error.line] for error in errors}}
    trial = {
        "set": {"Inputs!B3": moved["opening_term"], "Inputs!B6": moved["rate"]},
        "expect": _cells(watched),
    }
    fields = {
        part: {f"{part}.{line}.{n}": v for line, values in answer[part].items() for n, v in enumerate(values)}
        for part in ("before", "after")
    }
    pasted = [error.cell for error in errors if error.trap == "T13"]
    restored = Check("formula restored", "xlsx.formulas", {"file": FILE, "cells": pasted}, weight=0.1,
                     stage="intermediate", trap_ids=("T13",))  # fmt: skip
    return (
        Check("shape", "json.shape", {"file": REPORT, "keys": {"cells": "list", "before": "object", "after": "object"}},
              kind="gate"),
        Check("no errors", "xlsx.no_errors", {"file": FILE}, kind="gate", no_op="pass"),
        Check("repaired", "changed_set", {"file": FILE, "original": ask["model"], "places": places},
              weight=0.3, trap_ids=TRAPS),
        Check("schedule", "xlsx.cells", {"file": FILE, "cells": cells, "tol": TOL}, weight=0.2, trap_ids=TRAPS),
        Check("follows", "xlsx.follows", {"file": FILE, "trials": [trial], "tol": TOL}, weight=0.1, trap_ids=TRAPS),
        Check("named", "members", {"file": REPORT, "path": "cells", "items": places}, weight=0.1,
              stage="intermediate", trap_ids=TRAPS),
        Check("after", "json.fields", {"file": REPORT, "fields": fields["after"], "tol": TOL}, weight=0.2,
              trap_ids=TRAPS),
        Check("before", "json.fields", {"file": REPORT, "fields": fields["before"], "tol": TOL}, weight=0.1,
              stage="intermediate"),
        *([restored] if pasted else []),
    )  # fmt: skip


def _cells(lines: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Address -> amount of lines of the schedule."""
    return {
        f"Schedule!{letter}{LINES[line]}": value
        for line, values in lines.items()
        for letter, value in zip(COLUMNS, values, strict=True)
    }


def _instruction(office: Office, ask: Mapping[str, Any], rng: random.Random) -> str:
    opener = rng.choice((
        f"The lender says that the debt model of {office.setting.company} cannot be right.",
        f"Somebody broke the debt schedule of {office.setting.company}, and nobody knows where.",
        f"The cash sweep in the debt model of {office.setting.company} does not add up.",
    ))  # fmt: skip
    lines = ", ".join(f"`{line}` ({WORDS[line]})" for line in ask["lines"])
    return f"""{opener}

Take {ask["model"]}. On the sheet Schedule one year, in one line or in several, is not as the other years of its line:
its formula differs in logic, or a number stands where the others have a formula. Put each such cell right by a formula
in the style of its neighbours, change nothing else, and save the workbook as `artifacts/{FILE}`.

Also save `artifacts/{REPORT}`, a JSON object with

- `cells`: a list of the cells that you repaired, each as `Schedule!B4`
- `before`, `after`: objects with what the schedule showed before and shows after the repair, each with a list of the
  five years' amounts under these names: {lines}
"""
