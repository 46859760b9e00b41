"""pass@k, pass^k, best-of-n and retry@k against the reference tables and by enumeration."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from journeyman.evals.passk import best_of_n, pass_at_k, pass_hat_k, retry_at_k


@pytest.mark.parametrize(
    ("n", "c", "k", "at", "hat"),
    [
        (8, 3, 1, 0.375, 0.375),
        (8, 3, 4, 0.928571429, 0),
        (8, 3, 6, 1, 0),
        (8, 0, 4, 0, 0),
        (8, 8, 4, 1, 1),
        (10, 4, 3, 0.833333333, 0.033333333),
        (10, 7, 3, 0.991666667, 0.291666667),
        (5, 1, 3, 0.6, 0),
        (20, 1, 10, 0.5, 0),
    ],
)
def test_reference_table(n, c, k, at, hat):
    assert pass_at_k(n, c, k) == pytest.approx(at, abs=1e-9)
    assert pass_hat_k(n, c, k) == pytest.approx(hat, abs=1e-9)


@given(st.integers(1, 10).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))))
def test_both_equal_the_share_of_subsets(case):
    n, c, k = case
    subsets = list(combinations([True] * c + [False] * (n - c), k))
    assert pass_at_k(n, c, k) == pytest.approx(sum(map(any, subsets)) / len(subsets))
    assert pass_hat_k(n, c, k) == pytest.approx(sum(map(all, subsets)) / len(subsets))


@given(st.integers(1, 40).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))))
def test_pass_at_k_rises_and_pass_hat_k_falls_from_the_same_start(case):
    n, c = case
    at, hat = ([f(n, c, k) for k in range(1, n + 1)] for f in (pass_at_k, pass_hat_k))
    assert at[0] == pytest.approx(c / n) and hat[0] == pytest.approx(c / n)
    assert all(x <= y + 1e-12 for x, y in pairwise(at))
    assert all(x >= y - 1e-12 for x, y in pairwise(hat))


def test_more_trials_asked_for_than_were_graded_is_refused():
    for estimator in (pass_at_k, pass_hat_k):
        with pytest.raises(ValueError, match="n=3, c=1, k=4"):
            estimator(3, 1, 4)


def test_five_trials_mean_anything_from_thirty_to_eighty_three_percent():
    assert pytest.approx(0.831930, abs=1e-6) == 1 - 0.7**5
    assert retry_at_k(0.3, tpr=1, fpr=0, k=5) == pytest.approx((0.831930, 2.7731), abs=1e-6)
    assert retry_at_k(0.3, tpr=0.9, fpr=0.2, k=5) == pytest.approx((0.615091, 2.264653), abs=1e-6)
    assert retry_at_k(0.3, tpr=1, fpr=1, k=5) == pytest.approx((0.300000, 1.0), abs=1e-9)
    rng = np.random.default_rng(0)
    solved = rng.random(200_000) < 0.3
    opinion = rng.normal(solved.astype(float), 1)
    assert best_of_n(opinion, solved, 5) == pytest.approx(
        0.552083, abs=0.005
    )  # 200,000 trials: about 3 standard errors


@given(
    st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=1, max_size=7).flatmap(
        lambda trials: st.tuples(st.just(trials), st.integers(1, len(trials)))
    )
)
def test_best_of_n_equals_the_mean_over_subsets_with_ties_at_random(case):
    trials, n = case
    picks = []
    for subset in combinations(trials, n):
        top = max(opinion for opinion, _ in subset)
        tied = [score for opinion, score in subset if opinion == top]
        picks.append(sum(tied) / len(tied))
    found = best_of_n([opinion for opinion, _ in trials], [score for _, score in trials], n)
    assert found == pytest.approx(sum(picks) / len(picks))
