"""REINFORCE: the plain policy gradient, right only on data of the policy itself."""

from __future__ import annotations

from typing import ClassVar

from journeyman.train.losses.protocol import Knobs, LossInputs, TokenLoss


class Reinforce(Knobs):
    """``-(A log pi)``: no ratio, no trust region."""

    anchored_on: ClassVar[str] = "none"

    def token_loss(self, x: LossInputs) -> TokenLoss:
        return TokenLoss(-(x.advantages * x.logp_new), x.advantages.new_ones(x.advantages.shape).bool())
