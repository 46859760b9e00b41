"""Evaluation beside training: a second engine with its own threads measures frozen weights on dev meanwhile."""

from __future__ import annotations

import math
import threading
import time
from typing import Any

from journeyman.errors import DeadlinePassed
from journeyman.evals.passk import pass_at_k
from journeyman.train.loop.protocol import FinishedTrial, GroupOrder, Measured, TrialSource


class SideEvaluator:
    """An ``Evaluator`` over a source of its own.

    Args:
        source: on the dev tasks.
        tasks: how many.
        samples: trials per task. k: of pass@k.
    """

    def __init__(self, source: TrialSource, tasks: int, samples: int, k: int) -> None:
        self._source, self._tasks, self._samples, self._k = source, tasks, samples, k
        self._lock = threading.Lock()
        self._version: int | None = None
        self._trials: dict[tuple[int, int], FinishedTrial] = {}

    @property
    def is_busy(self) -> bool:
        """See ``Evaluator.is_busy``."""
        with self._lock:
            return self._version is not None

    def update_weights(self, state: Any, version: int) -> None:
        """See ``Evaluator.update_weights``."""
        with self._lock:
            if self._version is not None:
                return
            self._version, self._trials = version, {}
        self._source.update_weights(state, version)
        self._source.submit([GroupOrder(task, task, self._samples, version) for task in range(self._tasks)])

    def poll(self) -> list[Measured]:
        """See ``Evaluator.poll``."""
        arrivals = self._source.poll(0.0)
        with self._lock:
            if self._version is None:
                return []
            for trial in arrivals.trials:
                self._trials[trial.position, trial.sample] = trial
            missing = [
                GroupOrder(task, task, self._samples, self._version, lacking)
                for task in arrivals.lost
                if (lacking := tuple(s for s in range(self._samples) if (task, s) not in self._trials))
            ]
            if missing:
                self._source.submit(missing)
            if len(self._trials) < self._tasks * self._samples:
                return []
            found = measured_of(self._version, list(self._trials.values()), self._k)
            self._version = None
            return [found]

    def finish(self, deadline_s: float) -> list[Measured]:
        """See ``Evaluator.finish``."""
        until, found = time.monotonic() + deadline_s, self.poll()
        while self.is_busy:
            if time.monotonic() > until:
                raise DeadlinePassed(f"the evaluation of version {self._version}", deadline_s)
            time.sleep(0.02)
            found += self.poll()
        return found

    def close(self) -> None:
        """See ``Evaluator.close``."""
        self._source.close()


def measured_of(version: int, trials: list[FinishedTrial], k: int) -> Measured:
    """The figures of an evaluation; trials without a valid reward leave every denominator."""
    by_task: dict[int, list[FinishedTrial]] = {}
    for trial in trials:
        if trial.reward is not None:
            by_task.setdefault(trial.position, []).append(trial)
    graded = [trial for found in by_task.values() for trial in found]
    if not graded:
        return Measured(version, None, None, None, k, 0.0, 0)

    def mean(values: list[float]) -> float:
        return sum(values) / len(values)

    ones = [mean([float(bool(t.passed)) for t in found]) for found in by_task.values()]
    rewards = [mean([float(t.reward or 0.0) for t in found]) for found in by_task.values()]
    ks = [pass_at_k(len(found), sum(bool(t.passed) for t in found), k) for found in by_task.values() if len(found) >= k]
    pass_k = mean(ks) if ks else None
    error = 0.0
    if pass_k is not None and len(ks) > 1:
        error = math.sqrt(sum((value - pass_k) ** 2 for value in ks) / (len(ks) - 1) / len(ks))
    return Measured(version, mean(rewards), mean(ones), pass_k, k, error, len(graded))
