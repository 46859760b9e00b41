"""DPPO over the rollout's k likeliest tokens: hand-computed buckets, the sign rule, and what is refused."""

from __future__ import annotations

import math

import pytest
import torch
from train_loss_columns import gradient, single

from journeyman.errors import InputError
from journeyman.train.losses import policy_loss
from journeyman.train.losses.dppo_topk import bucket_divergence

P = [0.5, 0.2, 0.1]
Q = [0.62, 0.1, 0.08]


def logs(row):
    return torch.tensor([row], dtype=torch.float64).log()


def topk(mu, pi, advantage, p=P, q=Q):
    return {**single(mu, pi, advantage), "topk_logp_rollout": logs(p), "topk_logp_new": logs(q)}


def test_the_rest_bucket_counts_in_both_divergences():
    tv = (0.12 + 0.1 + 0.02 + abs(0.2 - 0.2)) / 2
    assert bucket_divergence(logs(P), logs(Q), "tv").item() == pytest.approx(tv, abs=1e-12)
    q = [0.5, 0.1, 0.1]  # what the second token lost went to the rest
    tv = (0.1 + 0.1) / 2
    assert bucket_divergence(logs(P), logs(q), "tv").item() == pytest.approx(tv, abs=1e-12)
    kl = 0.2 * math.log(0.2 / 0.1) + 0.2 * math.log(0.2 / 0.3)
    assert bucket_divergence(logs(P), logs(q), "kl").item() == pytest.approx(kl, abs=1e-12)


def test_one_bucket_is_the_binary_divergence_and_a_whole_distribution_has_an_empty_rest():
    binary = 0.9 * math.log(0.9 / 0.7) + 0.1 * math.log(0.1 / 0.3)
    assert bucket_divergence(logs([0.9]), logs([0.7]), "kl").item() == pytest.approx(binary, abs=1e-12)
    assert bucket_divergence(logs([0.9]), logs([0.7]), "tv").item() == pytest.approx(0.2, abs=1e-12)
    whole = bucket_divergence(logs([0.6, 0.4]), logs([0.5, 0.5]), "kl").item()
    assert whole == pytest.approx(0.6 * math.log(1.2) + 0.4 * math.log(0.8), abs=1e-9)


@pytest.mark.parametrize(
    ("mu", "pi", "advantage", "params", "kept"),
    [
        (0.5, 0.62, 1, {}, True),  # tv .12
        (0.5, 0.62, 1, {"delta_high": 0.1}, False),
        (0.5, 0.62, -1, {"delta_low": 0.1}, True),  # moves back toward the rollout
        (0.2, 0.1, -1, {"delta_low": 0.1}, False),
        (0.2, 0.1, -1, {"delta_high": 0.1}, True),
        (0.2, 0.1, 1, {"delta_high": 0.1}, True),
        (0.5, 0.62, 1, {"divergence": "kl"}, False),  # kl .0534
        (0.5, 0.62, 1, {"divergence": "kl", "delta_high": 0.06}, True),
        (0.5, 0.62, 0, {"delta_high": 0.1}, True),
    ],
)
def test_a_token_is_dropped_where_the_distribution_moved_far_with_the_gradient(mu, pi, advantage, params, kept):
    output, grad = gradient("dppo_topk", topk(mu, pi, advantage), **params)
    assert output.kept.item() is kept
    assert grad.item() == pytest.approx(-pi / mu * advantage * kept, abs=1e-12)
    assert output.loss.item() == pytest.approx(-pi / mu * advantage * kept, abs=1e-12)


@pytest.mark.parametrize(("divergence", "below", "above"), [("tv", 0.69, 0.71), ("kl", 0.646, 0.66)])
def test_the_default_delta_is_that_of_the_divergence(divergence, below, above):
    for pi, kept in ((below, True), (above, False)):
        # one bucket: tv = pi - .5 against .2, kl = .05 at pi = .654
        inputs = topk(0.5, pi, 1, p=[0.5], q=[pi])
        assert policy_loss("dppo_topk", **inputs, divergence=divergence).kept.item() is kept


def test_no_old_logprobs_are_needed_and_no_gradient_flows_into_the_divergence():
    inputs = {**topk(0.5, 0.62, 1), "logp_old": None}
    inputs["topk_logp_new"].requires_grad_()
    output = policy_loss("dppo_topk", **inputs, divergence="kl", delta_high=0.2)
    output.loss.backward()
    assert inputs["topk_logp_new"].grad is None
    assert inputs["logp_new"].grad.item() == pytest.approx(-1.24)


def test_the_columns_are_demanded_checked_and_taken_by_this_loss_only():
    inputs = topk(0.5, 0.62, 1)
    missing = {key: column for key, column in inputs.items() if key != "topk_logp_new"}
    with pytest.raises(InputError, match=r"topk_logp_new.*missing"):
        policy_loss("dppo_topk", **missing)
    with pytest.raises(InputError, match=r"topk_logp_new.*shape"):
        policy_loss("dppo_topk", **{**inputs, "topk_logp_new": logs(Q[:2])})
    with pytest.raises(InputError, match=r"dppo_tv\.topk_logp_rollout"):
        policy_loss("dppo_tv", **inputs)
    with pytest.raises(InputError, match=r"dppo_topk\.divergence"):
        policy_loss("dppo_topk", **inputs, divergence="js")
