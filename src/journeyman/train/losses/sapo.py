"""SAPO: a smooth gate in place of the clip; use it with the ``sequence`` reduction."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from journeyman.train.losses.protocol import Knobs, LossInputs, TokenLoss, ratio_of


class Sapo(Knobs):
    """``-(4 / tau) sigmoid(tau (r - 1)) A`` with r = pi / old and tau by the sign of A (arXiv 2511.20347)."""

    anchored_on: ClassVar[str] = "old"

    tau_pos: float = Field(1.0, gt=0)
    """Steepness of the gate where A > 0. Dimensionless."""
    tau_neg: float = Field(1.05, gt=0)
    """Steepness of the gate where A <= 0. Dimensionless."""

    def token_loss(self, x: LossInputs) -> TokenLoss:
        ones = x.advantages.new_ones(x.advantages.shape)
        tau = (ones * self.tau_pos).where(x.advantages > 0, ones * self.tau_neg)
        gate = (4 / tau) * (tau * (ratio_of(x.logp_new, x.old) - 1)).sigmoid()
        return TokenLoss(-gate * x.advantages, ones.bool())
