"""The trainer's side of the loop: one job at a time in a thread of its own, so that nobody else waits for it.

A job is an optimizer step with its push, or a checkpoint. A batch that is not finite takes no step: it is kept under
``quarantine/`` and its Groups are dropped.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np

from journeyman.deadline import Deadline
from journeyman.train.guards.quarantine import keep_batch, offending_rows
from journeyman.train.loop.protocol import FinishedTrial
from journeyman.train.loop.settling import SettledGroup, rows_of
from journeyman.train.loop.spec import LoopSpec
from journeyman.train.optimizer import GradientNotFinite
from journeyman.train.protocol import StepMetrics, Trainer, TrainRow, WeightReceiver
from journeyman.train.update import update_policy

T = TypeVar("T")

GAP_TRIALS = 8
"""Trials whose logprobs the trainer computes once more to compare them under the same weights: the shortest ones."""


@dataclass(frozen=True)
class StepOutcome:
    """What a step job did.

    Attributes:
        metrics: of the step; None when the batch was quarantined.
        gap: mean and 99 % quantile of the logprob gap over trials sampled by the present weights alone, or None.
        reason: why the batch was quarantined, or "".
    """

    metrics: StepMetrics | None
    gap: tuple[float, float] | None
    reason: str = ""


@dataclass(frozen=True)
class StepJob:
    """What a step needs.

    Attributes:
        trainer: holds the weights of ``version``.
        receivers: engines that get the new weights.
        spec: advantage, switches, loss and reduction.
        quarantine: directory for batches that take no step.
    """

    trainer: Trainer
    receivers: Sequence[WeightReceiver]
    spec: LoopSpec
    quarantine: Path

    def run(self, groups: Sequence[SettledGroup], version: int) -> StepOutcome:
        """Take the step that makes ``version + 1`` and push it."""
        rows = rows_of(groups, self.spec.advantage, self.spec.switches)
        bad = offending_rows(rows)
        if bad:
            return self._quarantine(groups, rows, version, "; ".join(f"row {i}: {why}" for i, why in bad.items()))
        gap = fresh_gap(self.trainer, [trial for group in groups for trial in group.valid], version)
        try:
            metrics = update_policy(self.trainer, rows, self.spec.update)
        except GradientNotFinite as error:
            return self._quarantine(groups, rows, version, str(error))
        for receiver in self.receivers:
            self.trainer.push_weights(receiver, version + 1)
        return StepOutcome(metrics, gap)

    def _quarantine(
        self, groups: Sequence[SettledGroup], rows: Sequence[TrainRow], version: int, reason: str
    ) -> StepOutcome:
        positions = [group.order.position for group in groups]
        facts = {"step": version + 1, "reason": reason, "positions": positions}
        keep_batch(self.quarantine / f"step-{version + 1:08d}-{positions[0]}", rows, facts)
        return StepOutcome(None, None, reason)


def fresh_gap(trainer: Trainer, trials: Sequence[FinishedTrial], version: int) -> tuple[float, float] | None:
    """Mean and 99 % quantile of abs(log mu - log pi) over trials that weights ``version`` alone sampled, nats.

    Args:
        trainer: holds the weights of ``version``.
        trials: of a step; the shortest ``GAP_TRIALS`` that qualify are compared.

    Returns:
        None when there is none: older tokens differ from the trainer by what it has learned since.
    """
    fresh = [t for t in trials if t.num_sampled and bool((t.versions[t.mask.astype(bool)] == version).all())]
    chosen = sorted(fresh, key=lambda trial: len(trial.ids))[:GAP_TRIALS]
    if not chosen:
        return None
    rows = [TrainRow(trial.ids, trial.mask, trial.logprobs, 0.0, 0) for trial in chosen]
    gaps = [
        np.abs(row.logprobs - values)[row.mask.astype(bool)]
        for row, values in zip(rows, trainer.forward_logprobs(rows), strict=True)
    ]
    flat = np.concatenate(gaps)
    return float(flat.mean(dtype=np.float64)), float(np.quantile(flat, 0.99))


class OneJob(Generic[T]):
    """A thread that does one job at a time, with a deadline, and counts the seconds it worked."""

    def __init__(self, name: str) -> None:
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)
        self._job: tuple[Future[T], Deadline, float] | None = None
        self._done_s = 0.0

    @property
    def is_busy(self) -> bool:
        """A job is under way, or its result was not taken yet."""
        return self._job is not None

    @property
    def busy_s(self) -> float:
        """Seconds of all jobs so far, the one under way included."""
        return self._done_s + (time.monotonic() - self._job[2] if self._job is not None else 0.0)

    def start(self, work: Callable[[], T], what: str, limit_s: float) -> None:
        """Begin a job."""
        assert self._job is None
        began = time.monotonic()
        self._job = self._pool.submit(work), Deadline.after(limit_s, what), began

    def poll(self) -> Future[T] | None:
        """The job when it has ended, once; None otherwise. Raises DeadlinePassed when it takes too long."""
        if self._job is None:
            return None
        future, deadline, began = self._job
        if not future.done():
            deadline.check()
            return None
        self._done_s += time.monotonic() - began
        self._job = None
        return future

    def close(self, *, wait: bool) -> None:
        """End the thread; ``wait`` for what it does."""
        self._pool.shutdown(wait=wait, cancel_futures=True)
