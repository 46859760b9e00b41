"""The LM head and the log-softmax of the tokens asked for, in chunks: the logits of a batch never exist whole.

A vocabulary of 150,000 at 4,096 tokens is 2.5 GB of logits in float32, and the backward pass holds three such blocks.
Here ``LOGITS_AT_ONCE`` bounds each block; chunks are computed again in the backward pass, which costs one more product
with the head where there is more than one. A single chunk keeps its logprobs and gives the bits of the plain
``log_softmax(linear(x)).gather(...)``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

LOGITS_AT_ONCE = 1 << 24
"""Logits per chunk: 64 MiB in float32, 27 thousand tokens of the quickstart's vocabulary, 110 of Qwen3's."""


def head_logprobs(
    hidden: Tensor, weight: Tensor, predictor_of: Tensor, targets: Tensor, *, at_once: int = LOGITS_AT_ONCE
) -> Tensor:
    """Log-probabilities of some ids at some states.

    Args:
        hidden: float [states, width], after the final norm.
        weight: float [vocabulary, width], the head.
        predictor_of: int64 [tokens], the state that predicts each token.
        targets: int64 [tokens] or [tokens, k], the ids asked for.
        at_once: logits per chunk; at least one state's are computed at a time.

    Returns:
        float, shaped as ``targets``; differentiable in ``hidden`` and ``weight``.
    """
    states = predictor_of if targets.ndim == 1 else predictor_of.repeat_interleave(targets.shape[1])
    logprobs: Tensor = _Head.apply(hidden, weight, states, targets.flatten(), at_once)  # type: ignore[no-untyped-call]
    return logprobs.view(targets.shape)


class _Head(torch.autograd.Function):
    """One gather per chunk of states; the gradient is that of log_softmax, chunk by chunk."""

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, weight: Tensor, states: Tensor, targets: Tensor, at_once: int) -> Tensor:
        chunks = list(_chunks(states, len(hidden), max(at_once // len(weight), 1)))
        out = hidden.new_empty(len(states))
        kept = []
        for start, stop, tokens in chunks:
            logprobs = F.linear(hidden[start:stop], weight).log_softmax(-1)
            out[tokens] = logprobs.flatten().gather(0, _places(states, targets, tokens, start, len(weight)))
            if len(chunks) == 1:
                kept.append(logprobs)
        ctx.save_for_backward(hidden, weight, states, targets, *kept)
        ctx.chunks = chunks
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None, None, None]:
        hidden, weight, states, targets, *kept = ctx.saved_tensors
        to_hidden = torch.empty_like(hidden)
        to_weight: Tensor | None = None
        for start, stop, tokens in ctx.chunks:
            logprobs = kept[0] if kept else F.linear(hidden[start:stop], weight).log_softmax(-1)
            places = _places(states, targets, tokens, start, len(weight))
            picked = grad.new_zeros(logprobs.numel()).scatter_add_(0, places, grad[tokens]).view(logprobs.shape)
            to_logits = torch._log_softmax_backward_data(picked, logprobs, -1, logprobs.dtype)
            to_hidden[start:stop] = to_logits.mm(weight)
            part = to_logits.t().mm(hidden[start:stop])
            to_weight = part if to_weight is None else to_weight.add_(part)
        return to_hidden, torch.zeros_like(weight) if to_weight is None else to_weight, None, None, None


def _chunks(states: Tensor, num_states: int, size: int) -> Iterator[tuple[int, int, Tensor | slice]]:
    """Ranges of states with the tokens they predict."""
    if num_states <= size:
        yield 0, num_states, slice(None)
        return
    order = states.argsort(stable=True)
    starts = torch.arange(0, num_states, size, device=states.device)
    ends = torch.searchsorted(states[order], starts + size).tolist()
    for start, first, last in zip(starts.tolist(), [0, *ends[:-1]], ends, strict=True):
        yield start, min(start + size, num_states), order[first:last]


def _places(states: Tensor, targets: Tensor, tokens: Tensor | slice, start: int, vocabulary: int) -> Tensor:
    """Where the tokens' logprobs lie in the flat chunk that begins at state ``start``."""
    return (states[tokens] - start) * vocabulary + targets[tokens]
