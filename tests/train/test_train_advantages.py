"""Advantages against the reference values and the Groups that teach nothing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from journeyman.errors import InputError
from journeyman.train.advantages import ADVANTAGES, group_advantages, live

REWARDS, GROUPS = [1, 0, 0.5, 0], ["a", "a", "b", "b"]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("grpo", [0.7071058, -0.7071058, 0.7071047, -0.7071047]),
        ("grpo_nostd", [0.5, -0.5, 0.25, -0.25]),
        ("rloo", [1, -1, 0.5, -0.5]),
        ("maxrl", [0.999998, -0.999998, 0.999996, -0.999996]),
    ],
)
def test_advantages_equal_the_reference_values(kind, expected):
    assert group_advantages(kind, REWARDS, GROUPS).tolist() == pytest.approx(expected, abs=1e-7)


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
