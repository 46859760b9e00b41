"""Corrections of the gap between rollout and trainer: each turns w = old / mu into a factor and a keep per token.

They multiply the token loss and never change a denominator. All are detached.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field

from journeyman.train.losses.protocol import LOG_RATIO_LIMIT, LossInputs

if TYPE_CHECKING:
    from torch import Tensor

WEIGHING = frozenset({"tis_token", "tis_sequence", "icepop_weight"})
"""Corrections whose factor is w itself: a loss whose ratio starts at the rollout would count it twice."""


class CorrectionKnobs(BaseModel):
    """Base of the knobs of one correction; an unknown knob is refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Cap(CorrectionKnobs):
    """Knob of ``tis_token``."""

    cap: float = Field(2.0, gt=0)
    """Largest importance weight of a token. Dimensionless."""


class SequenceCap(CorrectionKnobs):
    """Knob of ``tis_sequence``."""

    cap: float = Field(5.0, gt=0)
    """Largest importance weight of a sequence. Dimensionless."""


class Bounds(CorrectionKnobs):
    """Knobs of the IcePop and sequence masks: absolute bounds of the weight, closed."""

    lo: float = Field(0.5, ge=0)
    """Smallest weight that is kept. Dimensionless."""
    hi: float = Field(2.0, gt=0)
    """Largest weight that is kept. Dimensionless."""


class Drift(CorrectionKnobs):
    """Knob of ``opsm``."""

    delta: float = Field(1e-4, ge=0)
    """Mean of log old - log pi over a sequence above which a sequence with A < 0 is dropped. Nats."""


def _weight(log_weight: Tensor) -> Tensor:
    return log_weight.clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT).exp()


def tis_token(x: LossInputs, knobs: Cap) -> Tensor:
    """min(w, cap)."""
    return _weight(x.old - x.logp_rollout).clamp(max=knobs.cap)


def tis_sequence(x: LossInputs, knobs: SequenceCap) -> Tensor:
    """min(product of w over the sequence, cap)."""
    return _weight(x.sequence_sum(x.old - x.logp_rollout)).clamp(max=knobs.cap)


def _within(weight: Tensor, knobs: Bounds) -> Tensor:
    return ((weight >= knobs.lo) & (weight <= knobs.hi)).to(weight.dtype)


def icepop_mask(x: LossInputs, knobs: Bounds) -> Tensor:
    """1 where lo <= w <= hi, else 0."""
    return _within(_weight(x.old - x.logp_rollout), knobs)


def icepop_weight(x: LossInputs, knobs: Bounds) -> Tensor:
    """w where lo <= w <= hi, else 0."""
    weight = _weight(x.old - x.logp_rollout)
    return weight * _within(weight, knobs)


def product_seq_mask(x: LossInputs, knobs: Bounds) -> Tensor:
    """1 where the product of w over the sequence lies within the bounds, else 0."""
    return _within(_weight(x.sequence_sum(x.old - x.logp_rollout)), knobs)


def geo_seq_mask(x: LossInputs, knobs: Bounds) -> Tensor:
    """1 where the geometric mean of w over the sequence lies within the bounds, else 0."""
    return _within(_weight(x.sequence_mean(x.old - x.logp_rollout)), knobs)


def opsm(x: LossInputs, knobs: Drift) -> Tensor:
    """0 for a sequence with A < 0 that the policy has left by more than delta, else 1."""
    left = x.sequence_mean(x.old - x.logp_new.detach()) > knobs.delta
    return (~(left & (x.advantages < 0))).to(x.logp_new.dtype)


CORRECTIONS: dict[str, tuple[type[CorrectionKnobs], Callable[..., Tensor]]] = {
    "tis_token": (Cap, tis_token),
    "tis_sequence": (SequenceCap, tis_sequence),
    "icepop_mask": (Bounds, icepop_mask),
    "icepop_weight": (Bounds, icepop_weight),
    "product_seq_mask": (Bounds, product_seq_mask),
    "geo_seq_mask": (Bounds, geo_seq_mask),
    "opsm": (Drift, opsm),
}
