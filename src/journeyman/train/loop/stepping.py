"""The trainer's side of the loop: one job at a time in a thread of its own, so that nobody else waits for it.

A job is an optimizer step with its push, or a checkpoint. A batch that is not finite takes no step: it is kept under
``quarantine/`` and its Groups are dropped.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from journeyman.deadline import Deadline
from journeyman.train.guards.quarantine import keep_batch, offending_rows
from journeyman.train.loop.protocol import FinishedTrial
from journeyman.train.loop.settling import SettledGroup, row_of, rows_of
from journeyman.train.loop.spec import LoopSpec
from journeyman.train.optimizer import GradientNotFinite
from journeyman.train.protocol import StepMetrics, Trainer, TrainRow, WeightReceiver
from journeyman.train.update import update_policy

T = TypeVar("T")

GAP_TRIALS = 8
"""Trials whose logprobs the trainer computes once more to compare them under the same weights: the shortest ones."""
PROBES_HELD = 16
"""Probes kept until a step of their version looks at them."""


@dataclass(frozen=True)
class StepOutcome:
    """What a step job did.

    Attributes:
        metrics: of the step; None when the batch was quarantined.
        gap: the logprob gap over tokens that the present weights sampled, or None where nothing could tell.
        reason: why the batch was quarantined, or "".
    """

    metrics: StepMetrics | None
    gap: FreshGap | None
    reason: str = ""


@dataclass(frozen=True)
class StepJob:
    """What a step needs.

    Attributes:
        trainer: holds the weights of ``version``.
        receivers: engines that get the new weights.
        spec: advantage, switches, loss and reduction.
        quarantine: directory for batches that take no step.
        probes: turns sampled whole by one version, as they come in; looked at where no trial of the step can tell.
    """

    trainer: Trainer
    receivers: Sequence[WeightReceiver]
    spec: LoopSpec
    quarantine: Path
    probes: Probes = field(default_factory=lambda: Probes())

    def run(self, groups: Sequence[SettledGroup], version: int) -> StepOutcome:
        """Take the step that makes ``version + 1`` and push it."""
        rows = rows_of(groups, self.spec.advantage, self.spec.switches)
        bad = offending_rows(rows)
        if bad:
            return self._quarantine(groups, rows, version, "; ".join(f"row {i}: {why}" for i, why in bad.items()))
        trials = [trial for group in groups for trial in group.valid]
        found = [fresh_gap(self.trainer, trials, version, whole=self.spec.whole_trials)]

        def probe() -> None:  # as late as the weights are still there: the probe was sampled meanwhile
            if found[0] is None:
                found[0] = fresh_gap(self.trainer, self.probes.of(version, self.spec.probe_wait_s), version)

        try:
            metrics = update_policy(self.trainer, rows, self.spec.update, before_step=probe)
        except GradientNotFinite as error:
            return self._quarantine(groups, rows, version, str(error))
        for receiver in self.receivers:
            self.trainer.push_weights(receiver, version + 1)
        return StepOutcome(metrics, found[0])

    def _quarantine(
        self, groups: Sequence[SettledGroup], rows: Sequence[TrainRow], version: int, reason: str
    ) -> StepOutcome:
        positions = [group.order.position for group in groups]
        facts = {"step": version + 1, "reason": reason, "positions": positions}
        keep_batch(self.quarantine / f"step-{version + 1:08d}-{positions[0]}", rows, facts)
        return StepOutcome(None, None, reason)


@dataclass(frozen=True)
class FreshGap:
    """How far engine and trainer are apart under the same weights, nats.

    Attributes:
        mean, q99: of abs(log mu - log pi), as the trainer trains: with replayed routing where it replays.
        tokens: compared.
        recomputed_mean: the mean without replayed routing, where the engine recorded experts; None elsewhere.
    """

    mean: float
    q99: float
    tokens: int
    recomputed_mean: float | None = None


class Probes:
    """Probes by the version that sampled them; the loop puts them in, the trainer's thread looks at them."""

    def __init__(self) -> None:
        self._news = threading.Condition()
        self._held: list[tuple[int, FinishedTrial]] = []

    def add(self, probes: Sequence[FinishedTrial]) -> None:
        """Take some in; the newest few versions stay."""
        with self._news:
            self._held += [(int(probe.versions.max()), probe) for probe in probes]
            self._held = self._held[-PROBES_HELD:]
            self._news.notify_all()

    def of(self, version: int, wait_s: float = 0.0) -> list[FinishedTrial]:
        """Those that a version sampled; waits at most ``wait_s`` seconds for the first."""
        with self._news:
            self._news.wait_for(lambda: self._found(version), wait_s)
            return self._found(version)

    def _found(self, version: int) -> list[FinishedTrial]:
        return [probe for of, probe in self._held if of == version]


def fresh_gap(
    trainer: Trainer, trials: Sequence[FinishedTrial], version: int, *, whole: bool = True
) -> FreshGap | None:
    """The gap over tokens that weights ``version`` sampled.

    Args:
        trainer: holds the weights of ``version``.
        trials: of a step, or probes; the shortest ``GAP_TRIALS`` that qualify are compared.
        whole: only trials that these weights sampled alone tell; False also takes the tokens of these weights in trials
            that others began, which is right where the engine computed the keys and values of those anew.

    Returns:
        None when there is none: older tokens differ from the trainer by what it has learned since.
    """
    trials = [t for t in trials if not t.facts.get("segments")]  # what an edited context showed is told by segment
    masks = {id(t): t.mask.astype(bool) & (t.versions == version) for t in trials}
    told = [t for t in trials if masks[id(t)].any()]
    if whole:
        told = [t for t in told if t.num_sampled == np.count_nonzero(masks[id(t)])]
    chosen = sorted(told, key=lambda trial: len(trial.ids))[:GAP_TRIALS]
    if not chosen:
        return None
    flat = _gaps(trainer, chosen, masks, with_experts=True)
    recomputed = None
    if all(trial.routed_experts is not None for trial in chosen):
        recomputed = float(_gaps(trainer, chosen, masks, with_experts=False).mean(dtype=np.float64))
    return FreshGap(float(flat.mean(dtype=np.float64)), float(np.quantile(flat, 0.99)), len(flat), recomputed)


def _gaps(
    trainer: Trainer, trials: Sequence[FinishedTrial], masks: Mapping[int, NDArray[np.bool_]], *, with_experts: bool
) -> NDArray[np.float32]:
    rows = [row_of(trial, with_experts=with_experts) for trial in trials]
    found = [
        np.abs(row.logprobs - values)[masks[id(trial)]]
        for trial, row, values in zip(trials, rows, trainer.forward_logprobs(rows), strict=True)
    ]
    return np.concatenate(found)


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
