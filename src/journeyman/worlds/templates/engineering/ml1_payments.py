"""ML1: probabilities that invoices are paid late; labels of the test part are with the verifier only.

What makes it hard: two systems write amounts in different units, unknown values are coded as numbers, and one input
works the other way round under short terms. A constant or a careless model does not reach the score that is asked for.
"""

from __future__ import annotations

import csv
import io
import json
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from journeyman.worlds.curriculum import Knobs
from journeyman.worlds.drafting import csv_bytes, json_bytes
from journeyman.worlds.template import Answer, Bound, Files, Solving, Unbindable, Wrong
from journeyman.worlds.templates import reading
from journeyman.worlds.templates.engineering.fitting import logistic
from journeyman.worlds.verify import Check
from journeyman.worlds.verify.inside.worldverify.models import METRICS

if TYPE_CHECKING:
    from journeyman.worlds.office import Office

PREDICTIONS, REPORT = "predictions.csv", "report.json"
FOLDER = "it/models/late_payment"
CARE = ("units", "logarithm", "unknown", "short_terms")
SLACK = 0.35
"""How far from the reference towards a careless model the asked score lies."""

LEAST_GAIN = 0.02
Row = dict[str, str]


@dataclass(frozen=True)
class ML1:
    """See the module."""

    id: str = "ML1"
    domain: str = "engineering"
    title: str = "probabilities of late payment, scored on hidden labels beside the visible ones"
    traps: tuple[str, ...] = ()

    def bind(self, office: Office, rng: random.Random, knobs: Knobs) -> Bound:
        """See ``Template.bind``."""
        given = json.loads(office.truth.value("SELECT value FROM assumption WHERE id = 'dataset:payments'"))
        parts = {name: [dict(zip(given["columns"], map(str, row), strict=True)) for row in rows]
                 for name, rows in given["parts"].items()}  # fmt: skip
        segments = sorted({row["segment"] for row in parts["train"]})
        metric = rng.choice(("log loss", "Brier score"))
        chosen = sorted(rng.sample(segments, rng.randint(2, len(segments))))
        ask: dict[str, Any] = {"segments": chosen, "metric": metric, "folder": FOLDER}
        answer = fitted(parts, ask, dict.fromkeys(CARE, True))
        careless = fitted(parts, ask, dict.fromkeys(CARE, False))
        best, worst = (_score(parts["test"], one, ask) for one in (answer, careless))
        if worst - best < LEAST_GAIN:
            raise Unbindable("care gains too little")
        ask["limit"] = math.ceil(1000 * (best + SLACK * (worst - best))) / 1000
        constant = _constant(parts, ask)
        wrong = _wrong(parts, ask, answer, careless, constant)
        return Bound(
            self.id, self.domain, office.id, _instruction(office, ask, rng), ask, answer, _checks(parts, ask),
            (PREDICTIONS, REPORT), wrong, trap_blind=careless, single=constant,
            reads=tuple(f"{FOLDER}/{name}" for name in ("card.md", "train.csv", "valid.csv", "test.csv")), knobs=knobs,
            notes={"segments": len(chosen), "metric": metric, "limit": ask["limit"], "reference": round(best, 4),
                   "careless": round(worst, 4)},
        )  # fmt: skip

    def write(self, bound: Bound, answer: Answer, world: Files, form: str = "plain") -> dict[str, bytes]:
        """See ``Template.write``."""
        rows = [row for part in ("valid", "test") for row in _records(world[f"{FOLDER}/{part}.csv"].decode())]
        return delivered(rows, answer, bound.ask)

    def solve(self, ask: Mapping[str, Any]) -> Solving:
        """See ``Template.solve``."""
        yield from reading.plain_text(f"{ask['folder']}/card.md")
        parts = {}
        for name in ("train", "valid", "test"):
            parts[name] = yield from reading.csv_records(f"{ask['folder']}/{name}.csv")
        answer = fitted(parts, ask, dict.fromkeys(CARE, True))
        for name, data in delivered([*parts["valid"], *parts["test"]], answer, ask).items():
            yield from reading.deliver_text(name, data)
        yield from reading.shell(f"wc -l artifacts/{PREDICTIONS}")


def _records(text: str) -> list[Row]:
    return list(csv.DictReader(io.StringIO(text)))


def features(row: Row, segments: Sequence[str], care: Mapping[str, bool]) -> dict[str, float]:
    """Inputs of the model by name."""
    net = float(row["net"]) * (1000 if care["units"] and row["system"] == "legacy" else 1)
    prior, terms, reminder = int(row["prior_late"]), int(row["terms"]), int(row["reminder"])
    made = {"constant": 1.0, "net": math.log(net) - 8 if care["logarithm"] else net / 10_000, "terms": terms / 30,
            "prior": 0.0 if care["unknown"] and prior < 0 else float(prior), "reminder": float(reminder)}  # fmt: skip
    if care["unknown"]:
        made["unknown"] = float(prior < 0)
    if care["short_terms"]:
        made["short"] = float(terms == 14)
        made["reminder_short"] = float(reminder and terms == 14)
    return {**made, **{f"segment {n}": float(row["segment"] == name) for n, name in enumerate(segments[1:], 2)}}


def fitted(parts: Mapping[str, Sequence[Row]], ask: Mapping[str, Any], care: Mapping[str, bool]) -> Answer:
    """Weights from the training part, and what they score on the validation part."""
    rows = [row for row in parts["train"] if row["segment"] in ask["segments"]]
    inputs = [features(row, ask["segments"], care) for row in rows]
    weights = logistic([list(one.values()) for one in inputs], [float(row["late"]) for row in rows])
    answer: Answer = {"weights": dict(zip(inputs[0], weights, strict=True)), "care": dict(care)}
    return {**answer, "validation": round(_score(parts["valid"], answer, ask), 8)}


def predicted(rows: Sequence[Row], answer: Answer, ask: Mapping[str, Any]) -> list[float]:
    """Probabilities to six digits."""
    made = []
    for row in rows:
        inputs = features(row, ask["segments"], answer["care"])
        total = sum((answer["weights"].get(name) or 0.0) * value for name, value in inputs.items())
        made.append(round(1 / (1 + math.exp(-max(-30.0, min(30.0, total)))), 6))
    shift = answer.get("shift", 0)
    return [*made[shift:], *made[:shift]]


def _score(rows: Sequence[Row], answer: Answer, ask: Mapping[str, Any]) -> float:
    kept = [row for row in rows if row["segment"] in ask["segments"]]
    return METRICS[ask["metric"]]([float(row["late"]) for row in kept], predicted(kept, answer, ask))


def delivered(rows: Sequence[Row], answer: Answer, ask: Mapping[str, Any]) -> dict[str, bytes]:
    """Both files; ``rows`` are those of the validation and the test part."""
    kept = [row for row in rows if row["segment"] in ask["segments"]]
    parts = [[row for row in kept if "late" in row], [row for row in kept if "late" not in row]]
    lines = [[row["invoice"], p] for part in parts for row, p in zip(part, predicted(part, answer, ask), strict=True)]
    return {PREDICTIONS: csv_bytes(("invoice", "probability"), lines),
            REPORT: json_bytes({"validation": answer["validation"]})}  # fmt: skip


def _constant(parts: Mapping[str, Sequence[Row]], ask: Mapping[str, Any]) -> Answer:
    """Everybody pays late as often as in the training part."""
    kept = [float(row["late"]) for row in parts["train"] if row["segment"] in ask["segments"]]
    share = sum(kept) / len(kept)
    answer: Answer = {"weights": {"constant": math.log(share / (1 - share))}, "care": dict.fromkeys(CARE, False)}
    return {**answer, "validation": round(_score(parts["valid"], answer, ask), 8)}


def _wrong(
    parts: Mapping[str, Sequence[Row]], ask: Mapping[str, Any], answer: Answer, careless: Answer, constant: Answer
) -> tuple[Wrong, ...]:
    def scored(made: Answer) -> Answer:
        return {**made, "validation": round(_score(parts["valid"], made, ask), 8)}

    turned = {name: -weight for name, weight in answer["weights"].items()}
    made = {
        "as written": careless,
        "base rate": constant,
        "swapped-entity": scored({**answer, "shift": 1}),
        "the other outcome": scored({**answer, "weights": turned}),
        "units mixed": fitted(parts, ask, {**answer["care"], "units": False}),
        "size ignored": scored({**answer, "weights": {**answer["weights"], "net": 0.0}}),
    }
    found = [Wrong(name, one, "hidden test") for name, one in made.items()
             if _score(parts["test"], one, ask) > ask["limit"]]  # fmt: skip
    if len(found) < 4:
        raise Unbindable("careless models are good enough")
    return tuple(found)


def _checks(parts: Mapping[str, Sequence[Row]], ask: Mapping[str, Any]) -> tuple[Check, ...]:
    names = {"valid": "validation", "test": "hidden test"}
    truth = {
        name: {
            "truth": [[row["invoice"], int(row["late"])] for row in parts[part] if row["segment"] in ask["segments"]]
        }
        for part, name in names.items()
    }
    base = {"file": PREDICTIONS, "columns": ["invoice", "probability"], "metric": ask["metric"]}
    seen = {name: one for name, one in truth.items() if name == "validation"}
    return (
        Check("both files", "present", {"files": [PREDICTIONS, REPORT]}, kind="gate", no_op="pass"),
        Check("hidden test", "model.scores", {**base, "parts": truth, "part": "hidden test", "limit": ask["limit"]},
              weight=0.8),
        Check("reported validation", "model.reported", {
            **base, "parts": seen, "part": "validation", "report": REPORT, "path": "validation", "tol": 2e-6,
        }, weight=0.2, stage="intermediate"),
    )  # fmt: skip


def _instruction(office: Office, ask: Mapping[str, Any], rng: random.Random) -> str:
    opener = rng.choice((
        f"Treasury at {office.setting.company} wants to know which invoices will be paid late.",
        f"{office.setting.company} plans its cash and needs a model of late payment.",
        f"Receivables at {office.setting.company} asks for the probability that an invoice is paid late.",
    ))  # fmt: skip
    return f"""{opener}

The data is in {FOLDER}, described in its card: a training part, a validation part, and a test part without `late`. Fit
a model for these segments: {", ".join(ask["segments"])}. Rows of other segments are not predicted.

Save

- `artifacts/{PREDICTIONS}`: comma separated, the header `invoice,probability`, and for each invoice of these segments
  in the validation and in the test part the probability that it is paid late, to six decimal places
- `artifacts/{REPORT}`: a JSON object with `validation`: the {ask["metric"]} of these probabilities on the validation
  part's rows of these segments, not rounded (probabilities below 0.000001 or above 0.999999 count as those)

The {ask["metric"]} on the test part, by labels that you do not have, has to be {ask["limit"]:.3f} at most.
"""
