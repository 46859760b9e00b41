"""What tests of several back-ends share: a small model off its initialisation, rows, somebody to push to."""

from __future__ import annotations

import numpy as np
import torch

from journeyman.train.model import ModelShape, build_model, save_model
from journeyman.train.protocol import TrainRow

SHAPE = ModelShape(vocab_size=61, hidden=32, layers=2, heads=4, kv_heads=2, head_dim=16, ffn=48, positions=128)


class Keeper:
    """Keeps a copy of what a trainer pushes."""

    def update_weights(self, state, version):
        self.state, self.version = {name: tensor.clone() for name, tensor in state.items()}, version


def moved_model(seed):
    """A model whose every weight, norms included, is away from where it starts."""
    model = build_model(SHAPE, seed=seed)
    generator = torch.Generator().manual_seed(seed + 50)
    with torch.no_grad():
        for parameter in model.parameters():
            size = 0.3 if parameter.ndim == 1 else 0.15
            parameter.add_(size * torch.randn(parameter.shape, generator=generator))
    return model


def write_model(path, seed=1):
    save_model(moved_model(seed), path)
    return path


def step_rows(seed, groups=3, size=4):
    """Rows of groups that share a prompt; advantages sum to 0 in each."""
    rng = np.random.default_rng(seed)
    rows = []
    for prompt in range(groups):
        opening = rng.integers(0, 61, rng.integers(4, 12))
        advantages = rng.normal(size=size)
        for advantage in advantages - advantages.mean():
            rest = rng.integers(0, 61, rng.integers(3, 20))
            ids = np.concatenate([opening, rest]).astype(np.int32)
            mask = np.concatenate([np.zeros(len(opening)), rng.random(len(rest)) < 0.7]).astype(np.uint8)
            mask[-1] = 1
            logprobs = np.where(mask, rng.normal(-4, 0.5, len(ids)), 0).astype(np.float32)
            rows.append(TrainRow(ids, mask, logprobs, float(advantage), prompt))
    return rows


def pushed(trainer):
    """The weights that an engine would get."""
    keeper = Keeper()
    trainer.push_weights(keeper, 1)
    return keeper.state


def worst_gap(a, b):
    """Largest absolute difference of two states of the same names."""
    assert a.keys() == b.keys(), a.keys() ^ b.keys()
    return max(float((a[name].detach().double() - b[name].detach().double()).abs().max()) for name in a)
