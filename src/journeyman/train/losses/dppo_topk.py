"""DPPO with a trust region over the rollout's k likeliest tokens and one bucket for the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from journeyman.train.losses.dppo_tv import masked_ratio_loss
from journeyman.train.losses.protocol import Knobs, LossInputs, TokenLoss

if TYPE_CHECKING:
    from torch import Tensor

FLOOR = 1e-12
"""Least mass of a token or of the rest bucket, so that every logarithm is finite."""
DELTAS = {"tv": 0.2, "kl": 0.05}
"""Where delta_low and delta_high stand unless given: absolute probability, nats."""


class DppoTopk(Knobs):
    """``-(r A)``, r = pi / mu, dropped where D > delta and the sampled token moved with the gradient.

    With p, q the masses that rollout and trainer give the rollout's top k tokens, and P, Q what is left of 1:
    tv: D = (sum abs(p - q) + abs(P - Q)) / 2; kl: D = sum p (log p - log q) + P log(P / Q) (arXiv 2602.04879,
    appendix G.2).
    """

    extra_columns: ClassVar[tuple[str, ...]] = ("topk_logp_rollout", "topk_logp_new")

    divergence: Literal["tv", "kl"] = "tv"
    """Total variation or Kullback-Leibler divergence of the k + 1 buckets."""
    delta_low: float | None = Field(None, gt=0)
    """Divergence a token may reach while it loses probability; None is 0.2 for tv and 0.05 nats for kl."""
    delta_high: float | None = Field(None, gt=0)
    """Divergence a token may reach while it gains probability; None as for ``delta_low``."""
    kl_tau: float = Field(0.0, ge=0)
    """Weight of ``(log r)^2`` on every trainable token, dropped ones included."""

    def token_loss(self, x: LossInputs) -> TokenLoss:
        distance = bucket_divergence(x.extra["topk_logp_rollout"], x.extra["topk_logp_new"], self.divergence)
        moved = x.logp_new.detach() - x.logp_rollout
        low, high = (DELTAS[self.divergence] if d is None else d for d in (self.delta_low, self.delta_high))
        gained = (x.advantages > 0) & (moved > 0) & (distance > high)
        lost = (x.advantages < 0) & (moved < 0) & (distance > low)
        return masked_ratio_loss(x, ~(gained | lost), self.kl_tau)


def bucket_divergence(logp: Tensor, logq: Tensor, divergence: str) -> Tensor:
    """Divergence of two distributions seen through k tokens and a rest bucket.

    Args:
        logp, logq: float [tokens, k], log-probabilities of the same k tokens under rollout and trainer.
        divergence: "tv" or "kl".

    Returns:
        float [tokens]; absolute probability for tv, nats for kl.
    """
    p, q = (column.exp().clamp(min=FLOOR) for column in (logp, logq))
    rest_p, rest_q = ((1 - mass.sum(-1)).clamp(min=FLOOR) for mass in (p, q))
    if divergence == "tv":
        return ((p - q).abs().sum(-1) + (rest_p - rest_q).abs()) / 2
    return (p * (p.log() - q.log())).sum(-1) + rest_p * (rest_p / rest_q).log()
