"""The optimizers against torch's own, and the invariance that the learning-rate groups exist for."""

from __future__ import annotations

import math

import pytest
import torch

from journeyman.errors import InputError
from journeyman.train.optimizer import GradientNotFinite, OptimizerSpec, PolicyOptimizer, orthogonalised


def set_gradients(model, seed, scale=1e-3):
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        parameter.grad = scale * torch.randn(parameter.shape, generator=generator)


def copies(model):
    return {name: parameter.detach().clone() for name, parameter in model.named_parameters()}


def test_newton_schulz_drives_singular_values_toward_one():
    stack = torch.randn(4, 32, 64, generator=torch.Generator().manual_seed(0))
    values = torch.linalg.svdvals(orthogonalised(stack))
    assert values.min() > 0.6
    assert values.max() < 1.3


def test_muon_moves_matrices_as_torchs_muon_does_up_to_its_bfloat16(small_model):
    matrices = {n: p for n, p in small_model.named_parameters() if p.ndim == 2 and ".layers." in n}
    twins = {n: torch.nn.Parameter(p.detach().clone()) for n, p in matrices.items()}
    torchs = torch.optim.Muon(twins.values(), lr=0.015, weight_decay=0.0, momentum=0.95)
    before = copies(small_model)
    ours = PolicyOptimizer(small_model, OptimizerSpec(lr=1e-3, muon_lr=0.015))
    for seed in range(3):
        set_gradients(small_model, seed)
        for name, twin in twins.items():
            twin.grad = matrices[name].grad.clone()
        torchs.step()
        ours.step()
    for name, twin in twins.items():
        moved, expected = matrices[name].detach() - before[name], twin.detach() - before[name]
        assert (moved - expected).norm() < 0.02 * expected.norm(), name


def test_adamw_steps_as_torchs_with_the_rate_of_each_group(small_model):
    root = math.sqrt(32)
    rates = {"model.embed_tokens.weight": 1e-3 * root, "model.norm.weight": 1e-3 / root}
    twins = {n: torch.nn.Parameter(p.detach().clone()) for n, p in small_model.named_parameters()}
    groups = [{"params": [twin], "lr": 0.5 * rates.get(name, 1e-3)} for name, twin in twins.items()]
    torchs = torch.optim.AdamW(groups, betas=(0.9, 0.95), weight_decay=0.0)
    ours = PolicyOptimizer(small_model, OptimizerSpec(lr=1e-3))
    for seed in range(3):
        set_gradients(small_model, seed, scale=0.1)
        for twin, parameter in zip(twins.values(), small_model.parameters(), strict=True):
            twin.grad = parameter.grad.clone()
        norm = torch.nn.utils.clip_grad_norm_(twins.values(), 1.0)
        torchs.step()
        assert ours.step(scale=0.5) == pytest.approx(norm.item(), rel=1e-6)
        assert all(parameter.grad is None for parameter in small_model.parameters())
    for name, parameter in small_model.named_parameters():
        assert torch.allclose(parameter, twins[name], atol=1e-7, rtol=1e-6), name


def test_restored_moments_continue_to_the_bit(small_model, small_shape):
    from journeyman.train.model import build_model

    spec = OptimizerSpec(lr=1e-3, muon_lr=0.015)
    first = PolicyOptimizer(small_model, spec)
    set_gradients(small_model, 0)
    first.step()
    twin = build_model(small_shape, 0)
    twin.load_state_dict(small_model.state_dict())
    second = PolicyOptimizer(twin, spec)
    second.load({key: tensor.clone() for key, tensor in first.state().items()}, "here")
    for optimizer, model in ((first, small_model), (second, twin)):
        set_gradients(model, 1)
        optimizer.step()
    assert all(torch.equal(copies(twin)[name], tensor) for name, tensor in copies(small_model).items())


def test_a_gradient_that_is_not_finite_changes_nothing(small_model):
    before = copies(small_model)
    optimizer = PolicyOptimizer(small_model, OptimizerSpec(lr=1e-3))
    set_gradients(small_model, 0)
    small_model.model.norm.weight.grad[3] = float("nan")
    with pytest.raises(GradientNotFinite, match="nan"):
        optimizer.step()
    assert all(torch.equal(tensor, before[name]) for name, tensor in copies(small_model).items())
    assert all(parameter.grad is None for parameter in small_model.parameters())
    assert optimizer.state() == {}


def test_moments_of_another_optimizer_or_shape_are_refused(small_model):
    muon = PolicyOptimizer(small_model, OptimizerSpec(lr=1e-3, muon_lr=0.015))
    adam = PolicyOptimizer(small_model, OptimizerSpec(lr=1e-3))
    with pytest.raises(InputError, match="does not train"):
        adam.load(muon.state(), "optimizer.safetensors")
    with pytest.raises(InputError, match=r"exp_avg/model\.norm\.weight.*\(3,\)"):
        adam.load({"exp_avg/model.norm.weight": torch.zeros(3)}, "optimizer.safetensors")


def test_a_rate_that_is_not_positive_is_refused():
    with pytest.raises(InputError, match="muon_lr"):
        OptimizerSpec(lr=1e-3, muon_lr=0.0)
