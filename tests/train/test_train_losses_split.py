"""No split of a step changes its gradient: micro-batches, ranks, order; every loss, reduction and correction."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from train_loss_columns import gradient, part_of, random_inputs, weigh

from journeyman.errors import InputError
from journeyman.train.balancing import balance
from journeyman.train.losses import CORRECTIONS, LOSSES, policy_loss, resolve_loss
from journeyman.train.packing import pack
from journeyman.train.reductions import REDUCTIONS

SEQUENCES = 7


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("name", LOSSES)
@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 2**31), ranks=st.integers(1, 4), cap=st.integers(1, 30), data=st.data())
def test_no_split_into_micro_batches_and_ranks_changes_loss_or_gradient(name, reduction, seed, ranks, cap, data):
    inputs = weigh(random_inputs(name, seed, SEQUENCES), reduction)
    correction = data.draw(st.sampled_from(corrections_of(name)))
    whole, grad = gradient(name, inputs, correction=correction)
    lengths = torch.bincount(inputs["sequence_of"]).tolist()
    plan = balance(pack(lengths, cap), ranks, lengths=lengths)
    of_rank = []  # each rank sums its own micro-batches, then the ranks' gradients are summed
    for bins in plan:
        losses = [policy_loss(name, **sequences_of(inputs, b), correction=correction) for b in data.draw(orders(bins))]
        of_rank.append((sum(o.loss for o in losses), losses))
    total = sum(loss for loss, _ in of_rank)
    summed = sum(torch.autograd.grad(loss, inputs["logp_new"], retain_graph=True)[0] for loss, _ in of_rank)
    assert total.item() == pytest.approx(whole.loss.item(), abs=1e-12)
    assert torch.allclose(summed, grad, atol=1e-12, rtol=0)
    for key, value in whole.metrics.items():
        assert sum(o.metrics[key] for _, losses in of_rank for o in losses) == value


def test_weights_taken_from_a_part_of_the_step_would_change_the_gradient():
    inputs = random_inputs("dppo_tv", 0, SEQUENCES)
    whole = gradient("dppo_tv", weigh(inputs, "token"))[1]
    halves = [sequences_of(inputs, b) for b in ([0, 1], [2, 3, 4, 5, 6])]
    wrong = sum(policy_loss("dppo_tv", **weigh(half, "token")).loss for half in halves) / 2
    assert not torch.allclose(torch.autograd.grad(wrong, inputs["logp_new"])[0], whole, atol=1e-3)


def corrections_of(name):
    taken = []
    for correction in ("none", *CORRECTIONS):
        try:
            resolve_loss(name, correction=correction)
        except InputError:
            continue
        taken.append(correction)
    return taken


def orders(bins):
    return st.permutations(bins)


def sequences_of(inputs, bin_):
    return part_of(inputs, torch.from_numpy(np.isin(inputs["sequence_of"].numpy(), bin_)))
