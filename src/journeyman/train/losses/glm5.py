"""GLM-5: the rollout ratio as a detached weight, zero outside an open interval on either side, for either sign of A."""

from __future__ import annotations

from pydantic import Field

from journeyman.train.losses.protocol import Knobs, LossInputs, TokenLoss, ratio_of


class Glm5(Knobs):
    """``-(sg(f(r)) A log pi)`` with r = pi / mu and f(r) = r iff 1 - eps_low < r < 1 + eps_high, else 0.

    Also drops tokens that move back toward the rollout policy (arXiv 2602.15763, section 4.1.2).
    """

    eps_low: float = Field(0.2, gt=0, le=1)
    """How far the ratio may fall below 1. Dimensionless."""
    eps_high: float = Field(0.2, gt=0)
    """How far the ratio may rise above 1. Dimensionless."""

    def token_loss(self, x: LossInputs) -> TokenLoss:
        ratio = ratio_of(x.logp_new, x.logp_rollout).detach()
        inside = (ratio > 1 - self.eps_low) & (ratio < 1 + self.eps_high)
        values = -(ratio * inside * x.advantages * x.logp_new)
        return TokenLoss(values, inside | (x.advantages == 0))
