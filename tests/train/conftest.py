"""One thread, and builders of small real models and rows."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from journeyman.train.model import ModelShape, build_model
from journeyman.train.protocol import TrainRow


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def small_shape():
    return ModelShape(vocab_size=61, hidden=32, layers=2, heads=4, kv_heads=2, head_dim=16, ffn=48, positions=128)


@pytest.fixture
def small_model(small_shape):
    return wild(build_model(small_shape, seed=1))


def wild(model):
    """The model with weights far from their initialisation, norms included, so that nothing hides behind a 1 or a 0."""
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in model.parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            parameter.add_(0.3 * noise if parameter.ndim == 1 else 0.15 * noise)
    return model


@pytest.fixture
def make_rows():
    return rows_of_groups


def rows_of_groups(seed, groups=3, size=4, vocab=61, shared=(4, 12), own=(3, 20)):
    """Rows whose Groups share a prompt and, partly, more; advantages sum to 0 in each Group."""
    rng = np.random.default_rng(seed)
    rows = []
    for prompt in range(groups):
        prefix = rng.integers(0, vocab, rng.integers(*shared))
        advantages = rng.normal(size=size)
        for advantage in advantages - advantages.mean():
            rest = rng.integers(0, vocab, rng.integers(*own))
            rest[: rng.integers(0, 3)] = 7
            ids = np.concatenate([prefix, rest]).astype(np.int32)
            mask = np.concatenate([np.zeros(len(prefix)), rng.random(len(rest)) < 0.7]).astype(np.uint8)
            mask[-1] = 1
            logprobs = np.where(mask, rng.normal(-4, 0.5, len(ids)), 0).astype(np.float32)
            rows.append(TrainRow(ids, mask, logprobs, float(advantage), prompt))
    return rows
