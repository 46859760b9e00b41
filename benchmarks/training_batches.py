"""Batches of agent trials and small Qwen3 policies for the comparisons of training: made up, seeded, the same for all.

A trial is a prompt that its group shares, then turns: sampled tokens that are trained on and tool results that are not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

GROUP = 8
"""Trials per prompt."""


@dataclass(frozen=True)
class AgentTrial:
    """ids [tokens]; mask [tokens], 1 where sampled; the prompt's length; group and reward."""

    ids: NDArray[np.int32]
    mask: NDArray[np.uint8]
    prompt_length: int
    group: int
    reward: float


@dataclass(frozen=True)
class Shape:
    """A Qwen3 decoder."""

    vocab: int
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int


SHAPES = {
    "0.5M": Shape(vocab=632, hidden=128, layers=3, heads=4, kv_heads=2, head_dim=32, ffn=256),
    "15.7M": Shape(vocab=49152, hidden=256, layers=4, heads=8, kv_heads=4, head_dim=32, ffn=640),
}


def build_model(shape: Shape, seed: int = 0) -> Any:
    """A float32 model with random weights."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(seed)
    config = Qwen3Config(
        vocab_size=shape.vocab,
        hidden_size=shape.hidden,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        head_dim=shape.head_dim,
        intermediate_size=shape.ffn,
        max_position_embeddings=4096,
        tie_word_embeddings=True,
        rope_parameters={"rope_type": "default", "rope_theta": 10_000.0},
    )
    return Qwen3ForCausalLM(config).float()


def skewed(groups: int, vocab: int, seed: int, *, median: int = 160, longest: int = 1200) -> list[AgentTrial]:
    """Lengths as agents have them: lognormal, sigma 0.9, so that the longest is many times the median."""
    rng = np.random.default_rng(seed)
    trials = []
    for group in range(groups):
        prompt = rng.integers(0, vocab, rng.integers(40, 120))
        for sample in range(GROUP):
            length = int(np.clip(rng.lognormal(np.log(median), 0.9), 24, longest))
            trials.append(_trial(rng, prompt, length, vocab, group, float(sample % 2)))
    return trials


def even(groups: int, vocab: int, seed: int, *, prompt: int = 80, length: int = 240) -> list[AgentTrial]:
    """Prompts and trials of one length: nothing to pad, the case that suits padded batches best."""
    rng = np.random.default_rng(seed)
    trials = []
    for group in range(groups):
        ids = rng.integers(0, vocab, prompt)
        for sample in range(GROUP):
            trials.append(_trial(rng, ids, length, vocab, group, float(sample % 2)))
    return trials


def _trial(
    rng: np.random.Generator, prompt: NDArray[Any], length: int, vocab: int, group: int, reward: float
) -> AgentTrial:
    mask = np.zeros(length, dtype=np.uint8)
    at = 0
    while at < length:
        turn, result = rng.integers(10, 60), rng.integers(10, 40)
        mask[at : at + turn] = 1
        at += int(turn + result)
    ids = np.concatenate([prompt, rng.integers(0, vocab, length)]).astype(np.int32)
    mask[-1] = 1
    return AgentTrial(ids, np.concatenate([np.zeros(len(prompt), np.uint8), mask]), len(prompt), group, reward)
