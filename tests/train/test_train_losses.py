"""Losses against the reference vectors (training.md sections 5-7) and the properties every loss must have."""

from __future__ import annotations

import math

import pytest
import torch
from train_loss_columns import MU, OLD, flat, gradient, page_inputs, random_inputs, single, weigh

from journeyman.errors import InputError
from journeyman.train.losses import CORRECTIONS, LOSSES, policy_loss, resolve_loss

TV_TOKEN = [-0.122222222, -0.117283951, 0, 0, 0, 0.022222222, -0.027777778, -0.057142857, -0.055555556]
TV_SEQUENCE = [-0.091666667, -0.087962963, 0, 0, 0, 0.033333333, -0.027777778, -0.057142857, -0.055555556]
TV_PROMPT = [-0.091666667, -0.087962963, 0, 0, 0, 0.016666667, -0.041666667, -0.085714286, -0.083333333]
PPO_TOKEN = [-0.117521368, -0.114734300, 0, -0.128395062, 0, 0, -0.030864198, -0.057142857, -0.054200542]
CISPO_TOKEN = [-0.117521368, -0.114734300, -0.222222222, -0.128395062, 0.077777778, 0.055555556]
SAPO_SEQUENCE = [-0.088067724, -0.086027854, -0.131074622, -0.095716104, 0.113819801, 0.077844985]
SAPO_SEQUENCE += [-0.029388849, -0.057131197, -0.054192482]
GSPO = {"eps_low": 0.2, "eps_high": 0.2}

# name, parameters, correction, reduction, loss, gradient by token
VECTORS = [
    ("dppo_tv", {}, "none", "token", -0.357760141, TV_TOKEN),
    ("dppo_tv", {}, "none", "sequence", -0.286772487, TV_SEQUENCE),
    ("dppo_tv", {}, "none", "prompt", -0.373677249, TV_PROMPT),
    ("dppo_tv", {"delta_low": 0.15, "delta_high": 0.15}, "none", "token", -0.357760141, TV_TOKEN),
    ("glm5", {}, "none", "token", 0.148761549, [*TV_TOKEN[:5], 0, 0, *TV_TOKEN[7:]]),
    ("ppo", {}, "none", "token", -0.458413881, PPO_TOKEN),
    ("ppo", {}, "icepop_mask", "token", -0.413969437, PPO_TOKEN),
    ("ppo", {}, "product_seq_mask", "token", -0.142207597, [0] * 6 + PPO_TOKEN[6:]),
    ("gspo", GSPO, "none", "sequence", -0.270504062, [0] * 6 + [-0.045723576] * 3),
    ("cispo", {}, "none", "token", 0.140247882, CISPO_TOKEN + PPO_TOKEN[6:]),
    ("sapo", {}, "none", "sequence", -0.569559968, SAPO_SEQUENCE),
]


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-9), (torch.float32, 2e-6)])
@pytest.mark.parametrize(("name", "params", "correction", "reduction", "loss", "expected"), VECTORS)
def test_a_loss_equals_its_reference_vector(name, params, correction, reduction, loss, expected, dtype, tolerance):
    inputs = page_inputs(reduction, dtype)
    output, grad = gradient(name, inputs, correction=correction, **params)
    assert output.loss.dtype == dtype
    assert output.loss.item() == pytest.approx(loss, abs=tolerance)
    assert grad.tolist() == pytest.approx(expected, abs=tolerance)


def test_the_logp_form_has_the_gradient_of_the_ratio_form_and_the_value_of_the_page():
    inputs = page_inputs("token")
    output, grad = gradient("dppo_tv", inputs)
    assert (grad * inputs["logp_new"].detach()).sum().item() == pytest.approx(0.074619843, abs=1e-9)
    ratio_glm5 = gradient("glm5", inputs)[1].sum().item()
    assert ratio_glm5 == pytest.approx(-0.352204586, abs=1e-9)
    assert output.metrics == {"tokens": 9, "dropped/high": 2, "dropped/low": 1}


# mu, pi, A, then gradient under dppo_tv .2, dppo_tv .15, glm5 .2, ppo .2 (old = mu, weight 1)
MASK_TABLE = [
    (0.01, 0.05, 1, -5, -5, 0, 0),
    (0.50, 0.62, 1, -1.24, -1.24, 0, 0),
    (0.50, 0.72, 1, 0, 0, 0, 0),
    (0.90, 0.999, 1, -1.11, -1.11, -1.11, -1.11),
    (0.90, 0.78, -1, 0.78 / 0.9, 0.78 / 0.9, 0.78 / 0.9, 0.78 / 0.9),
    (0.90, 0.68, -1, 0, 0, 0, 0),
    (0.99, 0.85, -1, 0.85 / 0.99, 0.85 / 0.99, 0.85 / 0.99, 0.85 / 0.99),
    (0.05, 0.001, -1, 0.02, 0.02, 0, 0),
    (0.50, 0.72, -1, 1.44, 1.44, 0, 1.44),
    (0.30, 0.20, 1, -2 / 3, -2 / 3, 0, -2 / 3),
]


@pytest.mark.parametrize("row", MASK_TABLE)
def test_the_masks_differ_as_in_the_comparison_table(row):
    mu, pi, a, *expected = row
    narrow = {"delta_low": 0.15, "delta_high": 0.15}
    losses = [("dppo_tv", {}), ("dppo_tv", narrow), ("glm5", {}), ("ppo", {})]
    for (name, params), grad in zip(losses, expected, strict=True):
        output, got = gradient(name, single(mu, pi, a), **params)
        assert got.item() == pytest.approx(grad, abs=1e-9)
        assert output.kept.item() is (grad != 0)


def test_the_divergence_mask_drops_what_saturates_and_keeps_what_returns():
    assert gradient("dppo_kl", single(0.9, 0.999, 1))[1].item() == 0  # D = .365 although pi - mu is only .099
    assert gradient("dppo_kl", single(0.9, 0.999, -1))[1].item() == pytest.approx(1.11, abs=1e-9)
    assert gradient("dppo_kl", single(0.5, 0.55, 1))[1].item() == pytest.approx(-1.1, abs=1e-9)


def test_the_squared_log_term_reaches_dropped_tokens_too():
    _, grad = gradient("dppo_tv", single(0.5, 0.72, 1), kl_tau=0.1)
    assert grad.item() == pytest.approx(0.2 * math.log(1.44), abs=1e-12)


def test_the_dual_clip_bounds_a_negative_advantage_only():
    assert gradient("ppo", single(0.1, 0.5, -1), clip_c=3.0)[1].item() == 0
    assert policy_loss("ppo", **single(0.1, 0.5, -1), clip_c=3.0).loss.item() == pytest.approx(3.0)
    assert gradient("ppo", single(0.1, 0.5, -1))[1].item() == pytest.approx(5.0)
    assert gradient("ppo", single(0.2, 0.22, 1), clip_c=3.0)[1].item() == pytest.approx(-1.1)


def test_cispo_bounds_the_multiplier_and_drops_nothing():
    output, grad = gradient("cispo", single(0.01, 0.5, 1), anchor="rollout", hi=4.0)
    assert grad.item() == pytest.approx(-4.0)
    assert output.kept.all()
    assert output.metrics["bounded"] == 1


def test_a_log_ratio_beyond_the_limit_keeps_a_finite_gradient():
    inputs = single(0.5, 0.5, -1)
    inputs["logp_rollout"] = torch.tensor([-60.0], dtype=torch.float64)
    _, grad = gradient("dppo_tv", inputs)
    assert grad.item() == pytest.approx(math.exp(20.0))


def test_corrections_weigh_by_the_trainer_over_the_rollout():
    inputs = page_inputs("token")
    ratio = flat(OLD) - flat(MU)
    plain = gradient("reinforce", inputs)[1]
    capped = gradient("reinforce", inputs, correction="tis_token")[1]
    assert torch.allclose(capped, plain * ratio.exp().clamp(max=2.0))
    weighed = gradient("reinforce", inputs, correction="icepop_weight", lo=0.5, hi=5.0)[1]
    assert torch.allclose(weighed, plain * torch.where(ratio.exp() >= 0.5, ratio.exp(), 0.0))
    sequence = gradient("reinforce", inputs, correction="tis_sequence")[1]
    product = torch.stack([ratio[:4].sum(), ratio[4:6].sum(), ratio[6:].sum()]).exp().clamp(max=5.0)
    assert torch.allclose(sequence, plain * product[inputs["sequence_of"]])
    geometric = gradient("reinforce", inputs, correction="geo_seq_mask", lo=0.9, hi=1.5)[1]
    assert torch.allclose(geometric, plain * torch.tensor([1.0] * 4 + [0.0] * 2 + [1.0] * 3))


def test_off_policy_sequence_masking_drops_only_negative_sequences_that_moved_away():
    inputs = page_inputs("token")
    output = policy_loss("reinforce", **inputs, correction="opsm", delta=0.1)  # means -.231, .525, .195
    assert output.kept.tolist() == [True] * 4 + [False] * 2 + [True] * 3
    assert policy_loss("reinforce", **inputs, correction="opsm", delta=0.6).kept.all()


def allowed_pairs():
    for name in LOSSES:
        for correction in ("none", *CORRECTIONS):
            try:
                resolve_loss(name, correction=correction)
            except InputError:
                continue
            yield name, correction


def test_every_loss_takes_the_corrections_that_do_not_count_a_ratio_twice():
    pairs = set(allowed_pairs())
    weighing = {"tis_token", "tis_sequence", "icepop_weight"}
    for name in LOSSES:
        taken = {correction for n, correction in pairs if n == name}
        refused = weighing if name in ("dppo_kl", "dppo_topk", "dppo_tv", "glm5") else set()
        if name == "cispo":
            refused = {"icepop_mask", "icepop_weight", "product_seq_mask", "geo_seq_mask"}
        assert taken == {"none", *CORRECTIONS} - refused


@pytest.mark.parametrize(("name", "correction"), list(allowed_pairs()))
def test_positions_outside_the_mask_may_hold_anything(name, correction):
    inputs = weigh(random_inputs(name, 3), "prompt")
    expected, grad = gradient(name, inputs, correction=correction)
    off = ~inputs["mask"]
    spoilt = {key: column.detach().clone() for key, column in inputs.items()}
    for key, value in [
        ("logp_rollout", 1e9),
        ("logp_old", float("-inf")),
        ("logp_new", 1e9),
        ("advantages", float("nan")),
    ]:
        spoilt[key][off] = value
    spoilt["logp_new"].requires_grad_()
    got, spoilt_grad = gradient(name, spoilt, correction=correction)
    assert got.loss.item() == expected.loss.item()
    assert torch.equal(spoilt_grad, grad)
    assert torch.equal(got.kept, expected.kept)
    assert not got.kept[off].any()


@pytest.mark.parametrize("name", LOSSES)
def test_a_zero_advantage_gives_no_gradient_and_counts_no_drop(name):
    inputs = weigh(random_inputs(name, 11), "token")
    inputs["advantages"] = torch.zeros_like(inputs["advantages"])
    output, grad = gradient(name, inputs)
    assert torch.count_nonzero(grad) == 0
    assert torch.equal(output.kept, inputs["mask"])
    assert output.metrics["dropped/high"] == output.metrics["dropped/low"] == 0


@pytest.mark.parametrize("name", ["ppo", "dppo_tv", "dppo_kl", "dppo_topk", "sapo"])
def test_the_gradient_of_a_ratio_form_is_its_finite_difference(name):
    inputs = weigh(random_inputs(name, 5), "sequence")
    _, grad = gradient(name, inputs)
    step = 1e-6
    for i in range(len(grad)):
        values = []
        for sign in (1, -1):
            moved = inputs["logp_new"].detach().clone()
            moved[i] += sign * step
            values.append(policy_loss(name, **{**inputs, "logp_new": moved}).loss.item())
        assert grad[i].item() == pytest.approx((values[0] - values[1]) / (2 * step), abs=1e-7)


@pytest.mark.parametrize("name", ["dppo_kl", "dppo_topk", "dppo_tv"])
@pytest.mark.parametrize("seed", range(20))
def test_a_dppo_gradient_is_minus_ratio_times_advantage_times_weight_where_kept(name, seed):
    inputs = weigh(random_inputs(name, seed), "prompt")
    output, grad = gradient(name, inputs)
    ratio = (inputs["logp_new"] - inputs["logp_rollout"]).detach().exp()
    expected = -ratio * inputs["advantages"] * inputs["weights"] * output.kept
    assert torch.allclose(grad, expected, atol=1e-12, rtol=0)
    towards = inputs["advantages"] * (ratio - 1) > 0
    assert not (inputs["mask"] & ~output.kept & ~towards).any()  # what moves back to the rollout is never dropped


@pytest.mark.parametrize("name", ["glm5", "cispo", "reinforce"])
def test_the_gradient_of_a_logp_form_is_minus_advantage_times_its_factor(name):
    inputs = weigh(random_inputs(name, 5), "sequence")
    output, grad = gradient(name, inputs)
    anchor = {"glm5": inputs["logp_rollout"], "cispo": inputs["logp_old"], "reinforce": inputs["logp_new"]}[name]
    ratio = (inputs["logp_new"] - anchor).detach().exp()
    factor = {"glm5": ratio * (ratio > 0.8) * (ratio < 1.2), "cispo": ratio.clamp(0, 5), "reinforce": ratio}[name]
    expected = -factor * inputs["advantages"] * inputs["weights"] * inputs["mask"]
    assert torch.allclose(grad, expected, atol=1e-12, rtol=0)
    assert output.loss.item() == pytest.approx((expected * inputs["logp_new"]).sum().item(), abs=1e-12)


def test_an_empty_part_of_a_step_is_a_differentiable_zero():
    for name in LOSSES:
        inputs = weigh(random_inputs(name, 5), "token")
        inputs["mask"] = torch.zeros_like(inputs["mask"])
        output, grad = gradient(name, inputs)
        assert output.loss.item() == 0
        assert torch.count_nonzero(grad) == 0


def test_old_logprobs_are_demanded_only_by_those_that_use_them():
    inputs = {**page_inputs("token"), "logp_old": None}
    for name, params in [("dppo_tv", {}), ("dppo_kl", {}), ("glm5", {}), ("cispo", {"anchor": "rollout"})]:
        assert math.isfinite(policy_loss(name, **inputs, **params).loss.item())
        assert "logp_old" not in resolve_loss(name, params=params).needs
    for name in ("ppo", "gspo", "sapo", "cispo"):
        with pytest.raises(InputError, match="logp_old"):
            policy_loss(name, **inputs)
    with pytest.raises(InputError, match="logp_old"):
        policy_loss("reinforce", **inputs, correction="icepop_mask")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (("dpo_tv", {}), ["dpo_tv", "did you mean dppo_tv"]),
        (("ppo", {"eps_hi": 0.2}), ["ppo.eps_hi", "did you mean eps_high"]),
        (("ppo", {"clip_c": 0.5}), ["ppo.clip_c", "0.5"]),
        (("ppo", {"correction": "icepop_msk"}), ["correction", "did you mean icepop_mask"]),
        (("dppo_tv", {"correction": "tis_token"}), ["twice"]),
        (("cispo", {"correction": "icepop_mask"}), ["cispo", "hi, lo"]),
        (("cispo", {"anchor": "rolout"}), ["cispo.anchor", "rolout"]),
    ],
)
def test_a_wrong_name_or_parameter_is_refused_with_what_is_allowed(call, words):
    name, params = call
    with pytest.raises(InputError) as caught:
        policy_loss(name, **page_inputs("token"), **params)
    assert all(word in str(caught.value) for word in words)


def test_columns_of_unequal_length_are_refused():
    inputs = page_inputs("token")
    inputs["weights"] = inputs["weights"][:-1]
    with pytest.raises(InputError, match="weights"):
        policy_loss("dppo_tv", **inputs)
