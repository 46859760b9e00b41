"""Sign flips, the verdict word, and the bootstrap that checks them."""

from __future__ import annotations

import numpy as np
import pytest
from evals_reference_sets import WORLDS, A, B, large_set

from journeyman.evals.clustered import world_sums
from journeyman.evals.paired import sign_flip, verdict_word
from journeyman.evals.resample import bootstrap_mean, bootstrap_ratio


def test_sign_flip_of_set_s_is_exact_and_a_quarter():
    differences = B.mean(1) - A.mean(1)
    assert world_sums(differences, WORLDS) == pytest.approx([2 / 3, 0, 1 / 3, 2 / 3])
    flips = sign_flip(differences, WORLDS)
    assert flips is not None
    assert (flips.p, flips.exact) == (0.25, True)


def test_sign_flip_of_set_l_is_sampled_and_near_the_reference():
    worlds, a, b = large_set()
    flips = sign_flip(b.mean(1) - a.mean(1), worlds)
    assert flips is not None and not flips.exact
    assert flips.p == pytest.approx(0.438, abs=0.02)  # 10,000 flips: standard error 0.005, another generator order
    assert sign_flip(b.mean(1) - a.mean(1), worlds) == flips


def test_with_four_worlds_no_exact_p_is_below_an_eighth():
    flips = sign_flip(np.ones(4), range(4))
    assert flips is not None and flips.p == 0.125


def test_fifteen_worlds_are_sampled_and_fourteen_enumerated():
    fourteen, fifteen = sign_flip(np.ones(14), range(14)), sign_flip(np.ones(15), range(15))
    assert fourteen is not None and (fourteen.p, fourteen.exact) == (2 / 2**14, True)
    assert fifteen is not None and not fifteen.exact and fifteen.p < 0.001


def test_no_difference_at_all_has_p_one_and_no_task_has_none():
    flips = sign_flip(np.zeros(5), range(5))
    assert flips is not None and flips.p == 1.0
    assert sign_flip([], []) is None


@pytest.mark.parametrize(
    ("value", "low", "high", "word"),
    [
        (0.30, 0.10, 0.50, "B"),
        (-0.30, -0.50, -0.10, "A"),
        (0.30, -0.01, 0.61, "tie"),
        (0.009, 0.001, 0.017, "tie"),
        (0.30, None, None, "tie"),
        (None, None, None, "tie"),
        (0.30, 0.0, 0.60, "tie"),
    ],
)
def test_the_word_is_a_tie_unless_the_interval_excludes_zero_and_the_gain_is_a_point(value, low, high, word):
    assert verdict_word(value, low, high) == word


def test_cluster_bootstrap_of_set_l_agrees_with_the_reference():
    worlds, a, b = large_set()
    drawn = bootstrap_mean(b.mean(1) - a.mean(1), worlds, n_draws=4_000)
    assert drawn.value == pytest.approx(0.013194, abs=1e-6)
    assert drawn.se == pytest.approx(0.01591, abs=0.0006)  # 4,000 draws: relative error about 1 %
    assert (drawn.low, drawn.high) == pytest.approx((-0.0181, 0.0438), abs=0.003)


def test_bca_on_cluster_sums_agrees_with_the_reference():
    from scipy.stats import bootstrap

    worlds, a, b = large_set()
    sums = world_sums(b.mean(1) - a.mean(1), worlds)
    found = bootstrap((sums / 8,), np.mean, method="BCa", n_resamples=4_000, rng=np.random.default_rng(0))
    assert tuple(found.confidence_interval) == pytest.approx((-0.0174, 0.0444), abs=0.003)


def test_a_ratio_whose_denominator_vanishes_in_some_draws_says_how_often():
    drawn = bootstrap_ratio([1.0, 1.0, 1.0], [0.0, 0.0, 1.0], ["a", "b", "c"], n_draws=2_000)
    assert drawn.value == 3.0
    assert drawn.infinite_share == pytest.approx((2 / 3) ** 3, abs=0.04)
    assert drawn.high == float("inf")
    none_solved = bootstrap_ratio([1.0, 1.0], [0.0, 0.0], ["a", "b"], n_draws=10)
    assert none_solved.value == float("inf") and none_solved.infinite_share == 1.0
