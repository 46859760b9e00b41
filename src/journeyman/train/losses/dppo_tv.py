"""DPPO with the binary total-variation trust region: the default. Anchored on the rollout, no old logprobs needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from journeyman.train.losses.protocol import Knobs, LossInputs, TokenLoss, ratio_of

if TYPE_CHECKING:
    from torch import Tensor


class DppoTv(Knobs):
    """``-(r A)`` with r = pi / mu, dropped where the token's probability itself has moved too far with the gradient.

    Drops where (A > 0 and pi - mu > delta_high) or (A < 0 and pi - mu < -delta_low), strict. No cap on r: a rare token
    may gain much in ratio while it moves little in probability (arXiv 2602.04879).
    """

    delta_low: float = Field(0.2, gt=0, le=1)
    """Probability a token may lose. Absolute."""
    delta_high: float = Field(0.2, gt=0, le=1)
    """Probability a token may gain. Absolute."""
    kl_tau: float = Field(0.0, ge=0)
    """Weight of ``(log r)^2`` on every trainable token, dropped ones included (arXiv 2602.02276)."""

    def token_loss(self, x: LossInputs) -> TokenLoss:
        moved = x.logp_new.detach().exp() - x.logp_rollout.exp()
        high = (x.advantages > 0) & (moved > self.delta_high)
        low = (x.advantages < 0) & (moved < -self.delta_low)
        return masked_ratio_loss(x, ~(high | low), self.kl_tau)


def masked_ratio_loss(x: LossInputs, kept: Tensor, kl_tau: float) -> TokenLoss:
    """The ratio form shared by the DPPO family: ``-(r A) keep + kl_tau (log r)^2``."""
    values = (-ratio_of(x.logp_new, x.logp_rollout) * x.advantages) * kept
    if kl_tau > 0:
        values = values + kl_tau * (x.logp_new - x.logp_rollout).square()
    return TokenLoss(values, kept)
