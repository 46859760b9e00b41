"""PPO: the ratio to the trainer's own probabilities before the step, clipped; ``clip_c`` adds the dual clip."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from journeyman.train.losses.protocol import Knobs, LossInputs, TokenLoss, ratio_of


class Ppo(Knobs):
    """``-min(r A, clip(r, 1 - eps_low, 1 + eps_high) A)`` with r = pi / old (arXiv 1707.06347)."""

    anchored_on: ClassVar[str] = "old"

    eps_low: float = Field(0.2, ge=0, lt=1)
    """How far the ratio may fall below 1. Dimensionless."""
    eps_high: float = Field(0.2, ge=0)
    """How far the ratio may rise above 1. Dimensionless."""
    clip_c: float | None = Field(None, gt=1)
    """Dual clip: where A < 0 the loss is at most ``-A clip_c``; None leaves it unbounded (arXiv 1912.09729)."""

    def token_loss(self, x: LossInputs) -> TokenLoss:
        ratio, a = ratio_of(x.logp_new, x.old), x.advantages
        low, high = 1 - self.eps_low, 1 + self.eps_high
        values = -(ratio * a).minimum(ratio.clamp(low, high) * a)
        dropped = ((a > 0) & (ratio > high)) | ((a < 0) & (ratio < low))
        if self.clip_c is not None:
            bounded = (a < 0) & (ratio > self.clip_c)
            values = values.where(~bounded, -a * self.clip_c)
            dropped = dropped | bounded
        return TokenLoss(values, ~dropped)
