"""Trials in processes of their own, streaming: the process executor's owner loop without an end to its batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from journeyman.engines.protocol import Engine
from journeyman.tasks.grading import Grader
from journeyman.trials.executors.closing import Closer
from journeyman.trials.executors.dispatch import Dispatch, Job
from journeyman.trials.executors.process import allow_descriptors
from journeyman.trials.executors.protocol import Launcher, WorkplaceRecipe
from journeyman.trials.executors.supervised import SupervisedLauncher
from journeyman.trials.limits import Limits
from journeyman.trials.record import Trial, TrialRequest


class Stream(Dispatch):
    """``Dispatch`` that takes requests at any time and hands trials out as they end."""

    def __init__(self, engine: Engine, launcher: Launcher, closer: Closer, **options: Any) -> None:
        super().__init__(engine, launcher, closer, **options)
        self._ended: list[Trial] = []
        self._cancelled: set[str] = set()

    @property
    def running(self) -> int:
        """Attempts alive."""
        return len(self._running)

    @property
    def is_decoding(self) -> bool:
        """Some turn is under way."""
        return self._turns.any

    @property
    def is_idle(self) -> bool:
        """Nothing waits, runs or is being graded."""
        return not self._running and not self._has_jobs() and self._closer.is_idle

    def add(self, requests: Sequence[TrialRequest], attempts: int) -> None:
        """Take trials."""
        for request in requests:
            job = Job(request, tries=attempts)
            self._jobs[request.trial_id] = job
            self._waiting.append(job)

    def limit(self, at_once: int) -> None:
        """Run at most that many at once from now on."""
        self._concurrency = at_once

    def cancel(self, trial_ids: set[str]) -> None:
        """End trials now; they are not reported."""
        self._waiting = type(self._waiting)(job for job in self._waiting if job.request.trial_id not in trial_ids)
        self._resting = [job for job in self._resting if job.request.trial_id not in trial_ids]
        for trial_id in trial_ids & self._by_trial.keys():
            self._cancelled.add(trial_id)
            self._end(self._by_trial[trial_id], KeyboardInterrupt("its group was given up"))

    def round(self) -> list[Trial]:
        """One round; trials that have their outcome, retries excluded."""
        self._round()
        ended, self._ended = self._ended, []
        return ended

    def close(self) -> None:
        """Hang up on whatever runs; the launcher ends it."""
        for attempt in tuple(self._running.values()):
            self._hang_up(attempt)
        self._selector.close()

    def _closed(self, trial: Trial) -> None:
        super()._closed(trial)
        trial_id = trial.request.trial_id
        if trial_id in self._cancelled:
            self._cancelled.discard(trial_id)
            self._resting = [job for job in self._resting if job.request.trial_id != trial_id]
        elif any(job.request.trial_id == trial_id for job in self._resting):
            return  # it is attempted again
        else:
            self._ended.append(trial)
        del self._jobs[trial_id]


@dataclass
class ProcessWork:
    """Streams trials over one engine, each attempt in its own process; one thread owns it.

    Args:
        engine, grader, seed, limits, attempts, at_once: as for ``InlineWork``.
        workplace: how supervisors make what trials share.
        supervisors: small processes that fork attempts.
        launcher: starts attempts in their place, such as on a Ray cluster; it is closed with this.
        log: descriptor for what they say on stderr.
    """

    engine: Engine
    workplace: WorkplaceRecipe
    grader: Grader
    seed: int
    limits: Limits
    attempts: int = 2
    at_once: int = 64
    supervisors: int = 1
    log: int | None = None
    launcher: Launcher | None = None

    def __post_init__(self) -> None:
        allow_descriptors(6 * self.at_once + 512)
        if self.launcher is None:
            self.launcher = SupervisedLauncher(self.workplace, count=self.supervisors, log=self.log)
        self._closer = Closer(self.grader, None, None)
        self._stream = Stream(
            self.engine,
            self.launcher,
            self._closer,
            seed=self.seed,
            limits=self.limits,
            concurrency=self.at_once,
        )

    @property
    def running(self) -> int:
        """Trials begun and not ended."""
        return self._stream.running

    @property
    def is_decoding(self) -> bool:
        """Some turn is under way."""
        return self._stream.is_decoding

    @property
    def is_idle(self) -> bool:
        """Nothing waits, runs or is being graded."""
        return self._stream.is_idle

    def add(self, requests: Sequence[TrialRequest]) -> None:
        """Take trials."""
        self._stream.add(requests, self.attempts)

    def limit(self, at_once: int) -> None:
        """Run at most that many at once from now on."""
        self._stream.limit(at_once)

    def cancel(self, trial_ids: set[str]) -> None:
        """End trials now; they are not reported."""
        self._stream.cancel(trial_ids)

    def step(self) -> list[Trial]:
        """One round of the owner's loop."""
        return self._stream.round()

    def wait_s(self) -> float:
        """0: a round waits by itself for what may come."""
        return 0.0

    def close(self) -> None:
        """End every attempt and the supervisors."""
        self._stream.close()
        assert self.launcher is not None
        self.launcher.close()
        self._closer.close()
