"""One synchronous RL step: live Groups, weights fixed once, forward and backward, one optimizer step, the figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from journeyman.errors import InputError
from journeyman.train.losses import PolicyLoss, resolve_loss
from journeyman.train.protocol import ForwardMetrics, StepMetrics, Trainer, TrainRow
from journeyman.train.reductions import token_weights


@dataclass(frozen=True)
class UpdateSpec:
    """What an RL step optimises.

    Attributes:
        loss: a checked loss; the default is DPPO with the binary TV trust region.
        reduction: entry of ``reductions.REDUCTIONS``.
        max_length: tokens, for "drgrpo".
    """

    loss: PolicyLoss = field(default_factory=lambda: resolve_loss("dppo_tv"))
    reduction: str = "prompt"
    max_length: int | None = None


def update_policy(
    trainer: Trainer,
    rows: Sequence[TrainRow],
    spec: UpdateSpec | None = None,
    *,
    before_step: Callable[[], None] = lambda: None,
) -> StepMetrics:
    """Take one optimizer step over a whole batch of trials.

    Groups whose advantages are all 0 are left out before anything is weighed: they have no gradient and would shrink
    the step. A batch without a live Group takes no step and reports zeros.

    Args:
        before_step: called when the gradient is there and the weights are still those that the step began with.

    Raises:
        InputError: unknown reduction or missing ``max_length``; a row without a trained token or with a wrong column.
    """
    spec = spec or UpdateSpec()
    live = live_rows(rows)
    prompts, live_prompts = {row.prompt for row in rows}, {row.prompt for row in live}
    dead = len(prompts) - len(live_prompts)
    if not live:
        return StepMetrics(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0, 0, 0, dead)
    weights = row_weights(live, spec)
    total = trainer.forward_backward(live, weights, spec.loss)
    before_step()
    norm = trainer.optim_step()
    return _metrics(total, norm, len(live), len(live_prompts), dead)


def live_rows(rows: Sequence[TrainRow]) -> list[TrainRow]:
    """The rows of Groups in which some advantage is not 0, in order."""
    live = {row.prompt for row in rows if row.teaches}
    return [row for row in rows if row.prompt in live]


def row_weights(rows: Sequence[TrainRow], spec: UpdateSpec) -> list[NDArray[np.float64]]:
    """Per row, float64 [tokens]: the step's fixed token weights (``reductions.token_weights``)."""
    import torch

    lengths = [len(row.ids) for row in rows]
    for i, row in enumerate(rows):
        if not lengths[i] == len(row.mask) == len(row.logprobs):
            problem = f"ids, mask, logprobs of lengths {lengths[i]}, {len(row.mask)}, {len(row.logprobs)}"
            raise InputError(f"rows[{i}]", problem, allowed="equal lengths")
    flat = token_weights(
        spec.reduction,
        mask=torch.from_numpy(np.concatenate([row.mask for row in rows])),
        sequence_of=torch.repeat_interleave(torch.arange(len(rows)), torch.tensor(lengths)),
        prompt_of=torch.tensor([row.prompt for row in rows]),
        max_length=spec.max_length,
    )
    return list(np.split(flat.numpy(), np.cumsum(lengths)[:-1]))


def _metrics(total: ForwardMetrics, norm: float, rows: int, live_groups: int, dead_groups: int) -> StepMetrics:
    tokens = max(total.tokens, 1)
    dropped = sum(n for name, n in total.counts.items() if name.startswith("dropped/"))
    return StepMetrics(
        loss=total.loss,
        grad_norm=norm,
        dropped_share=dropped / tokens,
        logprob_gap_mean=float(total.abs_gaps.mean(dtype=np.float64)),
        logprob_gap_q99=float(np.quantile(total.abs_gaps, 0.99)),
        logprob_gap_max=float(total.abs_gaps.max()),
        entropy=total.neg_logprob_sum / tokens,
        tokens=total.tokens,
        rows=rows,
        live_groups=live_groups,
        dead_groups=dead_groups,
    )
