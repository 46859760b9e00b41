"""The Trainer verbs on one device, full float32, one process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from journeyman.errors import InputError
from journeyman.train.backends.decoder import check_supported, token_logprobs
from journeyman.train.checkpoint import load_checkpoint, save_checkpoint
from journeyman.train.layout import layout_of
from journeyman.train.losses import PolicyLoss
from journeyman.train.model import CausalLM
from journeyman.train.optimizer import OptimizerSpec, PolicyOptimizer
from journeyman.train.packing import grouped_batches
from journeyman.train.protocol import ForwardMetrics, TrainRow, WeightReceiver

TOKENS_PER_MICRO_BATCH = 4096
"""Default budget of a micro-batch. On CPU the fastest is what a core's cache holds (measured: 2k to 6k); no result
depends on it."""

RL_OPTIMIZER = OptimizerSpec(lr=3e-4)
"""Of the RL stage: AdamW, fresh, no schedule."""


class TorchTrainer:
    """A policy and its optimizer on this machine's CPU.

    Args:
        model: float32 Qwen3 or Llama; trained in place.
        optimizer: rates.
        train_threads: torch threads inside each verb; None leaves torch's setting alone. Across numbers of threads
            results agree to the last few bits, not to the bit.
        tokens_per_micro_batch: budget of one forward and backward.
        steps: optimizer steps done before, for the names of checkpoints.

    Attributes:
        tokens_forwarded: tokens of all rows that went through a forward so far, with or without gradient.
    """

    def __init__(
        self,
        model: CausalLM,
        optimizer: OptimizerSpec = RL_OPTIMIZER,
        *,
        train_threads: int | None = None,
        tokens_per_micro_batch: int = TOKENS_PER_MICRO_BATCH,
        steps: int = 0,
    ) -> None:
        check_supported(model)
        self.model, self.steps = model, steps
        self.tokens_forwarded = 0
        self._optimizer = PolicyOptimizer(model, optimizer)
        self._threads, self._cap = train_threads, tokens_per_micro_batch

    def forward_backward(
        self, rows: Sequence[TrainRow], weights: Sequence[NDArray[np.float64]], loss: PolicyLoss
    ) -> ForwardMetrics:
        """As ``Trainer.forward_backward``. One forward per token, whatever the loss needs."""
        total = ForwardMetrics(0.0, 0, np.zeros(0, dtype=np.float32), 0.0, {})
        with threads(self._threads):
            for part in self._micro_batches(rows):
                total = _add(total, self._one([rows[i] for i in part], [weights[i] for i in part], loss))
        return total

    def _one(
        self, rows: Sequence[TrainRow], weights: Sequence[NDArray[np.float64]], loss: PolicyLoss
    ) -> ForwardMetrics:
        logp_new = self._logprobs(rows)
        rollout = _trained(rows, [row.logprobs for row in rows])
        counts = torch.tensor([int(np.count_nonzero(row.mask)) for row in rows])
        output = loss.apply(
            logp_rollout=rollout,
            logp_old=_old(rows, logp_new) if "logp_old" in loss.needs else None,
            logp_new=logp_new,
            advantages=torch.tensor([row.advantage for row in rows]).repeat_interleave(counts),
            mask=torch.ones(len(logp_new), dtype=torch.bool),
            weights=_trained(rows, weights),
            sequence_of=torch.arange(len(rows)).repeat_interleave(counts),
        )
        output.loss.backward()  # type: ignore[no-untyped-call]
        logp = logp_new.detach()
        gap = (rollout - logp).abs()
        return ForwardMetrics(
            loss=float(output.loss.detach()),
            tokens=len(logp),
            abs_gaps=gap.float().numpy(),
            neg_logprob_sum=-float(logp.sum()),
            counts=output.metrics,
        )

    def forward_logprobs(self, rows: Sequence[TrainRow]) -> list[NDArray[np.float32]]:
        """As ``Trainer.forward_logprobs``."""
        results = [np.zeros(len(row.ids), dtype=np.float32) for row in rows]
        with threads(self._threads), torch.no_grad():
            for part in self._micro_batches(rows):
                logprobs = self._logprobs([rows[i] for i in part]).numpy()
                ends = np.cumsum([np.count_nonzero(rows[i].mask) for i in part])
                for i, values in zip(part, np.split(logprobs, ends[:-1]), strict=True):
                    results[i][rows[i].mask.astype(bool)] = values
        return results

    def optim_step(self) -> float:
        """As ``Trainer.optim_step``."""
        with threads(self._threads):
            norm = self._optimizer.step()
        self.steps += 1
        return norm

    def save_state(self, root: Path, extra: dict[str, Any] | None = None) -> Path:
        """As ``Trainer.save_state``; the directory is named by the steps done."""
        return save_checkpoint(root, self.steps, self.model, self._optimizer, extra or {})

    def load_state(self, path: Path) -> dict[str, Any]:
        """As ``Trainer.load_state``."""
        checkpoint = load_checkpoint(path)
        checkpoint.restore(self.model, self._optimizer)
        self.steps = checkpoint.step
        return checkpoint.extra

    def push_weights(self, engine: WeightReceiver, version: int) -> None:
        """As ``Trainer.push_weights``: copies, so that the next step cannot change what the engine serves."""
        engine.update_weights({name: t.detach().clone() for name, t in self.model.state_dict().items()}, version)

    def _logprobs(self, rows: Sequence[TrainRow]) -> Tensor:
        layout = layout_of([row.ids for row in rows], [row.mask for row in rows], share_prefixes=True)
        self.tokens_forwarded += layout.num_tokens
        return token_logprobs(self.model, layout)

    def _micro_batches(self, rows: Sequence[TrainRow]) -> list[list[int]]:
        return grouped_batches([len(row.ids) for row in rows], [row.prompt for row in rows], self._cap)


def _trained(rows: Sequence[TrainRow], columns: Sequence[NDArray[Any]]) -> Tensor:
    picked = [column[row.mask.astype(bool)] for row, column in zip(rows, columns, strict=True)]
    return torch.from_numpy(np.concatenate(picked))


def _old(rows: Sequence[TrainRow], logp_new: Tensor) -> Tensor:
    columns = [row.old_logprobs for row in rows if row.old_logprobs is not None]
    if len(columns) == len(rows):
        return _trained(rows, columns)
    if columns:
        raise InputError("rows", f"{len(columns)} of {len(rows)} carry old_logprobs", allowed="all or none")
    return logp_new.detach()


def _add(a: ForwardMetrics, b: ForwardMetrics) -> ForwardMetrics:
    counts = {name: a.counts.get(name, 0.0) + b.counts.get(name, 0.0) for name in a.counts | b.counts}
    return ForwardMetrics(
        loss=a.loss + b.loss,
        tokens=a.tokens + b.tokens,
        abs_gaps=np.concatenate([a.abs_gaps, b.abs_gaps]),
        neg_logprob_sum=a.neg_logprob_sum + b.neg_logprob_sum,
        counts=counts,
    )


@contextmanager
def threads(count: int | None) -> Iterator[None]:
    """Run the body with ``count`` torch threads, then go back to as many as before; None changes nothing."""
    if count is None or count == torch.get_num_threads():
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
