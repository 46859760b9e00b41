"""DPPO with the binary Kullback-Leibler trust region: tighter than total variation near probability 0 and 1."""

from __future__ import annotations

from pydantic import Field

from journeyman.train.losses.dppo_tv import masked_ratio_loss
from journeyman.train.losses.protocol import Knobs, LossInputs, TokenLoss

FLOOR = 1e-8
"""Added to 1 - p so that a token of probability 1 has a finite divergence."""


class DppoKl(Knobs):
    """``-(r A)`` dropped where D > delta and the token moved with the gradient (arXiv 2602.04879).

    D = mu log(mu / pi) + (1 - mu) log((1 - mu + 1e-8) / (1 - pi + 1e-8)).
    """

    delta_low: float = Field(0.05, gt=0)
    """Divergence a token may reach while it loses probability. Nats."""
    delta_high: float = Field(0.05, gt=0)
    """Divergence a token may reach while it gains probability. Nats."""
    kl_tau: float = Field(0.0, ge=0)
    """Weight of ``(log r)^2`` on every trainable token, dropped ones included."""

    def token_loss(self, x: LossInputs) -> TokenLoss:
        logp = x.logp_new.detach()
        pi, mu = logp.exp(), x.logp_rollout.exp()
        rest = (1 - mu) * ((1 - mu + FLOOR) / (1 - pi + FLOOR)).log()
        divergence = mu * (x.logp_rollout - logp) + rest
        high = (x.advantages > 0) & (pi > mu) & (divergence > self.delta_high)
        low = (x.advantages < 0) & (pi < mu) & (divergence > self.delta_low)
        return masked_ratio_loss(x, ~(high | low), self.kl_tau)
