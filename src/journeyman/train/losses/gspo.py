"""GSPO: one ratio per sequence, clipped; use it with the ``sequence`` reduction."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from journeyman.train.losses.protocol import Knobs, LossInputs, TokenLoss

LOG_RATIO_CAP = 10.0
"""The sequence log ratio is cut here so that ``exp`` stays finite."""


class Gspo(Knobs):
    """``-min(x A, clip(x) A)`` with x = sg(s) pi / sg(pi), s = exp(mean_t(log pi - log old)) (arXiv 2507.18071)."""

    anchored_on: ClassVar[str] = "old"

    eps_low: float = Field(3e-4, ge=0, lt=1)
    """How far the sequence ratio may fall below 1. Dimensionless; of the paper's scale, far below a token ratio's."""
    eps_high: float = Field(4e-4, ge=0)
    """How far the sequence ratio may rise above 1. Dimensionless."""

    def token_loss(self, x: LossInputs) -> TokenLoss:
        logp = x.logp_new.detach()
        log_s = x.sequence_mean(logp - x.old).clamp(max=LOG_RATIO_CAP)
        ratio, a = (x.logp_new - logp + log_s).exp(), x.advantages
        low, high = 1 - self.eps_low, 1 + self.eps_high
        values = -(ratio * a).minimum(ratio.clamp(low, high) * a)
        dropped = ((a > 0) & (ratio > high)) | ((a < 0) & (ratio < low))
        return TokenLoss(values, ~dropped)
