"""IB3: complete the sensitivity grid of a cash flow model after one assumption changes.

What makes it hard: a number of an earlier version stands among the formulas, so the grid is wrong until the formula is
back, and the grid has to follow the model when its inputs move.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from journeyman.worlds.curriculum import Knobs
from journeyman.worlds.events.models import GRID_RATES, INPUTS, dcf_values
from journeyman.worlds.template import FOLDER, Answer, Bound, Files, Lost, Solving, ToolCall, Unbindable, Wrong
from journeyman.worlds.templates import reading
from journeyman.worlds.templates.banking.sheets import one_file, sheet_rows
from journeyman.worlds.verify import Check

if TYPE_CHECKING:
    from journeyman.worlds.office import Office

FILE = "dcf_model.xlsx"
TOL = {"rel": 1e-6, "abs": 1.0}
COLUMNS, ROWS = "BCDEF", range(5, 10)
AREA = "Sensitivity!B5:F9"
CELLS = [f"Sensitivity!{column}{row}" for row in ROWS for column in COLUMNS]
PLACES = {name: f"Inputs!B{row}" for row, (name, _, _) in enumerate(INPUTS, start=3)}
"""Assumption -> its cell."""

CHANGES = {"wacc": 0.0025, "margin": 0.005, "capex": 0.002, "growth": 0.005, "nwc": 0.005}
"""Assumption that may change -> step of the change."""

EBITDA = "{column}4*Inputs!$B$5"
_STATED = re.compile(r"^(.*) \{=(.*)\}$")


@dataclass(frozen=True)
class IB3:
    """See the module."""

    id: str = "IB3"
    domain: str = "banking"
    title: str = "sensitivity of a cash flow model to WACC and growth"
    traps: tuple[str, ...] = ("T13",)

    def bind(self, office: Office, rng: random.Random, knobs: Knobs) -> Bound:
        """See ``Template.bind``."""
        found = office.of_kind("dcf_model")
        given = {row["name"]: row["value"] for row in office.truth.rows("SELECT * FROM assumption WHERE model = 'dcf'")}
        if len(found) != 1 or set(given) != set(PLACES):
            raise Unbindable("no model of the cash flows, or one with other assumptions")
        name = rng.choice(sorted(CHANGES))
        value = round(given[name] + CHANGES[name] * rng.choice((-3, -2, 2, 3)), 4)
        label = next(text for key, text, _ in INPUTS if key == name)
        ask = {"name": name, "label": label, "value": value, "model": found[0].path}
        changed = {**given, name: value}
        if min(changed["wacc"] + GRID_RATES[0] - changed["terminal_growth"] - GRID_RATES[-1], value) < 0.015:
            raise Unbindable("a rate of the grid would be next to the growth")
        planted = office.trap("T13", "model:dcf:")
        cell = planted.site.removeprefix("model:dcf:") if planted else ""
        answer: Answer = {"assumption": value, "grid": _grid(changed)}
        blind: Answer = {"assumption": value, "grid": [list(row) for row in zip(*_grid(changed), strict=True)]}
        if planted:
            answer["restored"] = True
            pasted = _grid(changed, {"ABCDEF".index(cell[-2]): float(planted.wrong["cell"])})
            blind = {"assumption": value, "grid": pasted, "restored": False}
        return Bound(
            self.id, self.domain, office.id, _instruction(office, ask, rng), ask, answer,
            _checks(ask, changed, answer["grid"], cell), (FILE,), _wrong(answer, blind, given, cell),
            trap_blind=blind, single=None, facts=tuple(f"dcf:{one}" for one in PLACES), reads=(found[0].path,),
            originals=(found[0].path,), traps=("T13",) if planted else (), knobs=knobs,
            notes={"changed": name, "pasted": cell},
        )  # fmt: skip

    def write(self, bound: Bound, answer: Answer, world: Files, form: str = "plain") -> dict[str, bytes]:
        """See ``Template.write``. A value of the grid that is right is a formula, every other one is typed."""
        from journeyman.documents import edit

        right = [value for row in bound.answer["grid"] for value in row]
        values = [value for row in answer["grid"] for value in row]
        values = [*values, *[None] * len(CELLS)][: len(CELLS)]
        changes: list[dict[str, Any]] = [
            {"op": "set", "address": PLACES[bound.ask["name"]], "value": answer["assumption"]}
        ]
        for address, value, wanted in zip(CELLS, values, right, strict=True):
            is_formula = value == wanted and form != "typed"
            changes.append(
                {"op": "set", "address": address} | ({"formula": _formula(address)} if is_formula else {"value": value})
            )
        if answer.get("restored"):
            cell = bound.notes["pasted"]
            changes.append({"op": "set", "address": cell, "formula": "=" + EBITDA.format(column=cell[-2])})
        path = bound.ask["model"]
        return {FILE: edit(world[path], path, changes).data}

    def solve(self, ask: Mapping[str, Any]) -> Solving:
        """See ``Template.solve``."""
        path = yield from one_file("*dcf*model*.xlsx")
        inputs = yield from sheet_rows(path, 0)
        model = yield from sheet_rows(path, 1, formulas=True)
        row = next((number for number, line in inputs.items() if line and line[0] == ask["label"]), 0)
        if not row:
            raise Lost(f"no assumption {ask['label']}")
        operations = [{"type": "set_cell", "sheet": "Inputs", "cell": f"B{row}", "value": ask["value"]}]
        line = next(number for number, cells in model.items() if cells and cells[0] == "EBITDA")
        for letter, shown in zip(COLUMNS, model[line][1:], strict=False):
            if not _STATED.match(str(shown)):
                formula = "=" + EBITDA.format(column=letter)
                operations.append({"type": "set_cell", "sheet": "DCF", "cell": f"{letter}{line}", "value": formula})
        operations += [
            {"type": "set_cell", "sheet": "Sensitivity", "cell": cell.partition("!")[2], "value": _formula(cell)}
            for cell in CELLS
        ]
        yield from reading.shell(f"mkdir -p {FOLDER} && cp '{path}' {FOLDER}/{FILE}")
        yield ToolCall("spreadsheets_edit_spreadsheet", {"file_path": f"/{FOLDER}/{FILE}", "operations": operations})
        yield from reading.tab(f"/{FOLDER}/{FILE}", 2)


def _formula(address: str) -> str:
    """Enterprise value from the model's flows at the rates of its row and column."""
    column, row = address.partition("!")[2][0], address[-1]
    rate, growth = f"$A{row}", f"{column}$4"
    return f"=NPV({rate},DCF!$B$10:$F$10)+DCF!$F$10*(1+{growth})/({rate}-{growth})/(1+{rate})^5"


def _grid(given: Mapping[str, float], pasted: dict[int, float] | None = None) -> list[list[float]]:
    return [[round(value, 2) for value in row] for row in dcf_values(dict(given), pasted)["grid"]]


def _wrong(answer: Answer, blind: Answer, given: Mapping[str, float], cell: str) -> tuple[Wrong, ...]:
    grid: list[list[float]] = answer["grid"]
    versions: dict[str, Answer] = {
        "stale-version": {**answer, "grid": _grid(given)},
        "assumption left as it was": {**answer, "assumption": None, "grid": _grid(given)},
        "swapped-entity": {**answer, "grid": [list(row) for row in zip(*grid, strict=True)]},
        "growth from right to left": {**answer, "grid": [row[::-1] for row in grid]},
        "the base case everywhere": {**answer, "grid": [[grid[2][2]] * 5 for _ in grid]},
    }
    if cell:
        versions["T13:pasted number kept"] = blind
    return tuple(
        Wrong(name, made, "grid", "T13" if name.startswith("T13") else "")
        for name, made in versions.items()
        if made["grid"] != grid
    )


def _checks(
    ask: Mapping[str, Any], given: Mapping[str, float], grid: Sequence[Sequence[float]], cell: str
) -> tuple[Check, ...]:
    values = dict(zip(CELLS, (value for row in grid for value in row), strict=True))
    moved = {"terminal_growth": 0.018, "growth": 0.031, "margin": 0.17}
    other = dict(zip(CELLS, (value for row in _grid({**given, **moved}) for value in row), strict=True))
    trial = {
        "set": {PLACES[name]: value for name, value in moved.items()},
        "expect": {address: other[address] for address in CELLS[1::6]},
    }
    place = PLACES[ask["name"]]
    allowed = [AREA, place, *([cell] if cell else [])]
    found = [
        Check("no errors", "xlsx.no_errors", {"file": FILE}, kind="gate", no_op="pass"),
        Check("untouched", "untouched", {"file": FILE, "original": ask["model"], "allowed": allowed}, kind="gate",
              no_op="pass"),
        Check("grid", "xlsx.cells", {"file": FILE, "cells": values, "tol": TOL}, weight=0.55, trap_ids=("T13",)),
        Check("follows", "xlsx.follows", {"file": FILE, "trials": [trial], "tol": TOL}, weight=0.25,
              trap_ids=("T13",)),
        Check("assumption", "xlsx.cells", {"file": FILE, "cells": {place: ask["value"]}, "tol": {"abs": 1e-9}},
              weight=0.05, stage="intermediate"),
    ]  # fmt: skip
    if cell:
        found.append(Check("formula restored", "xlsx.formulas", {"file": FILE, "cells": [cell]}, weight=0.15,
                           stage="intermediate", trap_ids=("T13",)))  # fmt: skip
    return tuple(found)


def _instruction(office: Office, ask: Mapping[str, Any], rng: random.Random) -> str:
    opener = rng.choice((
        f"The valuation committee of {office.setting.company} wants the sensitivity of the cash flow model.",
        f"The last page of the valuation of {office.setting.company} is empty: the grid over WACC and growth.",
        f"Please finish the cash flow model of {office.setting.company}.",
    ))  # fmt: skip
    return f"""{opener}

Take {ask["model"]}. First set `{ask["label"]}` on the sheet Inputs to {ask["value"]:g} ({ask["value"] * 100:g} per
cent), as the committee decided. Then complete the grid {AREA}: enterprise value at the WACC of the row and the terminal
growth of the column, by formulas that follow the model's flows (five years discounted at year ends, terminal value
after the fifth). The model was edited by hand: if in the rows of the sheet DCF a number stands where the other years
have a formula, put the formula back. Change nothing else.

Save the workbook as `artifacts/{FILE}`.
"""
