"""Draw one token per row by inverting the cumulative distribution at a keyed uniform number."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

LARGE = 4096
"""Vocabulary from which summing every token costs more than the draw is worth."""
PARTS = (256, 128, 64)


@dataclass(frozen=True)
class Drawn:
    """One token for each of n rows.

    Attributes:
        tokens: [n] int64.
        logprobs: [n] float32 under the distribution sampled (temperature 0: under the model's own); NaN where the
            logits were not numbers.
        scores: [n, vocab] float32, logits over the temperature minus their maximum.
        log_totals: [n, 1] float64; ``scores - log_totals`` are the logprobs of every token.
    """

    tokens: Tensor
    logprobs: Tensor
    scores: Tensor
    log_totals: Tensor


def draw(logits: Tensor, temperature: Tensor | None, uniform: Tensor) -> Drawn:
    """Sample each row of ``logits``, all tokens kept.

    The cumulative sum is float64 (of a large vocabulary: over float32 sums of small parts, and within one part), so
    probabilities are those of the float32 softmax up to rounding; a token of probability 0 is never drawn.

    Args:
        logits: [n, vocab] float32; overwritten.
        temperature: [n, 1] float32, 0 for the most probable token; None when all are 1.
        uniform: [n, 1] float64 in [0, 1).
    """
    if temperature is not None:
        logits.div_(torch.where(temperature > 0, temperature, 1.0))
    logits.sub_(logits.amax(-1, keepdim=True))
    weights, part = torch.exp(logits), _part(logits.shape[-1])
    if part:
        token, total = _at_in_parts(weights, part, uniform)
    else:
        cumulative = weights.cumsum(-1, dtype=torch.float64)
        token, total = _at(cumulative, uniform), cumulative[:, -1:]
    if temperature is not None and bool((temperature == 0).any()):
        token = torch.where(temperature > 0, token, logits.argmax(-1, keepdim=True))
    log_total = total.log()
    logprob = logits.gather(1, token).double() - log_total
    return Drawn(token[:, 0], logprob[:, 0].float(), logits, log_total)


def draw_filtered(scores: Tensor, top_k: int, top_p: float, uniform: Tensor) -> tuple[int, float, Tensor, Tensor]:
    """Sample one row after top-k and then top-p.

    Args:
        scores: [vocab] float32, logits over the temperature.
        top_k: most probable tokens to keep, 0 for all; of equal ones the lower id comes first.
        top_p: keep the fewest most probable of those whose probabilities (after top-k) sum to at least this.
        uniform: [1] float64 in [0, 1).

    Returns:
        The token, its logprob in the renormalised distribution, the ids kept [m] int64, most probable first, and their
        logprobs [m] float32.
    """
    ordered, ids = torch.sort(scores, descending=True, stable=True)
    if top_k:
        ordered, ids = ordered[:top_k], ids[:top_k]
    cumulative = torch.exp(ordered - ordered[0]).cumsum(-1, dtype=torch.float64)
    if top_p < 1:
        count = int(torch.searchsorted(cumulative, top_p * cumulative[-1:])) + 1
        ordered, ids, cumulative = ordered[:count], ids[:count], cumulative[:count]
    at = _at(cumulative, uniform)
    logprobs = (ordered - ordered[0]).double() - cumulative[-1].log()
    return int(ids[at]), float(logprobs[at]), ids, logprobs.float()


def _part(vocab: int) -> int:
    """Tokens in one part of a large vocabulary; 0 where it is not divided."""
    return next((part for part in PARTS if vocab % part == 0), 0) if vocab >= LARGE else 0


def _at_in_parts(weights: Tensor, part: int, uniform: Tensor) -> tuple[Tensor, Tensor]:
    """As ``_at`` for weights [n, vocab] that are not summed yet: only the part drawn is summed token by token.

    Returns:
        Indices [n, 1] and the rows' totals [n, 1], float64.
    """
    parts = weights.view(len(weights), -1, part)
    cumulative = parts.sum(-1).cumsum(-1, dtype=torch.float64)
    total = cumulative[:, -1:]
    chosen = _at(cumulative, uniform)
    before = torch.where(chosen > 0, cumulative.gather(1, (chosen - 1).clamp_(min=0)), 0.0)
    inside = parts.gather(1, chosen[:, :, None].expand(-1, -1, part))[:, 0].cumsum(-1, dtype=torch.float64)
    target = torch.minimum(uniform * total, torch.nextafter(total, torch.zeros_like(total))) - before
    share = (target / inside[:, -1:]).clamp_(0.0, 1.0)
    return chosen * part + _at(inside, share), total


def _at(cumulative: Tensor, uniform: Tensor) -> Tensor:
    """Index of the token whose part of the cumulative weights [..., m] holds ``uniform`` [..., 1] of the total."""
    total = cumulative[..., -1:]
    target = torch.minimum(uniform * total, torch.nextafter(total, torch.zeros_like(total)))
    return torch.searchsorted(cumulative, target, right=True).clamp_(max=cumulative.shape[-1] - 1)
