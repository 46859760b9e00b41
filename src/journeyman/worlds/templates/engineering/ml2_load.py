"""ML2: a program that predicts the load of a building; it is run on rows that are in no file.

What makes it hard: a sensor changed its unit on the way, the load bends at two temperatures, and weekends differ. A
straight line does not reach the score that is asked for.
"""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from journeyman.worlds.curriculum import Knobs
from journeyman.worlds.drafting import csv_bytes, json_bytes
from journeyman.worlds.template import Answer, Bound, Files, Lost, Solving, Unbindable, Wrong
from journeyman.worlds.templates import reading
from journeyman.worlds.templates.engineering.fitting import least_squares
from journeyman.worlds.templates.engineering.load import inputs, load_of, program
from journeyman.worlds.verify import Check
from journeyman.worlds.verify.inside.worldverify.models import METRICS

if TYPE_CHECKING:
    from journeyman.worlds.office import Office

PROGRAM, REPORT = "predict.py", "validation.json"
FOLDER = "it/models/building_load"
CARE = ("converts", "hinges", "weekends")
SLACK = 0.25
"""How far from the reference towards the better of the careless models the asked score lies."""

LEAST_GAIN = 1.2
"""Least ratio of a careless model's error to the reference's."""

Row = dict[str, str]
Parts = Mapping[str, Sequence[Row]]


@dataclass(frozen=True)
class ML2:
    """See the module."""

    id: str = "ML2"
    domain: str = "engineering"
    title: str = "a program that predicts a building's load, run on hidden rows"
    traps: tuple[str, ...] = ()

    def bind(self, office: Office, rng: random.Random, knobs: Knobs) -> Bound:
        """See ``Template.bind``."""
        given = json.loads(office.truth.value("SELECT value FROM assumption WHERE id = 'dataset:load'"))
        hours = sorted({row[2] for row in given["parts"]["train"]})
        kept = sorted(rng.sample(hours, rng.randint(4, len(hours))))
        ask: dict[str, Any] = {
            "hours": kept, "folder": FOLDER, "metric": rng.choice(("mean absolute error", "root mean squared error")),
        }  # fmt: skip
        parts = {name: [dict(zip(given["columns"], map(str, row), strict=True)) for row in rows if row[2] in kept]
                 for name, rows in given["parts"].items()}  # fmt: skip
        answer = fitted(parts, ask, given["changed"], dict.fromkeys(CARE, True))
        made = {name: fitted(parts, ask, given["changed"], {**dict.fromkeys(CARE, True), name: False}) for name in CARE}
        careless = fitted(parts, ask, given["changed"], dict.fromkeys(CARE, False))
        best = _error(parts["test"], answer, ask)
        worst = min(_error(parts["test"], one, ask) for one in (*made.values(), careless))
        if worst < LEAST_GAIN * best:
            raise Unbindable("care gains too little")
        ask["limit"] = math.ceil(100 * (best + SLACK * (worst - best))) / 100
        mean = sum(float(row["load"]) for row in parts["train"]) / len(parts["train"])
        constant = _reported(parts, ask, {**careless, "weights": {"constant": round(mean, 6)}})
        return Bound(
            self.id, self.domain, office.id, _instruction(office, ask, rng), ask, answer, _checks(parts, ask),
            (PROGRAM, REPORT), _wrong(parts, ask, answer, {**made, "careless": careless, "constant": constant}),
            trap_blind=careless, single=constant,
            reads=tuple(f"{FOLDER}/{name}" for name in ("card.md", "train.csv", "valid.csv")), knobs=knobs,
            notes={"hours": len(kept), "metric": ask["metric"], "limit": ask["limit"], "reference": round(best, 3),
                   "careless": round(worst, 3)},
        )  # fmt: skip

    def write(self, bound: Bound, answer: Answer, world: Files, form: str = "plain") -> dict[str, bytes]:
        """See ``Template.write``."""
        return delivered(answer)

    def solve(self, ask: Mapping[str, Any]) -> Solving:
        """See ``Template.solve``."""
        card = yield from reading.plain_text(f"{ask['folder']}/card.md")
        changed = re.search(r"from (\d{4}-\d\d-\d\d) on `outdoor` is in degrees Fahrenheit", card)
        if changed is None:
            raise Lost("the card names no day of the sensor")
        parts = {}
        for name in ("train", "valid"):
            rows = yield from reading.csv_records(f"{ask['folder']}/{name}.csv")
            parts[name] = [row for row in rows if int(row["hour"]) in ask["hours"]]
        answer = fitted(parts, ask, changed[1], dict.fromkeys(CARE, True))
        for name, data in delivered(answer).items():
            yield from reading.deliver_text(name, data)
        yield from reading.shell(f"python3 -B artifacts/{PROGRAM} {ask['folder']}/valid.csv | head -3")


def delivered(answer: Answer) -> dict[str, bytes]:
    """The program and what it scores on the validation part."""
    model = {name: answer.get(name) for name in ("weights", "changed", *CARE)}
    return {PROGRAM: program(model).encode(), REPORT: json_bytes({"validation": answer["validation"]})}


def fitted(parts: Parts, ask: Mapping[str, Any], changed: str, care: Mapping[str, bool]) -> Answer:
    """A model fitted on the training part."""
    model: Answer = {"changed": changed, **care}
    rows = [inputs(row, model) for row in parts["train"]]
    weights = least_squares([list(row.values()) for row in rows], [float(row["load"]) for row in parts["train"]])
    return _reported(parts, ask, {**model, "weights": dict(zip(rows[0], weights, strict=True))})


def _reported(parts: Parts, ask: Mapping[str, Any], model: Answer) -> Answer:
    return {**model, "validation": round(_error(parts["valid"], model, ask), 8)}


def _error(rows: Sequence[Row], model: Answer, ask: Mapping[str, Any]) -> float:
    predictions = [round(load_of(row, model), 6) for row in rows]
    return METRICS[ask["metric"]]([float(row["load"]) for row in rows], predictions)


def _wrong(parts: Parts, ask: Mapping[str, Any], answer: Answer, made: Mapping[str, Answer]) -> tuple[Wrong, ...]:
    names = {"converts": "units mixed", "hinges": "a straight line", "weekends": "weekends like other days",
             "careless": "as written", "constant": "the mean"}  # fmt: skip
    weights = answer["weights"]
    turned = {**weights, "heating": weights["cooling"], "cooling": weights["heating"]}
    swapped = _reported(parts, ask, {**answer, "weights": turned})
    found = [*((names[name], one) for name, one in made.items()), ("swapped-entity", swapped)]
    return tuple(
        Wrong(name, one, "hidden rows") for name, one in found if _error(parts["test"], one, ask) > ask["limit"]
    )


def _checks(parts: Parts, ask: Mapping[str, Any]) -> tuple[Check, ...]:
    shown = list(parts["test"][0])[:-1]

    def part(name: str) -> dict[str, Any]:
        text = csv_bytes(shown, [[row[column] for column in shown] for row in parts[name]]).decode()
        return {"truth": [[row["row"], float(row["load"])] for row in parts[name]], "csv": text}

    model = {"entry": PROGRAM, "metric": ask["metric"]}
    seen = {"validation": part("valid")}
    return (
        Check("program and report", "present", {"files": [PROGRAM, REPORT]}, kind="gate", no_op="pass"),
        Check("reported validation", "model.reported", {
            **model, "parts": seen, "part": "validation", "report": REPORT, "path": "validation", "tol": 1e-4,
        }, weight=0.2, stage="intermediate"),
        Check("hidden rows", "model.scores", {
            **model, "parts": {**seen, "hidden test": part("test")}, "part": "hidden test", "limit": ask["limit"],
        }, weight=0.8),
    )  # fmt: skip


def _instruction(office: Office, ask: Mapping[str, Any], rng: random.Random) -> str:
    opener = rng.choice((
        f"The head office of {office.setting.company} buys power by the hour and needs to know its load in advance.",
        f"Facilities at {office.setting.company} wants a program that predicts the load of the head office.",
        f"{office.setting.company} logs the load of its head office and wants it predicted from weather and use.",
    ))  # fmt: skip
    hours = ", ".join(map(str, ask["hours"]))
    return f"""{opener}

The data is in {FOLDER}, described in its card: a training and a validation part. Only measurements of these hours
count: {hours}. Save

- `artifacts/{PROGRAM}`: one file, standard library only. `python3 {PROGRAM} ROWS` reads a csv file with the columns of
  the data but `load`, and prints for each row the predicted load in kW, a number a line, in the order of the rows
- `artifacts/{REPORT}`: a JSON object with `validation`: the {ask["metric"]} of its predictions on the validation part's
  rows of these hours, in kW, not rounded

The program is run on rows of these hours from the same time that are in no file; its {ask["metric"]} there has to be
{ask["limit"]:.2f} kW at most.
"""
