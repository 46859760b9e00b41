"""The schema of report.json: what it refuses, and that everything that measures time says so."""

from __future__ import annotations

import pytest
from ladder_report_fixture import make_report
from pydantic import ValidationError

from journeyman.evals.score import Score, Word
from journeyman.ladder.report.figures import TIME_NAME, Column, Gate, Table, measured
from journeyman.ladder.report.model import Report, Run, Step, overall
from journeyman.ladder.report.sections import ManifestEntry, Scores

HOLDS, FAILS = Gate.of("share", 0.0, "<", 0.01), Gate.of("share", 0.5, "<", 0.01)


def run(**changes):
    return Run(
        **{"name": "q", "version": "0", "profile": "tiny", "seed": 0, "command": "c", "started_at": "t"} | changes
    )


def score(kind="pass@1", boundary=""):
    return Score(kind=kind, value=0.5, n_tasks=4, n_trials=8, n_worlds=2, low=0.1, high=0.9, boundary=boundary)


def unmarked(model: type[Word]) -> list[str]:
    """Fields of a model, and of the models below it, that are named like time and not marked so."""
    schema = model.model_json_schema()
    owners = {model.__name__: schema, **schema.get("$defs", {})}
    return [
        f"{owner}.{name}"
        for owner, definition in owners.items()
        for name, field in definition.get("properties", {}).items()
        if TIME_NAME.search(name) and field.get("measures") != "time"
    ]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_a_measurement_that_is_no_finite_number_fails_its_gate_and_is_named(value):
    gate = Gate.of("gap", value, "<", 1e-4, detail="n = 3")
    assert (gate.value, gate.passed) == (None, None)
    assert gate.detail == f"measured {value}; n = 3"


def test_every_field_named_like_time_is_marked_as_measuring_time():
    assert unmarked(Report) == ["Step.look_at"]  # where to look, not when
    marked = [
        name
        for definition in Report.model_json_schema()["$defs"].values()
        for name, field in definition.get("properties", {}).items()
        if field.get("measures") == "time"
    ]
    assert {"wall_s", "cpu_s", "started_at", "opened_at", "timing"} <= set(marked)


def test_a_forgotten_mark_is_found():
    class Forgot(Word):
        idle_s: float
        opened_at: str = measured("time")
        tokens_per_second: float

    assert unmarked(Forgot) == ["Forgot.idle_s", "Forgot.tokens_per_second"]


def test_a_report_survives_its_json():
    report = make_report()
    assert Report.model_validate_json(report.model_dump_json()) == report


def test_an_unknown_field_is_refused():
    data = make_report().model_dump(mode="json")
    with pytest.raises(ValidationError, match="Extra inputs are not permitted"):
        Report.model_validate(data | {"score": 1})


def test_a_gate_cannot_be_marked_passed_when_its_condition_does_not_hold():
    assert (HOLDS.passed, FAILS.passed, Gate.of("share", None, "<", 1).passed) == (True, False, None)
    with pytest.raises(ValidationError, match=r"passed = True, but 0\.5 < 0\.01 is False"):
        Gate(metric="share", value=0.5, threshold=0.01, comparison="<", passed=True)


@pytest.mark.parametrize(
    ("comparison", "below", "at", "above"),
    [
        (">", False, False, True),
        (">=", False, True, True),
        ("<", True, False, False),
        ("<=", True, True, False),
        ("==", False, True, False),
    ],
)
def test_each_comparison_means_what_it_says(comparison, below, at, above):
    found = [Gate.of("x", value, comparison, 0.5).passed for value in (0.4, 0.5, 0.6)]
    assert found == [below, at, above]


@pytest.mark.parametrize("fields", [{"gate": FAILS}, {"gate": HOLDS, "checks": (FAILS,)}, {}])
def test_a_step_is_passed_only_when_its_gate_and_all_checks_hold(fields):
    with pytest.raises(ValidationError, match="gate or a check is missing or not met"):
        Step(number=1, name="environment", status="passed", **fields)


def test_a_step_whose_conditions_all_hold_did_not_fail():
    with pytest.raises(ValidationError, match="its gate and checks hold"):
        Step(number=1, name="environment", status="failed", gate=HOLDS)
    assert Step(number=1, name="environment", status="failed", gate=FAILS).status == "failed"


def test_the_status_of_a_report_follows_from_its_steps():
    passed = [Step(number=i, name=str(i), status="passed", gate=HOLDS) for i in range(1, 8)]
    assert overall(passed) == "passed"
    assert overall(passed[:6]) == "running"
    assert overall([*passed[:6], Step(number=7, name="7", status="failed", gate=FAILS)]) == "failed"
    assert overall([*passed[:6], Step(number=7, name="7", status="skipped")]) == "running"
    with pytest.raises(ValidationError, match="status passed, but the steps say running"):
        Report(run=run(), status="passed", honesty=("x",), steps=tuple(passed[:6]))
    with pytest.raises(ValidationError, match="numbered from 1"):
        Report(run=run(), status="running", honesty=("x",), steps=tuple(passed[1:3]))


def test_a_report_without_honesty_is_refused():
    with pytest.raises(ValidationError, match="at least 1 item"):
        Report(run=run(), status="running", honesty=(), steps=())


def test_a_score_without_a_known_boundary_is_refused():
    table = Table(
        title="t",
        columns=(Column(name="a", kind="mean_reward"), Column(name="b", kind="pass@1")),
        rows=((score("mean_reward", "lab"), score("pass@1", "lab")),),
    )
    step = Step(number=1, name="environment", status="running", tables=(table,))
    with pytest.raises(ValidationError, match='names the boundary "lab"'):
        Report(run=run(), status="running", honesty=("x",), steps=(step,))


def test_a_table_refuses_two_kinds_in_one_column():
    pair = (Column(name="a", kind="mean_reward"), Column(name="b", kind="pass@1"))
    with pytest.raises(ValidationError, match='pass@1 in column "a", which holds mean_reward'):
        Table(title="t", columns=pair, rows=((score(), score()),))
    with pytest.raises(ValidationError, match="holds no scores"):
        Table(title="t", columns=(Column(name="a"),), rows=((score(),),))
    with pytest.raises(ValidationError, match="printed together"):
        Table(title="t", columns=pair[1:], rows=((score(),),))
    with pytest.raises(ValidationError, match="1 cells in a row of 2 columns"):
        Table(title="t", columns=pair, rows=((None,),))


def test_scores_come_as_a_pair_of_the_right_kinds():
    with pytest.raises(ValidationError, match="expected mean_reward, pass@1"):
        Scores(mean_reward=score(), pass_1=score("mean_reward"))


@pytest.mark.parametrize(
    "column", [{"name": "wall_s"}, {"name": "speed", "unit": "tokens/s"}, {"name": "w", "unit": "s"}]
)
def test_a_column_that_measures_time_must_say_so(column):
    with pytest.raises(ValidationError, match="measures time"):
        Column(**column)
    assert Column(**column, measures_time=True).measures_time


@pytest.mark.parametrize("evidence", [{"wall_s": 1}, {"a": {"b": [{"started_at": "x"}]}}, {"tokens_per_second": 3}])
def test_evidence_that_measures_time_is_refused(evidence):
    with pytest.raises(ValidationError, match="measures time; put it into timing"):
        Step(number=1, name="environment", status="running", evidence=evidence)


def test_evidence_that_is_not_finite_is_refused():
    with pytest.raises(ValidationError, match="write null"):
        Step(number=1, name="environment", status="running", evidence={"loss": float("nan")})


@pytest.mark.parametrize("words", ["/home/someone/x", "venv at /opt/a/b", "C:\\Users\\x"])
def test_machine_facts_hold_no_paths(words):
    with pytest.raises(ValidationError, match="holds a path"):
        run(machine={"python": words})
    assert run(machine={"cpu": "2 x AMD / 8 threads, cgroup v1/v2"}).machine


@pytest.mark.parametrize("name", ["/etc/passwd", "../x", "a/../../b", "~/x"])
def test_files_are_named_relative_to_the_run(name):
    with pytest.raises(ValidationError, match="must be relative"):
        ManifestEntry(name=name, sha256="0" * 64)
