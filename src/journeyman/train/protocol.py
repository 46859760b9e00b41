"""The words between trainers and whoever drives them, and the verbs every trainer back-end carries out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from journeyman.train.losses import PolicyLoss


@dataclass(frozen=True)
class TrainRow:
    """One trial (or a part of one) as the trainer sees it.

    Attributes:
        ids: int32 [tokens].
        mask: uint8 [tokens], 1 where a sampled token is trained on; 0 for the first token.
        logprobs: float32 [tokens], log-probability at sampling; read where ``mask`` is 1.
        advantage: of the trial, the same for all its tokens.
        prompt: which prompt (Group) of the step it belongs to.
        old_logprobs: float32 [tokens] before the step, or None: then the first forward of the step stands for them.
        routed_experts: integers [tokens, layers, experts per token], what the engine recorded of a mixture, or None;
            read by back-ends with ``replay_routing``. The last token's may be anything: it predicts nothing.
        token_advantages: float32 [tokens] in place of ``advantage`` where steps were judged one by one, or None.
        topk_ids, topk_logprobs: int32 and float32 [tokens, k], the rollout's k likeliest tokens at each sampled one, or
            None; for losses that compare them.
    """

    ids: NDArray[np.int32]
    mask: NDArray[np.uint8]
    logprobs: NDArray[np.float32]
    advantage: float
    prompt: int
    old_logprobs: NDArray[np.float32] | None = None
    routed_experts: NDArray[np.integer] | None = None
    token_advantages: NDArray[np.float32] | None = None
    topk_ids: NDArray[np.int32] | None = None
    topk_logprobs: NDArray[np.float32] | None = None

    @property
    def teaches(self) -> bool:
        """Whether some trained token has an advantage other than 0."""
        if self.token_advantages is None:
            return self.advantage != 0
        return bool(np.any(self.token_advantages[self.mask.astype(bool)]))


@dataclass(frozen=True)
class ForwardMetrics:
    """Sums over the trained tokens of one ``forward_backward``; they add up over calls.

    Attributes:
        loss: sum of weight x token loss.
        tokens: trained tokens.
        abs_gaps: float32 [tokens], abs(log mu - log pi) between rollout and trainer, nats.
        neg_logprob_sum: of -log pi, nats.
        counts: the loss's own counts.
    """

    loss: float
    tokens: int
    abs_gaps: NDArray[np.float32]
    neg_logprob_sum: float
    counts: dict[str, float]


@dataclass(frozen=True)
class StepMetrics:
    """One optimizer step.

    Attributes:
        loss: of the step, in the loss's value form.
        grad_norm: before clipping.
        dropped_share: share of the trained tokens that trust region or correction dropped.
        logprob_gap_mean, logprob_gap_q99, logprob_gap_max: abs difference between rollout and trainer on the trained
            tokens, nats.
        entropy: estimate, the mean of -log pi over the sampled tokens, nats.
        tokens: trained tokens.
        rows: rows trained on.
        live_groups: prompts with an advantage other than 0; dead_groups: prompts left out for having none.
    """

    loss: float
    grad_norm: float
    dropped_share: float
    logprob_gap_mean: float
    logprob_gap_q99: float
    logprob_gap_max: float
    entropy: float
    tokens: int
    rows: int
    live_groups: int
    dead_groups: int


class Trainer(Protocol):
    """A back-end that holds a policy and its optimizer."""

    def forward_backward(
        self, rows: Sequence[TrainRow], weights: Sequence[NDArray[np.float64]], loss: PolicyLoss
    ) -> ForwardMetrics:
        """Add the gradient of the sum over the rows of weight x token loss.

        Args:
            rows: any part of one step; no part of a sequence may be missing.
            weights: per row, float64 [tokens], fixed over the whole step.
            loss: what to apply.
        """
        ...

    def forward_logprobs(self, rows: Sequence[TrainRow]) -> list[NDArray[np.float32]]:
        """Per row, float32 [tokens]: the policy's logprobs where ``mask`` is 1, else 0. Changes nothing."""
        ...

    def optim_step(self) -> float:
        """Clip the gradient, step the optimizer, clear the gradient; returns the norm before clipping."""
        ...

    def save_state(self, root: Path, extra: dict[str, Any] | None = None) -> Path:
        """Write a durable checkpoint below ``root``; returns its directory."""
        ...

    def load_state(self, path: Path) -> dict[str, Any]:
        """Go on from a checkpoint; returns its ``extra``. Raises InputError for a damaged or foreign one."""
        ...

    def push_weights(self, engine: WeightReceiver, version: int) -> None:
        """Give an engine a copy of the weights under a version number."""
        ...

    def close(self) -> None:
        """Give processes, connections and memory back. Idempotent; no verb works afterwards."""
        ...


class WeightReceiver(Protocol):
    """The one verb of an engine that a trainer uses."""

    def update_weights(self, state: Any, version: int) -> None:
        """Serve ``state`` (name -> tensor) from the next turn on."""
        ...
