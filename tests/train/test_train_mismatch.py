"""Mismatch figures against the page's reference values, and what must not enter them."""

from __future__ import annotations

import math
from itertools import chain

import numpy as np
import pytest
from train_loss_columns import MU, OLD, PI, SEQUENCE_OF, flat, page_inputs

from journeyman.errors import InputError
from journeyman.train.losses import policy_loss
from journeyman.train.mismatch import drops, mismatch

ON = np.ones(9)
# The reference package adds 1e-8 to each denominator: it agrees to 1e-8, the definitions to the last bit.
REFERENCE = {
    "k1": -0.042888536,
    "k3": 0.148284303,
    "ppl_ratio": 1.145156379,
    "log_ppl_diff": 0.061625396,
    "log_ppl_abs_diff": 0.322504899,
    "chi2_token": 0.899067522,
    "chi2_sequence": 6.949591120,
    "trainer_log_ppl": 1.651076155,
    "rollout_log_ppl": 1.589450758,
}


def test_the_figures_equal_the_reference_values():
    got = mismatch(flat(MU), flat(OLD), ON, SEQUENCE_OF)
    for name, value in REFERENCE.items():
        assert getattr(got, name) == pytest.approx(value, abs=1e-8), name
    w = [o / m for o, m in zip(chain(*OLD), chain(*MU), strict=True)]
    assert got.k1 == pytest.approx(-sum(map(math.log, w)) / 9, abs=1e-12)
    assert got.k3 == pytest.approx(sum(r - math.log(r) - 1 for r in w) / 9, abs=1e-12)
    assert got.chi2_token == pytest.approx(sum(r * r for r in w) / 9 - 1, abs=1e-12)
    gaps = np.abs(flat(MU).numpy() - flat(OLD).numpy())
    assert (got.abs_mean, got.abs_max, got.abs_min) == pytest.approx((gaps.mean(), gaps.max(), gaps.min()))
    assert got.abs_std == pytest.approx(gaps.std())
    assert got.tokens == 9


def test_equal_logprobs_have_no_mismatch():
    got = mismatch(flat(MU), flat(MU), ON, SEQUENCE_OF)
    assert (got.abs_mean, got.k1, got.k3, got.chi2_token, got.chi2_sequence, got.ppl_ratio) == (0, 0, 0, 0, 0, 1)


def test_padding_and_given_tokens_do_not_count():
    mu, old = flat(MU).numpy(), flat(OLD).numpy()
    where = [0, 3, 5]
    spread = [np.insert(column, where, value) for column, value in ((mu, np.nan), (old, -1e9), (ON, 0))]
    sequence_of = np.insert(np.array(SEQUENCE_OF), where, 7)
    assert mismatch(*spread, sequence_of) == mismatch(mu, old, ON, SEQUENCE_OF)


def test_what_a_trust_region_dropped_is_told_by_sign_and_by_how_far_it_had_moved():
    inputs = page_inputs("token")
    kept = policy_loss("dppo_tv", **inputs).kept.numpy()
    mu, pi, advantages = flat(MU).numpy(), flat(PI).numpy(), inputs["advantages"].numpy()
    expected = [(0.5, 0, 0.003089, 1.695764), (0, 0.5, 0.809438, 0.122330), (0, 0, 0.064516, 0)]
    for sequence, (high, low, kept_k3, dropped_k3) in enumerate(expected):
        got = drops(mu, pi, np.array(SEQUENCE_OF) == sequence, advantages, kept)
        assert (got.high, got.low, got.share) == (high, low, high + low)
        assert (got.kept_k3, got.dropped_k3) == pytest.approx((kept_k3, dropped_k3), abs=1e-6)


def test_a_token_without_advantage_counts_neither_as_kept_nor_as_dropped():
    got = drops([-1.0, -1.0], [-3.0, -1.0], [1, 1], [0.0, 1.0], [False, True])
    assert (got.tokens, got.share, got.kept_k3) == (1, 0, 0)
    assert drops([-1.0], [-3.0], [1], [0.0], [False]).tokens == 0


def test_nothing_compared_is_not_a_number_and_unequal_columns_are_refused():
    assert math.isnan(mismatch([-1.0], [-1.0], [0], [0]).abs_mean)
    with pytest.raises(InputError, match="mismatch"):
        mismatch([-1.0], [-1.0, -2.0], [1], [0])
