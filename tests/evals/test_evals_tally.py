"""From graded Trials to Scores: who is counted, what is left out, and intervals that never lose their width."""

from __future__ import annotations

import pytest
from evals_reference_sets import WORLDS, A, B

from journeyman.evals.tally import GradedTrial, by_family, difference_of, score_of, sensitivity, task_values


def trials_of(bits, *, family="look"):
    return [
        GradedTrial(f"t{i:02d}", f"w{world}", family, "solved" if bit else "failed", float(bit), bool(bit))
        for i, (task, world) in enumerate(zip(bits, WORLDS, strict=True))
        for bit in task
    ]


def broken(task, outcome="system_error"):
    return GradedTrial(task, "w0", "look", outcome, None, None)


def test_scores_of_set_s_carry_kind_n_and_the_clustered_interval():
    score = score_of(trials_of(A), "pass@1", boundary="a")
    assert (score.kind, score.n_tasks, score.n_trials, score.n_worlds) == ("pass@1", 12, 36, 4)
    assert score.value == pytest.approx(0.388888889, abs=1e-9)
    assert (score.low, score.high) == pytest.approx((-0.048840, 0.826618), abs=1e-6)
    assert score.boundary == "a" and score.few_worlds and "clustered by world" in score.interval


def test_system_errors_change_no_score_and_are_counted():
    plain = score_of(trials_of(A), "mean_reward")
    noisy = score_of(
        [*trials_of(A), broken("t00"), broken("t01", "verifier_error"), broken("t09", "cancelled")], "mean_reward"
    )
    assert noisy.value == plain.value and noisy.n_trials == plain.n_trials
    assert noisy.excluded == {"cancelled": 1, "system_error": 1, "verifier_error": 1}


def test_a_task_with_too_few_graded_trials_is_dropped_and_counted():
    trials = [*trials_of(A), broken("t99")]
    assert score_of(trials, "pass@1").n_tasks_dropped == 1
    assert score_of(trials, "pass@3").n_tasks_dropped == 1
    assert score_of(trials, "pass@4").n_tasks == 0
    assert score_of(trials, "pass@4").value is None


def test_partial_credit_and_passes_are_two_kinds():
    trials = [
        GradedTrial("t0", "w0", "rep", "failed", 0.5, False),
        GradedTrial("t0", "w0", "rep", "solved", 1.0, True),
        GradedTrial("t1", "w1", "rep", "malformed_deliverable", 0.0, False),
    ]
    assert score_of(trials, "mean_reward").value == pytest.approx(0.375)
    assert score_of(trials, "pass@1").value == pytest.approx(0.25)
    assert score_of(trials, "pass^2").value == 0.0 and score_of(trials, "pass@2").value == 1.0


def test_a_broken_trial_with_a_reward_is_refused():
    with pytest.raises(ValueError, match="never a reward"):
        GradedTrial("t", "w", "f", "verifier_error", 0.0, False)
    with pytest.raises(ValueError, match="passed is True"):
        GradedTrial("t", "w", "f", "failed", 1.0, True)
    with pytest.raises(ValueError, match="graded, but reward is None"):
        GradedTrial("t", "w", "f", "solved", None, True)
    with pytest.raises(ValueError, match="malformed"):
        GradedTrial("t", "w", "f", "malformed_deliverable", 0.5, False)


def test_an_unknown_kind_is_refused_with_the_allowed_ones():
    with pytest.raises(ValueError, match="allowed: mean_reward, pass@k, pass"):
        task_values(trials_of(A), "retry@5")


@pytest.mark.parametrize("bits", [0 * A, 0 * A + 1], ids=["nothing solved", "all solved"])
def test_zero_and_all_solved_still_have_an_interval_with_width(bits):
    score = score_of(trials_of(bits), "pass@1")
    assert score.value in (0.0, 1.0)
    assert score.high - score.low > 0.3 and 0 <= score.low <= score.high <= 1
    assert "Wilson" in score.interval


def test_one_world_has_no_interval():
    only = [trial for trial in trials_of(A) if trial.world_id == "w0"]
    score = score_of(only, "pass@1")
    assert (score.low, score.high, score.interval) == (None, None, "no interval: one world")


def test_the_difference_of_set_s_is_paired_clustered_and_a_tie():
    found = difference_of(trials_of(A), trials_of(B), "pass@1", a="before", b="after")
    assert found.value == pytest.approx(0.138888889, abs=1e-9)
    assert (found.low, found.high) == pytest.approx((-0.063485, 0.341263), abs=1e-6)
    assert (found.p, found.p_method) == (0.25, "cluster sign-flip, exact")
    assert found.mde == pytest.approx(2.8015852 * 0.063590734, abs=1e-6)
    assert (found.word, found.winner) == ("tie", "tie")


def test_only_common_tasks_are_compared_and_the_others_counted():
    fewer = [trial for trial in trials_of(B) if trial.task_id != "t03"]
    found = difference_of(trials_of(A), fewer, "pass@1", a="a", b="b")
    assert (found.n_tasks, found.n_tasks_unpaired) == (11, 1)
    nothing = difference_of(trials_of(A), [], "pass@1", a="a", b="b")
    assert (nothing.value, nothing.p, nothing.word, nothing.n_tasks_unpaired) == (None, None, "tie", 12)


def test_a_gain_on_every_single_task_has_an_interval_with_width_and_a_winner():
    found = difference_of(trials_of(0 * A), trials_of(0 * A + 1), "pass@1", a="before", b="after")
    assert found.value == 1.0 and found.low < 0.7 and found.high == pytest.approx(1.0)
    assert "Newcombe" in found.interval
    assert found.winner == "after"
    same = difference_of(trials_of(A), trials_of(A), "pass@1", a="a", b="b")
    assert same.low < 0 < same.high and same.word == "tie"


def test_the_order_of_trials_does_not_matter_to_a_difference():
    forward = difference_of(trials_of(A), trials_of(B), "mean_reward", a="a", b="b")
    backward = difference_of(trials_of(A), trials_of(B)[::-1], "mean_reward", a="a", b="b")
    assert forward == backward


def test_sensitivity_counts_broken_trials_as_failed_and_as_solved():
    trials = [*trials_of(A), broken("t00"), broken("t00", "cancelled")]
    low, high = sensitivity(trials, "pass@1")
    assert low == pytest.approx(score_of(trials, "pass@1").value - (2 / 3 - 2 / 4) / 12)
    assert high == pytest.approx(score_of(trials, "pass@1").value + (3 / 4 - 2 / 3) / 12)


def test_families_are_split_in_alphabetical_order():
    groups = by_family([*trials_of(A, family="sum"), *trials_of(B, family="look")])
    assert list(groups) == ["look", "sum"] and len(groups["sum"]) == 36
