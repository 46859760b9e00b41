"""The recipe's switches: what each changes, and that off means untouched."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pydantic import ValidationError

from journeyman.errors import InputError
from journeyman.harness.spec import HarnessSpec
from journeyman.train.advantages import group_advantages
from journeyman.train.reductions import token_weights
from journeyman.train.switches import (
    LengthPenalty,
    Switches,
    evaluation_harness,
    kept_rows,
    length_penalties,
    training_harness,
)

SPEC = HarnessSpec("plain", "react", "You work.")


def test_the_nudge_is_for_training_and_evaluation_never_has_it():
    nudged = training_harness(SPEC, Switches(context_nudge=True, nudge_share=0.7))
    assert (nudged.nudge, nudged.nudge_share) == (True, 0.7)
    assert evaluation_harness(nudged).nudge is False
    assert training_harness(nudged, Switches()).nudge is False
    assert replace(nudged, nudge=False, nudge_share=0.8) == SPEC


def test_filtered_overlong_trials_leave_the_loss_but_stay_in_the_baseline():
    rewards, cut = [1.0, 0.0, 0.0], [False, False, True]
    advantages = group_advantages("grpo_nostd", rewards, [0, 0, 0])
    rows = list(zip(advantages.tolist(), "abc", strict=True))
    kept = kept_rows(rows, cut, Switches(overlong="filter"))
    assert kept == [(pytest.approx(2 / 3), "a"), (pytest.approx(-1 / 3), "b")]
    assert kept_rows(rows, cut, Switches()) == rows
    with pytest.raises(InputError, match="truncated"):
        kept_rows(rows, cut[:2], Switches())


def test_filtered_trials_do_not_shrink_the_step():
    import torch

    sequence_of = torch.tensor([0, 0, 1])  # what is left of three trials of two prompts
    weights = token_weights("prompt", mask=torch.ones(3), sequence_of=sequence_of, prompt_of=torch.tensor([4, 4]))
    assert weights.sum().item() == pytest.approx(1)


def test_generated_and_environment_tokens_cost_by_their_own_coefficients_and_more_where_the_task_is_solved():
    penalty = LengthPenalty(generated=0.2, environment=0.1, budget_tokens=1000, floor=0.25)
    rewards, groups = [1, 1, 0, 0], [0, 0, 1, 1]
    got = length_penalties(rewards, groups, [1000, 0, 1000, 0], [0, 500, 0, 500], penalty)
    assert got.tolist() == pytest.approx([0.2, 0.05, 0.05, 0.0125])
    assert length_penalties(rewards, groups, [9] * 4, [9] * 4, None).tolist() == [0, 0, 0, 0]
    generated_only = LengthPenalty(generated=0.2, budget_tokens=1000)
    assert length_penalties([1], [0], [500], [10**6], generated_only).tolist() == pytest.approx([0.1])
    with pytest.raises(InputError, match="length_penalties"):
        length_penalties(rewards, groups, [1], [1], penalty)


def test_a_length_penalty_alone_never_makes_a_group_teach():
    penalty = LengthPenalty(generated=0.5, budget_tokens=10)
    costs = length_penalties([1, 1], [0, 0], [10, 1], [0, 0], penalty)
    assert group_advantages("grpo", [1, 1], [0, 0], penalties=costs).tolist() == [0, 0]


def test_everything_is_off_by_default_and_an_unknown_switch_is_refused():
    off = Switches()
    assert (off.context_nudge, off.overlong, off.length_penalty, off.kv_on_update) == (False, "train", None, "keep")
    assert Switches(kv_on_update="recompute").kv_on_update == "recompute"
    with pytest.raises(ValidationError, match="curriculum"):
        Switches(curriculum=True)
    with pytest.raises(ValidationError, match="kv_on_update"):
        Switches(kv_on_update="reset")
