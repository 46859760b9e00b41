"""When supervised training decays, stops and starts afresh."""

from __future__ import annotations

import pytest

from journeyman.errors import InputError
from journeyman.train.criterion import FixedSteps, Progress, UntilLearned


def walk(plan, loss_at):
    """Steps through a plan; returns its progress, the scale of every step and the steps at which it restarted."""
    progress, scales, restarts = Progress(plan), [], []
    while not progress.is_over:
        scales.append(progress.scale)
        progress.advance()
        if progress.check_is_due:
            progress.observe(loss_at(progress.attempt, progress.step))
        if progress.must_restart:
            restarts.append(progress.step)
            progress.restart()
            scales = []
        progress = Progress(plan, progress.state())  # every step survives a checkpoint
    return progress, scales, restarts


def test_two_checks_in_a_row_below_the_threshold_start_a_decay_of_250_steps():
    losses = lambda _, n: 0.01 if n in (400, 500) else 0.001 if n >= 600 else 0.1  # noqa: E731
    progress, scales, restarts = walk(UntilLearned(), losses)
    assert (progress.decay_began, progress.step, restarts) == (650, 900, [])
    assert scales[:3] == [1 / 20, 2 / 20, 3 / 20]
    assert set(scales[19:650]) == {1.0}
    assert scales[650:] == pytest.approx([1 - k / 250 for k in range(250)])


def test_an_attempt_that_has_not_learned_by_step_800_starts_afresh_once_and_then_runs_to_the_cap():
    progress, scales, restarts = walk(UntilLearned(), lambda *_: 0.2)
    assert restarts == [800]
    assert (progress.attempt, progress.decay_began, progress.step) == (1, 840, 1200)
    assert scales[840] == 1.0
    assert scales[-1] == pytest.approx(1 / 360)


def test_the_second_attempt_sees_other_data_and_can_learn():
    plan = UntilLearned()
    progress, _, restarts = walk(plan, lambda attempt, n: 0.001 if attempt == 1 and n >= 300 else 0.2)
    assert (restarts, progress.decay_began, progress.step) == ([800], 350, 600)
    assert progress.data_step == 1800


def test_an_attempt_that_wanders_near_the_threshold_decays_instead_of_starting_afresh():
    progress, _, restarts = walk(UntilLearned(), lambda _, n: 0.001 if n > 900 else 0.05)
    assert (restarts, progress.decay_began, progress.step) == ([], 800, 1050)


def test_an_attempt_that_ends_above_the_gate_is_followed_by_another():
    progress, _, restarts = walk(UntilLearned(), lambda attempt, n: 0.01 if attempt == 0 else 0.001)
    assert (restarts, progress.attempt, progress.decay_began, progress.step) == ([350], 1, 100, 350)


def test_a_fixed_plan_holds_then_falls_to_zero():
    progress, scales, _ = walk(FixedSteps(steps=36, constant=18), lambda *_: 0.0)
    assert scales[:18] == [1.0] * 18
    assert scales[18:] == pytest.approx([(36 - k) / 18 for k in range(18, 36)])
    assert progress.step == 36


def test_an_impossible_plan_is_refused():
    with pytest.raises(InputError, match="steps"):
        FixedSteps(steps=5, constant=6)
    with pytest.raises(InputError, match="sft"):
        UntilLearned(cap=0)
    with pytest.raises(InputError, match="restart_at"):
        UntilLearned(restart_at=810)
