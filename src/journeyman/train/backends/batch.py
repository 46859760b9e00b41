"""From the trained tokens' logprobs of some rows to the step's loss and its figures; the same for every back-end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from journeyman.errors import InputError
from journeyman.train.protocol import ForwardMetrics, TrainRow

if TYPE_CHECKING:
    from journeyman.train.losses import PolicyLoss

NOTHING = ForwardMetrics(0.0, 0, np.zeros(0, dtype=np.float32), 0.0, {})
"""The figures of no row at all."""


def loss_of(
    rows: Sequence[TrainRow], weights: Sequence[NDArray[np.float64]], loss: PolicyLoss, logp_new: Tensor
) -> tuple[Tensor, ForwardMetrics]:
    """The sum of weight x token loss over whole rows, differentiable, and its figures.

    Args:
        weights: per row, float64 [tokens].
        logp_new: float [trained tokens of all rows], in the rows' order, carries the gradient; for a loss that compares
            the likeliest tokens [trained tokens, 1 + k], those of ``topk_ids`` after the token itself.
    """
    device, extra = logp_new.device, None
    if "topk_logp_new" in loss.needs:
        rollout_topk = trained(rows, [row.topk_logprobs for row in with_topk(rows)]).to(device)
        extra = {"topk_logp_rollout": rollout_topk, "topk_logp_new": logp_new[:, 1:].detach()}
        logp_new = logp_new[:, 0]
    rollout = trained(rows, [row.logprobs for row in rows]).to(device)
    counts = torch.tensor([int(np.count_nonzero(row.mask)) for row in rows], device=device)
    output = loss.apply(
        logp_rollout=rollout,
        logp_old=_old(rows, logp_new) if "logp_old" in loss.needs else None,
        logp_new=logp_new,
        advantages=_advantages(rows).to(device),
        mask=torch.ones(len(logp_new), dtype=torch.bool, device=device),
        weights=trained(rows, weights).to(device),
        sequence_of=torch.arange(len(rows), device=device).repeat_interleave(counts),
        extra=extra,
    )
    logp = logp_new.detach()
    metrics = ForwardMetrics(
        loss=float(output.loss.detach()),
        tokens=len(logp),
        abs_gaps=(rollout - logp).abs().float().cpu().numpy(),
        neg_logprob_sum=-float(logp.sum()),
        counts=output.metrics,
    )
    return output.loss, metrics


def trained(rows: Sequence[TrainRow], columns: Sequence[Any]) -> Tensor:
    """The values of a column at the trained tokens of all rows, one after the other."""
    picked = [column[row.mask.astype(bool)] for row, column in zip(rows, columns, strict=True)]
    return torch.from_numpy(np.concatenate(picked))


def spread(rows: Sequence[TrainRow], logprobs: NDArray[np.floating]) -> list[NDArray[np.float32]]:
    """The other way round: per row, float32 [tokens], 0 where nothing is trained."""
    ends = np.cumsum([np.count_nonzero(row.mask) for row in rows])
    results = []
    for row, values in zip(rows, np.split(logprobs, ends[:-1]), strict=True):
        column = np.zeros(len(row.ids), dtype=np.float32)
        column[row.mask.astype(bool)] = values
        results.append(column)
    return results


def add(a: ForwardMetrics, b: ForwardMetrics) -> ForwardMetrics:
    """Figures of two parts together."""
    counts = {name: a.counts.get(name, 0.0) + b.counts.get(name, 0.0) for name in a.counts | b.counts}
    return ForwardMetrics(
        loss=a.loss + b.loss,
        tokens=a.tokens + b.tokens,
        abs_gaps=np.concatenate([a.abs_gaps, b.abs_gaps]),
        neg_logprob_sum=a.neg_logprob_sum + b.neg_logprob_sum,
        counts=counts,
    )


def with_topk(rows: Sequence[TrainRow]) -> Sequence[TrainRow]:
    """The rows, when each carries the rollout's likeliest tokens. Raises InputError."""
    count = sum(row.topk_ids is not None and row.topk_logprobs is not None for row in rows)
    if count != len(rows):
        raise InputError(
            "rows", f"{count} of {len(rows)} carry topk_ids and topk_logprobs", allowed="all, for this loss"
        )
    return rows


def asked_ids(rows: Sequence[TrainRow]) -> Tensor:
    """int64 [trained tokens, 1 + k]: each trained token and after it the rollout's likeliest ones at its place."""
    own = trained(rows, [row.ids for row in rows])[:, None]
    return torch.cat([own, trained(rows, [row.topk_ids for row in with_topk(rows)])], 1).long()


def _advantages(rows: Sequence[TrainRow]) -> Tensor:
    columns = [
        np.full(len(row.ids), row.advantage, np.float32) if row.token_advantages is None else row.token_advantages
        for row in rows
    ]
    return trained(rows, columns)


def _old(rows: Sequence[TrainRow], logp_new: Tensor) -> Tensor:
    columns = [row.old_logprobs for row in rows if row.old_logprobs is not None]
    if len(columns) == len(rows):
        return trained(rows, columns).to(logp_new.device)
    if columns:
        raise InputError("rows", f"{len(columns)} of {len(rows)} carry old_logprobs", allowed="all or none")
    return logp_new.detach()
