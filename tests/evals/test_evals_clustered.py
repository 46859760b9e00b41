"""The mean of one system: reference sets S and L, statsmodels as oracle, and what happens at the edges."""

from __future__ import annotations

import math

import numpy as np
import pytest
from evals_reference_sets import WORLDS, A, B, large_set
from hypothesis import given, settings
from hypothesis import strategies as st

from journeyman.evals.clustered import clustered_mean, t_p_value, variance_split
from journeyman.evals.paired import paired_difference


@pytest.mark.parametrize(
    ("values", "mean", "se_iid", "se_cluster", "design_effect", "low", "high"),
    [
        (A.mean(1), 0.388888889, 0.107256367, 0.137544938, 1.644535, -0.048840, 0.826618),
        (B.mean(1), 0.527777778, 0.119329872, 0.167479158, 1.969805, -0.005216, 1.060771),
        (B.mean(1) - A.mean(1), 0.138888889, 0.064332016, 0.063590734, 0.977087, -0.063485, 0.341263),
    ],
)
def test_set_s_has_the_reference_mean_errors_and_interval(values, mean, se_iid, se_cluster, design_effect, low, high):
    found = clustered_mean(values, WORLDS)
    assert found.mean == pytest.approx(mean, abs=1e-9)
    assert found.se_iid == pytest.approx(se_iid, abs=1e-9)
    assert found.se_cluster == pytest.approx(se_cluster, abs=1e-9)
    assert found.design_effect == pytest.approx(design_effect, abs=1e-6)
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-6)
    assert (found.n, found.n_worlds) == (12, 4)
    assert "few worlds" in found.interval


def test_set_l_has_the_reference_figures():
    worlds, a, b = large_set()
    one, both = clustered_mean(a.mean(1), worlds), paired_difference(a.mean(1), b.mean(1), worlds)
    assert one.mean == pytest.approx(0.386111, abs=1e-6)
    assert b.mean() == pytest.approx(0.399306, abs=1e-6)
    assert (one.se_iid, one.se_cluster) == pytest.approx((0.016094, 0.032711), abs=1e-6)
    assert one.design_effect == pytest.approx(4.131, abs=1e-3)
    assert round(one.n_effective or 0) == 116
    assert both.mean == pytest.approx(0.013194, abs=1e-6)
    assert both.se_cluster == pytest.approx(0.016045745, abs=1e-9)
    assert both.se_iid == pytest.approx(0.014978, abs=1e-6)
    assert (both.low, both.high) == pytest.approx((-0.018913, 0.045302), abs=1e-6)
    assert t_p_value(both.mean / both.se_cluster, 59) == pytest.approx(0.414216, abs=1e-6)
    assert "few worlds" not in one.interval


@pytest.mark.parametrize(
    ("values", "t_p"), [(B.mean(1) - A.mean(1), 0.116898)], ids=["the difference of set S has t p 0.116898"]
)
def test_t_p_value_matches_the_reference(values, t_p):
    found = clustered_mean(values, WORLDS)
    assert t_p_value(found.mean / found.se_cluster, found.n_worlds - 1) == pytest.approx(t_p, abs=1e-6)


def test_variance_splits_into_trials_and_tasks_as_in_the_reference():
    small, large = variance_split(A), variance_split(large_set()[1])
    assert (small.within, small.between) == pytest.approx((0.166666667, 0.082491582), abs=1e-9)
    assert (large.within, large.between) == pytest.approx((0.169444, 0.067844), abs=1e-6)
    errors = [large.standard_error(480, k) for k in (1, 3, 8)]
    assert errors == pytest.approx([0.022234, 0.016094, 0.013619], abs=1e-6)


def test_one_task_per_world_is_the_plain_standard_error():
    values = A.mean(1)
    found = clustered_mean(values, range(12))
    assert found.se_cluster == pytest.approx(found.se_iid, abs=1e-15)
    assert found.se_iid == pytest.approx(values.std(ddof=1) / math.sqrt(12), abs=1e-15)


def test_one_world_has_a_mean_and_no_interval():
    found = clustered_mean([0.0, 1.0, 1.0], ["w"] * 3)
    assert found.mean == pytest.approx(2 / 3)
    assert (found.se_cluster, found.low, found.high) == (None, None, None)
    assert found.interval == "no interval: one world"


def test_nothing_graded_has_no_mean():
    found = clustered_mean([], [])
    assert (found.mean, found.n, found.low) == (None, 0, None)


def test_a_value_that_is_not_finite_is_refused():
    with pytest.raises(ValueError, match="not finite"):
        clustered_mean([0.0, math.nan], ["a", "b"])
    with pytest.raises(ValueError, match="world labels"):
        clustered_mean([0.0, 1.0], ["a"])


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_the_clustered_error_equals_statsmodels_on_any_data(data):
    sm = pytest.importorskip("statsmodels.api")
    sizes = data.draw(st.lists(st.integers(1, 6), min_size=2, max_size=12))
    values = np.array(data.draw(st.lists(st.floats(0, 1), min_size=sum(sizes), max_size=sum(sizes))))
    worlds = np.repeat(np.arange(len(sizes)), sizes)
    found = clustered_mean(values, worlds)
    if len(values) < 3:
        return
    fit = sm.OLS(values, np.ones(len(values))).fit()
    # the factor (n-1)/(n-k) of its correction is 1 for one regressor
    oracle = fit.get_robustcov_results("cluster", groups=worlds, use_t=True)
    assert found.se_cluster == pytest.approx(float(oracle.bse[0]), abs=1e-9)
    assert (found.low, found.high) == pytest.approx(tuple(oracle.conf_int()[0]), abs=1e-8)


@pytest.mark.slow
def test_the_interval_covers_the_truth_as_often_as_it_says():
    rng = np.random.default_rng(11)
    worlds, covered = np.repeat(np.arange(24), 5), 0
    for _ in range(2_000):
        effect = np.repeat(rng.normal(0, 0.1, 24), 5)  # varies by world, mean 0
        base = np.repeat(rng.beta(2, 3, 24), 5)
        a = (rng.random((120, 3)) < np.clip(base, 0, 1)[:, None]).mean(1)
        b = (rng.random((120, 3)) < np.clip(base + effect, 0, 1)[:, None]).mean(1)
        found = paired_difference(a, b, worlds)
        covered += found.low <= 0 <= found.high
    assert 0.93 <= covered / 2_000 <= 0.97
