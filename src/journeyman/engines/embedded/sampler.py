"""Draw one token per row by inverting the cumulative distribution at a keyed uniform number."""

from __future__ import annotations

import torch
from torch import Tensor


def draw(logits: Tensor, temperature: Tensor | None, uniform: Tensor) -> tuple[Tensor, Tensor]:
    """Sample each row of ``logits``.

    The cumulative sum is float64, so probabilities are those of the float32 softmax up to rounding; a token of
    probability 0 is never drawn.

    Args:
        logits: [n, vocab] float32; overwritten.
        temperature: [n, 1] float32, 0 for the most probable token; None when all are 1.
        uniform: [n, 1] float64 in [0, 1).

    Returns:
        Token ids [n] int64, and float32 logprobs [n] under the distribution sampled (temperature 0: under the model's
        own); NaN where the logits were not numbers.
    """
    if temperature is not None:
        logits.div_(torch.where(temperature > 0, temperature, 1.0))
    logits.sub_(logits.amax(-1, keepdim=True))
    cumulative = torch.exp(logits).cumsum(-1, dtype=torch.float64)
    total = cumulative[:, -1:]
    target = torch.minimum(uniform * total, torch.nextafter(total, torch.zeros_like(total)))
    token = torch.searchsorted(cumulative, target, right=True).clamp_(max=logits.shape[-1] - 1)
    if temperature is not None and bool((temperature == 0).any()):
        token = torch.where(temperature > 0, token, logits.argmax(-1, keepdim=True))
    logprob = logits.gather(1, token).double() - total.log()
    return token[:, 0], logprob[:, 0].float()
