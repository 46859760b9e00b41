"""Wilson, Newcombe, Fisher, McNemar, Holm, equivalence and the detectable effect: reference values and oracles."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from journeyman.evals.multiple import equivalence, holm
from journeyman.evals.power import detectable_effect, detectable_on_same_tasks, factor, tasks_needed
from journeyman.evals.proportion import fisher_exact, mcnemar_exact, newcombe, wilson


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_equals_statsmodels_and_scipy(case):
    from scipy.stats import binomtest

    statsmodels = pytest.importorskip("statsmodels.stats.proportion")
    count, n = case
    low, high = wilson(count / n, n)
    assert (low, high) == pytest.approx(statsmodels.proportion_confint(count, n, method="wilson"), abs=1e-12)
    assert (low, high) == pytest.approx(tuple(binomtest(count, n).proportion_ci(method="wilson")), abs=1e-12)


def test_wilson_at_the_ends_is_exact_and_still_has_width():
    low, high = wilson(0.0, 20)
    assert low == 0.0 and 0.1 < high < 0.2
    low, high = wilson(1.0, 20)
    assert 0.8 < low < 0.9 and high == 1.0
    assert wilson(0.0, 0) == (0.0, 1.0)
    with pytest.raises(ValueError, match="not in"):
        wilson(1.5, 20)


def test_newcombe_matches_the_published_example_and_never_loses_its_width():
    # Newcombe 1998, table II (b): 9/10 against 3/10, method 10: 0.1705 to 0.8090
    assert newcombe(0.3, 0.9, 10) == pytest.approx((0.1705, 0.8090), abs=5e-5)
    low, high = newcombe(0.0, 1.0, 20)
    assert low < 1.0 and high == pytest.approx(1.0)
    low, high = newcombe(0.0, 0.0, 20)
    assert low < 0.0 < high


def test_fisher_on_error_rates_matches_the_reference():
    assert fisher_exact(12, 480, 27, 480) == pytest.approx(0.020962, abs=1e-6)


@pytest.mark.parametrize(("b", "c", "p"), [(12, 4, 0.076812745), (7, 1, 0.0703125), (3, 3, 1.0), (0, 0, 1.0)])
def test_mcnemar_matches_the_reference_and_is_capped(b, c, p):
    assert mcnemar_exact(b, c) == pytest.approx(p, abs=1e-9)
    assert mcnemar_exact(c, b) == mcnemar_exact(b, c)


def test_holm_matches_the_reference():
    assert holm([0.001, 0.012, 0.03, 0.04, 0.2]) == pytest.approx([0.005, 0.048, 0.09, 0.09, 0.2])
    assert holm([]) == []


@pytest.mark.thorough
@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_equals_statsmodels_in_input_order(p_values):
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    assert holm(p_values) == pytest.approx(list(multitest.multipletests(p_values, method="holm")[1]))


def test_equivalence_matches_the_reference():
    found = equivalence(0.002, 0.004, 59, margin=0.01)
    assert (found.p_lower, found.p_upper, found.p) == pytest.approx((0.001975, 0.025055, 0.025055), abs=1e-6)


@pytest.mark.parametrize(
    ("n", "sd", "effect", "points"),
    [
        (32, 0.5, 1, 24.76),
        (128, 0.5, 1, 12.38),
        (480, 0.5, 1, 6.39),
        (1000, 0.5, 1, 4.43),
        (480, 0.33, 1, 4.22),  # the page prints 4.2
        (480, 0.33, 1.5, 5.17),
    ],
)
def test_detectable_effect_matches_the_reference(n, sd, effect, points):
    assert factor() == pytest.approx(2.8015852, abs=1e-7)
    assert 100 * detectable_effect(sd, n, design_effect=effect) == pytest.approx(points, abs=0.005)


def test_three_points_at_a_spread_of_a_half_need_2181_tasks():
    assert tasks_needed(0.03, 0.5) == 2181


@pytest.mark.parametrize(("n", "runs", "low", "high"), [(480, 1, 5.4, 5.8), (480, 3, 3.1, 3.4), (480, 8, 1.9, 2.1)])
def test_noise_of_a_rerun_on_the_same_tasks_matches_the_reference(n, runs, low, high):
    found = [100 * detectable_on_same_tasks(variance, n, runs) for variance in (0.0885, 0.1046)]
    assert found == pytest.approx([low, high], abs=0.06)
