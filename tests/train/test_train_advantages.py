"""Advantages against the reference values and the Groups that teach nothing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from journeyman.errors import InputError
from journeyman.train.advantages import ADVANTAGES, group_advantages, live, process_advantages

REWARDS, GROUPS = [1, 0, 0.5, 0], ["a", "a", "b", "b"]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("grpo", [0.7071058, -0.7071058, 0.7071047, -0.7071047]),
        ("grpo_nostd", [0.5, -0.5, 0.25, -0.25]),
        ("rloo", [1, -1, 0.5, -0.5]),
        ("leave_one_out", [1.4142116, -1.4142116, 1.4142096, -1.4142096]),
        ("maxrl", [0.999998, -0.999998, 0.999996, -0.999996]),
    ],
)
def test_advantages_equal_the_reference_values(kind, expected):
    assert group_advantages(kind, REWARDS, GROUPS).tolist() == pytest.approx(expected, abs=1e-7)
    assert ADVANTAGES[kind](REWARDS, GROUPS).tolist() == group_advantages(kind, REWARDS, GROUPS).tolist()


def test_rloo_is_the_reward_against_the_mean_of_the_others():
    rewards = [1.0, 0.25, 0.0, 0.5]
    others = [(sum(rewards) - r) / 3 for r in rewards]
    expected = [r - o for r, o in zip(rewards, others, strict=True)]
    assert group_advantages("rloo", rewards, [7] * 4).tolist() == pytest.approx(expected)
    std = np.std(rewards, ddof=1) + 1e-6
    assert group_advantages("leave_one_out", rewards, [7] * 4) == pytest.approx(np.array(expected) / std)


def test_a_penalty_changes_the_order_inside_a_group_but_wakes_no_group_of_equal_rewards():
    rewards, groups, penalties = [1, 1, 0, 1, 1], [0, 0, 0, 1, 1], [0.0, 0.3, 0.0, 0.0, 0.9]
    got = group_advantages("grpo_nostd", rewards, groups, penalties=penalties)
    assert got.tolist() == pytest.approx([1 - 1.7 / 3, 0.7 - 1.7 / 3, -1.7 / 3, 0, 0])
    assert group_advantages("maxrl", [1, 0], [0, 0], penalties=[2.0, 0.0]).tolist() == pytest.approx([-1, 1], abs=1e-5)


def test_a_step_answers_for_what_follows_it_in_its_trial():
    got = process_advantages([[1, 0], [0, 0, 1]], [5, 5], scale=False)
    assert [a.tolist() for a in got] == [pytest.approx([0.2, -0.4]), pytest.approx([-0.2, 0.2, 0.6])]
    scaled = process_advantages([[1, 0], [0, 0, 1]], [5, 5])
    std = np.std([1, 0, 0, 0, 1], ddof=1) + 1e-6
    assert scaled[1] == pytest.approx(got[1] / std)


def test_one_judged_step_for_each_trial_is_the_advantage_of_its_outcome():
    rewards, groups = [1, 0, 0.5, 0, 0], [0, 0, 1, 1, 1]
    by_step = process_advantages([[r] for r in rewards], groups)
    assert np.concatenate(by_step).tolist() == group_advantages("grpo", rewards, groups).tolist()
    assert [a.tolist() for a in process_advantages([[], [1, 1]], [0, 0])] == [[], [0, 0]]
    assert process_advantages([], []) == []
    with pytest.raises(InputError, match="groups"):
        process_advantages([[1.0]], [0, 0])


@pytest.mark.parametrize("kind", ADVANTAGES)
def test_a_group_of_one_or_of_equal_rewards_has_no_advantage(kind):
    got = group_advantages(kind, [0.1, 0.1, 0.1, 1.0, 0.0, 1.0], [0, 0, 0, 1, 2, 2])
    assert got[:4].tolist() == [0, 0, 0, 0]
    assert got[4] < 0 < got[5]
    assert live([0.1, 0.1, 0.1, 1.0, 0.0, 1.0], [0, 0, 0, 1, 2, 2]).tolist() == [False] * 4 + [True] * 2


@given(st.lists(st.tuples(st.sampled_from([0.0, 0.5, 1.0]), st.integers(0, 3)), min_size=1, max_size=20))
def test_advantages_sum_to_zero_in_every_group_and_follow_the_reward(rows):
    rewards, groups = np.array([r for r, _ in rows]), np.array([g for _, g in rows])
    for kind in ADVANTAGES:
        got = group_advantages(kind, rewards, groups)
        for g in set(groups.tolist()):
            of_group = groups == g
            assert got[of_group].sum() == pytest.approx(0, abs=1e-9)
            assert (np.argsort(rewards[of_group], kind="stable") == np.argsort(got[of_group], kind="stable")).all()


def test_an_errored_trial_cannot_enter_a_baseline():
    with pytest.raises(InputError, match=r"rewards\[1\]"):
        group_advantages("grpo", [1.0, float("nan")], [0, 0])
    with pytest.raises(InputError, match="did you mean grpo"):
        group_advantages("grp", [1.0], [0])
