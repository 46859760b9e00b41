"""What a policy loss is given and what it hands back; the knobs every loss declares.

Symbols: ``mu`` the rollout's probability of a sampled token, ``old`` the trainer's before the step, ``pi`` the current
one, ``A`` the advantage. A loss file sees trainable tokens only, knows neither masks nor weights nor micro-batches, and
returns one value per token; the frame (``frame.py``) does the rest once for all of them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from pydantic import BaseModel, ConfigDict

if TYPE_CHECKING:
    from torch import Tensor

LOG_RATIO_LIMIT = 20.0
"""Log ratios are cut here so that ``exp`` stays finite; the gradient is that of the cut ratio, not zero."""


@dataclass(frozen=True)
class LossInputs:
    """The trainable tokens of any part of one optimizer step.

    Attributes:
        logp_rollout: float [tokens], log mu, no gradient.
        logp_old: float [tokens] or None, log old, no gradient.
        logp_new: float [tokens], log pi, carries the gradient.
        advantages: float [tokens].
        sequence_index: int64 [tokens], 0..num_sequences-1; a sequence lies in one micro-batch whole.
        num_sequences: sequences with a trainable token.
        extra: the loss's ``extra_columns`` by name, float [tokens, k], no gradient.
    """

    logp_rollout: Tensor
    logp_old: Tensor | None
    logp_new: Tensor
    advantages: Tensor
    sequence_index: Tensor
    num_sequences: int
    extra: Mapping[str, Tensor] = field(default_factory=dict)

    @property
    def old(self) -> Tensor:
        """``logp_old``; the frame has refused a loss that needs it without it."""
        assert self.logp_old is not None
        return self.logp_old

    def sequence_mean(self, values: Tensor) -> Tensor:
        """Mean of ``values`` [tokens] over each sequence, given back per token [tokens]."""
        total = values.new_zeros(self.num_sequences).index_add(0, self.sequence_index, values)
        count = values.new_zeros(self.num_sequences).index_add(0, self.sequence_index, values.new_ones(values.shape))
        return (total / count)[self.sequence_index]

    def sequence_sum(self, values: Tensor) -> Tensor:
        """Sum of ``values`` [tokens] over each sequence, given back per token [tokens]."""
        total = values.new_zeros(self.num_sequences).index_add(0, self.sequence_index, values)
        return total[self.sequence_index]


@dataclass(frozen=True)
class TokenLoss:
    """One value per trainable token.

    Attributes:
        values: float [tokens], differentiable in ``logp_new``.
        kept: bool [tokens], True where the trust region lets the gradient through; tokens with A = 0 count as kept.
        flags: further bool [tokens] whose counts become metrics.
    """

    values: Tensor
    kept: Tensor
    flags: dict[str, Tensor] = field(default_factory=dict)


@dataclass(frozen=True)
class LossOutput:
    """What ``policy_loss`` returns.

    Attributes:
        loss: scalar, the sum of weight x token loss over the trainable tokens given.
        kept: bool [tokens] over all tokens given; False outside the mask and where trust region or correction dropped.
        metrics: counts that add up over micro-batches (``tokens``, ``dropped/high``, ``dropped/low``, ...).
    """

    loss: Tensor
    kept: Tensor
    metrics: dict[str, float]


class Knobs(BaseModel):
    """Base of every loss: a frozen set of typed knobs; an unknown knob is refused.

    Class attributes:
        anchored_on: ``"rollout"``, ``"old"`` or ``"none"``: what the probability ratio is taken against.
        extra_columns: names of further columns [tokens, k] that the loss is given.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    anchored_on: ClassVar[str] = "rollout"
    extra_columns: ClassVar[tuple[str, ...]] = ()

    @property
    def needs(self) -> frozenset[str]:
        """Columns the loss cannot do without: ``logp_rollout`` or ``logp_old`` or neither, and ``extra_columns``."""
        anchor = {f"logp_{self.ratio_anchor}"} if self.ratio_anchor != "none" else set()
        return frozenset({*anchor, *self.extra_columns})

    @property
    def ratio_anchor(self) -> str:
        """``anchored_on``, or what a knob makes of it."""
        return self.anchored_on

    @abstractmethod
    def token_loss(self, x: LossInputs) -> TokenLoss:
        """The loss of each trainable token."""


def ratio_of(logp_new: Tensor, logp_anchor: Tensor) -> Tensor:
    """exp(logp_new - logp_anchor), log cut at +-20; d ratio / d logp_new is the (cut) ratio itself, also beyond."""
    log_ratio = logp_new - logp_anchor
    cut = log_ratio.detach().clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)
    return (log_ratio + (cut - log_ratio.detach())).exp()
