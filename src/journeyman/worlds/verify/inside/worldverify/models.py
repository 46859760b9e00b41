"""Checks of models: predictions for rows whose outcomes only the truth has, scored beside those that everybody saw.

Predictions come from a delivered csv file, or from a delivered program that is run on the rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from .bundle import Bundle
from .comparing import normal, number_of, shown
from .outcome import Outcome
from .reruns import run_text
from .tables import at_path, best_table

CLIP = 1e-6
"""Probabilities are taken as at least this far from 0 and 1."""

Numbers = Sequence[float]


def log_loss(truth: Numbers, predicted: Numbers) -> float:
    """Mean of ``-ln`` of the probability that the outcome was given. Outcomes are 0 or 1."""
    kept = [min(1 - CLIP, max(CLIP, p)) for p in predicted]
    return -sum(math.log(p if y else 1 - p) for y, p in zip(truth, kept, strict=True)) / len(truth)


def brier(truth: Numbers, predicted: Numbers) -> float:
    """Mean squared difference of probability and outcome."""
    return sum((y - p) ** 2 for y, p in zip(truth, predicted, strict=True)) / len(truth)


def absolute(truth: Numbers, predicted: Numbers) -> float:
    """Mean absolute error."""
    return sum(abs(y - p) for y, p in zip(truth, predicted, strict=True)) / len(truth)


def root_square(truth: Numbers, predicted: Numbers) -> float:
    """Root mean squared error."""
    return math.sqrt(brier(truth, predicted))


METRICS: dict[str, Callable[[Numbers, Numbers], float]] = {
    "log loss": log_loss,
    "Brier score": brier,
    "mean absolute error": absolute,
    "root mean squared error": root_square,
}
"""Name -> metric; less is better with all of them."""

PROBABILITIES = frozenset({"log loss", "Brier score"})


def scores(bundle: Bundle, params: dict[str, Any]) -> Outcome:
    """The hidden part is predicted well enough; the scores on all parts are reported beside each other.

    Params: ``file`` with ``columns``: [id, prediction], or ``entry``: a program that is given ``rows.csv`` and prints a
    number a line; ``parts``: name -> {``truth``: [[id, outcome], ...], ``csv``?: rows for the program}; ``metric``;
    ``part``: the one that decides; ``limit``: most of its score; ``case_s``?.
    """
    found: dict[str, float] = {}
    for part in params["parts"]:
        value, problem = score_of(bundle, params, part)
        if problem:
            return Outcome(0.0, f"{part}: {problem}")
        found[part] = round(value, 6)
    words = ", ".join(f"{part} {value:.6g}" for part, value in found.items())
    is_enough = found[params["part"]] <= params["limit"] + 1e-9
    asked = f"{params['metric']}: {words}; {params['part']} may be {params['limit']:g} at most"
    return Outcome(1.0 if is_enough else 0.0, asked, found)


def reported(bundle: Bundle, params: dict[str, Any]) -> Outcome:
    """What is reported about a visible part is what the delivered predictions give.

    Params: as ``scores``; ``report``: delivered JSON; ``path`` in it; ``part``; ``tol``: absolute.
    """
    said = number_of(at_path(bundle.json(params["report"]), params["path"]))
    value, problem = score_of(bundle, params, params["part"])
    if problem:
        return Outcome(0.0, f"{params['part']}: {problem}")
    is_so = said is not None and abs(said - value) <= params["tol"]
    words = f"{params['part']} is reported as {shown(said)}, the predictions give {value:.6g}"
    return Outcome(1.0 if is_so else 0.0, words, {params["part"]: round(value, 6)})


def score_of(bundle: Bundle, params: dict[str, Any], part: str) -> tuple[float, str]:
    """The metric on a part, and why there is none."""
    truth = params["parts"][part]["truth"]
    predicted, problem = _printed(bundle, params, part) if "entry" in params else _listed(bundle, params, truth)
    if problem:
        return 0.0, problem
    if any(not math.isfinite(value) for value in predicted):
        return 0.0, "a prediction is no finite number"
    if params["metric"] in PROBABILITIES and any(not 0 <= value <= 1 for value in predicted):
        return 0.0, "a prediction is no probability"
    return METRICS[params["metric"]]([float(row[1]) for row in truth], predicted), ""


def _listed(bundle: Bundle, params: dict[str, Any], truth: list[list[Any]]) -> tuple[list[float], str]:
    """Predictions of a csv file in the order of the truth; rows of other parts may stand there too."""
    found = best_table([(list(bundle.rows(params["file"])), params["file"], 1900)],
                       [{"name": name} for name in params["columns"]])  # fmt: skip
    if found is None:
        return [], f"{params['file']}: no table with the columns {', '.join(params['columns'])}"
    given: dict[str, float | None] = {}
    for name, value in ((normal(row[0]), row[1]) for row in found[0] if row[0] not in (None, "")):
        if name in given:
            return [], f"{name} is predicted twice"
        given[name] = _number(value)
    lacking = [row[0] for row in truth if given.get(normal(row[0])) is None]
    if lacking:
        return [], f"no prediction of {len(lacking)} rows, {lacking[0]} the first"
    return [given[normal(row[0])] or 0.0 for row in truth], ""


def _printed(bundle: Bundle, params: dict[str, Any], part: str) -> tuple[list[float], str]:
    """Predictions that the program prints, one a line."""
    rows = params["parts"][part]
    text, problem = run_text(bundle, params, {"rows.csv": rows["csv"]}, ["rows.csv"])
    if problem:
        return [], problem
    values = [_number(line) for line in text.split()]
    if None in values or len(values) != len(rows["truth"]):
        return [], f"{len(values)} numbers were printed for {len(rows['truth'])} rows: {shown(text)}"
    return [value or 0.0 for value in values], ""


def _number(value: Any) -> float | None:
    try:
        return number_of(float(value))
    except (TypeError, ValueError):
        return number_of(value)
