from __future__ import annotations

import math

import pytest

from journeyman.tokens import logprob_gap


def test_the_gap_is_measured_over_masked_tokens_only() -> None:
    gap = logprob_gap([-1.0, -2.0, -9.0], [-1.5, -2.0, -1.0], [1, 1, 0])
    assert (gap.mean, gap.max, gap.n) == (0.25, 0.5, 2)
    assert gap.q99 == pytest.approx(0.495)


def test_a_stale_version_cannot_hide_in_the_mean() -> None:
    engine, trainer = [-1.0] * 100, [-1.0] * 99 + [-1.02]
    versions = [3] * 99 + [2]
    gap = logprob_gap(engine, trainer, [1] * 100, versions)
    assert gap.mean < 1e-3
    assert gap.by_version[2].mean == pytest.approx(0.02)
    assert not gap.within(1e-3)
    assert logprob_gap(engine, trainer, [1] * 100).within(1e-3)


def test_a_high_quantile_and_a_maximum_have_their_own_limits() -> None:
    gap = logprob_gap([0.0, 0.0], [0.0, -0.02], [1, 1])
    assert gap.within(0.01)
    assert not gap.within(0.01, max=0.01)
    assert not gap.within(0.01, q99=0.01)


@pytest.mark.parametrize("bad", [math.nan, -math.inf])
def test_a_value_that_is_no_number_never_passes(bad: float) -> None:
    assert not logprob_gap([bad], [-1.0], [1]).within(math.inf, max=1e9)


def test_nothing_to_compare_is_an_error_and_not_a_pass() -> None:
    with pytest.raises(ValueError, match="no token"):
        logprob_gap([-1.0], [-1.0], [0])
    with pytest.raises(ValueError, match="shapes"):
        logprob_gap([-1.0], [-1.0, -2.0], [1])
