"""Behaviour metrics, comparable systems, tables of one kind, tokens and dollars: one hand-made case per rule."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from journeyman.errors import InputError
from journeyman.evals.behaviour import LIMITS, METRICS, CallRecord, TrialRecord, behaviour_of, stopped_by
from journeyman.evals.comparable import check_comparable
from journeyman.evals.cost import Usage, dollars_per_completed
from journeyman.evals.score import Boundary, Difference, Ratio, Score, check_kind
from journeyman.evals.table import KindsApart, MixedKinds, ScoreColumn, score_table
from journeyman.evals.wording import difference_text, number, sample_size, score_text, signed

FULL = TrialRecord(
    outcome="solved",
    stop_reason="answered",
    n_turns=4,
    n_sampled_tokens=100,
    calls=(
        CallRecord("lookup", "a", "ok", "s0"),
        CallRecord("lookup", "a", "ok", "s0"),  # repeated
        CallRecord("lookup", "b", "tool_error", "s0"),
        CallRecord("lookup", "b", "tool_error", "s1"),  # the state changed in between
        CallRecord("", "", "unparsable", "s1"),
        CallRecord("", "", "unparsable", "s1"),  # not a repeat: nothing was called
        CallRecord("lokup", "a", "unknown_tool", "s1"),
        CallRecord("lookup", "c", "schema_violation", "s1"),
    ),
)
SILENT = TrialRecord(outcome="failed", stop_reason="limit.context", n_turns=2, n_sampled_tokens=50)
BROKEN = TrialRecord(outcome="system_error", stop_reason="error", n_turns=9, n_sampled_tokens=900)


@pytest.mark.parametrize(
    ("metric", "numerator", "denominator"),
    [
        ("turns", 6, 2),
        ("calls_per_turn", 8, 6),
        ("tokens_per_turn", 150, 6),
        ("invalid_call_rate", 4, 8),
        ("execution_error_rate", 2, 4),
        ("repeated_call_rate", 1, 8),
        ("context_exhaustion_rate", 1, 2),
    ],
)
def test_each_metric_has_the_expected_numerator_and_denominator(metric, numerator, denominator):
    found = behaviour_of([FULL, SILENT, BROKEN])[metric]
    assert (found.numerator, found.denominator) == (numerator, denominator)


def test_every_metric_is_covered_by_the_case_above():
    assert set(METRICS) == set(behaviour_of([])) and len(METRICS) == 7


def test_a_trial_without_calls_has_no_call_rates():
    found = behaviour_of([SILENT])
    for name in ("invalid_call_rate", "execution_error_rate", "repeated_call_rate"):
        assert (found[name].numerator, found[name].denominator, found[name].value) == (0, 0, None)


def test_every_limit_has_a_share_also_when_it_stopped_nothing():
    found = stopped_by([FULL, SILENT, BROKEN])
    assert tuple(found) == LIMITS and "limit.context" in LIMITS and "answered" not in LIMITS
    assert found["limit.context"].value == 0.5 and found["limit.turns"].value == 0.0


def test_ratios_of_groups_add_up_to_the_ratio_of_all():
    parts = [behaviour_of([trial])["tokens_per_turn"] for trial in (FULL, SILENT)]
    assert parts[0] + parts[1] == behaviour_of([FULL, SILENT])["tokens_per_turn"]
    with pytest.raises(ValidationError, match=r"is not 1\.0 / 0\.0"):
        Ratio(numerator=1, denominator=0, value=0.0)


def system(**changes):
    fields = {"name": "x", "model": "m", "harness": "toolbelt", "tools": ("lookup",), "split": "test", "judge": "check"}
    return Boundary(**{**fields, **changes})


def test_two_models_on_one_system_may_be_compared():
    check_comparable(system(model="a"), system(model="b", name="y"), factors=["model"])


def test_a_comparison_that_differs_elsewhere_is_refused_and_names_the_field():
    with pytest.raises(InputError, match=r"harness_sha256 \('1' against '2'\).*model only"):
        check_comparable(system(harness_sha256="1"), system(harness_sha256="2"), factors=["model"])
    with pytest.raises(InputError, match="budgets"):
        check_comparable(system(budgets={"turns": 6}), system(budgets={"turns": 8}), factors=["harness"])
    with pytest.raises(InputError, match="unknown"):
        check_comparable(system(), system(), factors=["weather"])


def score(kind, value=0.5, low=0.4, high=0.6, **more):
    return Score(kind=kind, value=value, n_tasks=10, n_trials=20, n_worlds=10, low=low, high=high, **more)


PAIR = (ScoreColumn("mean reward", "mean_reward"), ScoreColumn("pass@1", "pass@1"))


def test_a_table_prints_both_kinds_with_their_intervals():
    text = score_table("model", PAIR, [("base", [score("mean_reward"), None])], note="95 % t over 10 worlds")
    assert text.splitlines() == [
        "| model | mean reward (mean_reward) | pass@1 |",
        "| --- | --- | --- |",
        "| base | 0.500 [0.400, 0.600] | n/a |",
        "",
        "95 % t over 10 worlds",
    ]


def test_a_second_kind_in_a_column_is_refused():
    with pytest.raises(MixedKinds, match='pass@5 in column "pass@1"') as refused:
        score_table("model", PAIR, [("base", [score("mean_reward"), score("pass@5")])])
    assert (refused.value.column, refused.value.kind, refused.value.found) == ("pass@1", "pass@1", "pass@5")
    with pytest.raises(KindsApart):
        score_table("model", PAIR[:1], [])
    with pytest.raises(ValueError, match="1 cells in row base of 2 columns"):
        score_table("model", PAIR, [("base", [None])])


@pytest.mark.parametrize("kind", ["pass@0", "pass@", "pass at 5", "best_of_", "accuracy"])
def test_an_unknown_kind_is_no_score(kind):
    with pytest.raises(ValueError, match="does not exist"):
        check_kind(kind)


def test_a_score_refuses_half_an_interval_or_a_value_outside():
    with pytest.raises(ValidationError, match="two ends or none"):
        score("pass@1", high=None)
    with pytest.raises(ValidationError, match="lies outside"):
        score("pass@1", value=0.7)
    with pytest.raises(ValidationError, match="needs a value"):
        score("pass@1", value=None)
    with pytest.raises(ValidationError, match="finite"):
        score("pass@1", value=float("nan"))


def test_printed_intervals_are_clipped_and_never_plus_minus_zero():
    assert score_text(score("pass@1", low=-0.2, high=1.3)) == "0.500 [0.000, 1.000]"
    assert score_text(score("pass@1", low=None, high=None)) == "0.500 n/a"
    assert (number(-0.0001), signed(0.25), signed(-0.25), number(None)) == ("0.000", "+0.250", "-0.250", "n/a")
    assert sample_size(score("pass@1", excluded={"system_error": 2, "cancelled": 0}, n_tasks_dropped=1)) == (
        "10 tasks, 20 trials, 10 worlds; 2 system error left out; 1 tasks without enough graded trials"
    )


def test_a_winner_below_the_detectable_effect_is_marked():
    fields = {"kind": "pass@1", "a": "x", "b": "y", "low": 0.01, "high": 0.09, "n_tasks": 9, "n_worlds": 9}
    assert difference_text(Difference(value=0.05, mde=0.08, word="B", **fields)).endswith("below MDE")
    assert difference_text(Difference(value=0.05, mde=0.04, word="B", **fields)) == "+0.050 [+0.010, +0.090]"


def test_cached_tokens_are_part_of_the_input_and_counted_once():
    usage = Usage(input=1_000, cache_read=800, cache_write=50, output=100, reasoning=40)
    assert usage.uncached == 150
    assert (usage + usage).cache_read == 1_600
    with pytest.raises(ValidationError, match="parts of input"):
        Usage(input=10, cache_read=8, cache_write=3)
    with pytest.raises(ValidationError, match="part of output"):
        Usage(output=1, reasoning=2)


def test_dollars_of_failed_trials_are_paid_by_the_solved_ones():
    assert dollars_per_completed([1.0, 2.0, 3.0], 2) == 3.0
    assert dollars_per_completed([1.0], 0) == "inf"
