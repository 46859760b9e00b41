"""CISPO: every token keeps a gradient; only its multiplier is bounded."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from journeyman.train.losses.protocol import Knobs, LossInputs, TokenLoss, ratio_of


class Cispo(Knobs):
    """``-(A sg(clip(r, lo, hi)) log pi)``; the bounds are absolute ratios, not offsets from 1 (arXiv 2506.13585)."""

    anchor: Literal["old", "rollout"] = "old"
    """What the ratio is taken against: ``old`` as published, ``rollout`` for stale or asynchronous data."""
    lo: float = Field(0.0, ge=0)
    """Smallest multiplier. Dimensionless."""
    hi: float = Field(5.0, gt=0)
    """Largest multiplier. Dimensionless."""

    @property
    def ratio_anchor(self) -> str:
        return self.anchor

    def token_loss(self, x: LossInputs) -> TokenLoss:
        anchor = x.old if self.anchor == "old" else x.logp_rollout
        ratio = ratio_of(x.logp_new, anchor).detach()
        values = -(x.advantages * ratio.clamp(self.lo, self.hi) * x.logp_new)
        bounded = (ratio < self.lo) | (ratio > self.hi)
        return TokenLoss(values, ratio.new_ones(ratio.shape).bool(), {"bounded": bounded})
