"""Models are judged on rows that nobody saw, and both scores are reported: metrics, ways to be wrong, programs."""

from __future__ import annotations

import math
from typing import Any

import pytest
from verifier_here import graded, score

from journeyman.worlds.templates.engineering.fitting import least_squares, logistic
from journeyman.worlds.verify import Check
from journeyman.worlds.verify.inside.worldverify.models import METRICS

PARTS = {"validation": {"truth": [["a", 1], ["b", 0]]}, "hidden test": {"truth": [["c", 1], ["d", 1]]}}
PARAMS = {"file": "p.csv", "columns": ["id", "p"], "parts": PARTS, "metric": "log loss", "part": "hidden test",
          "limit": 0.3}  # fmt: skip
RIGHT = "id,p\na,0.5\nb,0.5\nc,0.8\nd,0.9\n"


def scored(text: str, **changes: Any) -> dict[str, Any]:
    check = Check("hidden", "model.scores", {**PARAMS, **changes})
    found: dict[str, Any] = graded([check], {"p.csv": text.encode()})["checks"][0]
    return found


def test_metrics_are_what_hand_arithmetic_gives():
    truth, guess = [1.0, 0.0], [0.8, 0.4]
    assert METRICS["log loss"](truth, guess) == pytest.approx(-(math.log(0.8) + math.log(0.6)) / 2)
    assert METRICS["Brier score"](truth, guess) == pytest.approx(0.1)
    assert METRICS["mean absolute error"](truth, guess) == pytest.approx(0.3)
    assert METRICS["root mean squared error"](truth, guess) == pytest.approx(math.sqrt(0.1))
    assert METRICS["log loss"]([1.0], [0.0]) == pytest.approx(-math.log(1e-6))


def test_the_visible_and_the_hidden_score_are_both_reported_as_facts():
    found = scored(RIGHT)
    assert found["score"] == 1.0
    assert found["facts"] == {"validation": 0.693147, "hidden test": 0.164252}
    assert "validation 0.693147, hidden test 0.164252" in found["explain"]


def test_only_the_part_that_decides_decides():
    assert scored(RIGHT, limit=0.16)["score"] == 0.0
    assert scored(RIGHT, limit=0.16)["facts"]["hidden test"] == 0.164252
    assert scored(RIGHT, part="validation")["score"] == 0.0


@pytest.mark.parametrize(
    "text",
    [
        "id,p\na,0.5\nb,0.5\nc,0.8\n",
        "id,p\na,0.5\nb,0.5\nc,0.8\nd,\n",
        "id,p\na,0.5\nb,0.5\nc,0.8\nd,nan\n",
        "id,p\na,0.5\nb,0.5\nc,0.8\nd,1.4\n",
        RIGHT + "d,0.95\n",
        "id,q\na,0.5\n",
    ],
)
def test_predictions_with_holes_doubles_or_nonsense_score_nothing(text):
    assert scored(text)["score"] == 0.0


@pytest.mark.parametrize(("said", "want"), [("0.6931472", 1.0), ("0.69", 0.0), ('"none"', 0.0), ("null", 0.0)])
def test_what_is_reported_has_to_be_what_the_predictions_give(said, want):
    params = {**PARAMS, "part": "validation", "report": "r.json", "path": "validation", "tol": 2e-6}
    files = {"p.csv": RIGHT.encode(), "r.json": f'{{"validation": {said}}}'.encode()}
    assert score(Check("reported", "model.reported", params), files) == want


@pytest.mark.parametrize(
    ("code", "want"),
    [
        ("import csv, sys\nfor r in csv.DictReader(open(sys.argv[1])): print(2 * float(r['x']))", 1.0),
        ("import csv, sys\nfor r in csv.DictReader(open(sys.argv[1])): print(3 * float(r['x']))", 0.0),
        ("print(2)", 0.0),
        ("print('two four six')", 0.0),
        ("raise SystemExit(3)", 0.0),
        ("open('rows.csv').read(); print(open('/tests/truth.json').read())", 0.0),
    ],
)
def test_a_program_is_run_on_rows_that_are_in_no_file(code, want):
    rows = {"truth": [["1", 2], ["2", 4]], "csv": "id,x\n1,1\n2,2\n"}
    params = {"entry": "p.py", "parts": {"hidden test": rows}, "metric": "mean absolute error", "part": "hidden test",
              "limit": 0.1}  # fmt: skip
    assert score(Check("hidden", "model.scores", params), {"p.py": code.encode()}) == want


def test_fits_recover_the_weights_of_data_without_noise():
    rows = [[1.0, x] for x in (-1.0, 0.0, 1.0, 2.0)]
    assert least_squares(rows, [3 - 2 * x for _, x in rows]) == pytest.approx([3, -2])
    drawn = [([1.0, x], y) for x, ones in ((-1.0, 2), (1.0, 8)) for y in [1.0] * ones + [0.0] * (10 - ones)]
    found = logistic([x for x, _ in drawn], [y for _, y in drawn])
    assert found == pytest.approx([0, math.log(4)], abs=1e-2)
