"""Executor ``process``: one forked process per attempt, a supervisor outside it, the engine in this process."""

from __future__ import annotations

import resource
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType

from journeyman.engines.protocol import Engine
from journeyman.tasks.grading import Grader
from journeyman.trials.executors.closing import Closer
from journeyman.trials.executors.dispatch import Dispatch
from journeyman.trials.executors.protocol import Launcher, WorkplaceRecipe
from journeyman.trials.executors.supervised import SupervisedLauncher
from journeyman.trials.limits import Limits
from journeyman.trials.record import Trial, TrialRequest
from journeyman.trials.resume import jobs_of
from journeyman.trials.store.owner import Owner


class ProcessExecutor:
    """Runs batches of trials, each attempt in its own process. A context manager: leaving it ends the supervisors.

    Args:
        engine: decodes all running trials together; only the thread that calls ``run`` touches it.
        workplace: how supervisors make what their trials share.
        seed: root of the sampling noise.
        limits: of every attempt.
        concurrency: attempts alive at once.
        max_attempts: attempts per trial when the error table says retry.
        supervisors: small processes that fork attempts; more of them lose less when one is killed.
        owner: of the run directory that gets the records; None keeps trials in memory only.
        is_cancelled: asked often; once true, what runs is killed and ends as ``cancelled``.
        on_closed: told every attempt that has its row.
    """

    def __init__(
        self,
        engine: Engine,
        workplace: WorkplaceRecipe,
        *,
        seed: int,
        limits: Limits | None = None,
        concurrency: int = 64,
        max_attempts: int = 2,
        supervisors: int = 1,
        owner: Owner | None = None,
        log: int | None = None,
        is_cancelled: Callable[[], bool] = lambda: False,
        on_closed: Callable[[Trial], None] = lambda trial: None,
    ) -> None:
        self.engine, self.seed, self.limits = engine, seed, limits or Limits()
        self.concurrency, self.max_attempts = concurrency, max_attempts
        self._owner, self._is_cancelled, self._on_closed = owner, is_cancelled, on_closed
        allow_descriptors(6 * concurrency + 512)
        self.launcher: Launcher = self._launcher(workplace, supervisors, log)

    def _launcher(self, workplace: WorkplaceRecipe, supervisors: int, log: int | None) -> Launcher:
        return SupervisedLauncher(workplace, count=supervisors, log=log)

    def __enter__(self) -> ProcessExecutor:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the supervisors and whatever runs below them."""
        self.launcher.close()

    def run(self, requests: Sequence[TrialRequest], grader: Grader) -> list[Trial]:
        """Run, retry and grade; every attempt of this call, those of one request in order of attempt.

        Where the run directory holds closed trials of these requests already, they are not run again and not returned;
        attempts that were open when their owner was killed are closed as ``cancelled`` first.
        """
        root: Path | None = self._owner.run if self._owner is not None else None
        jobs = jobs_of(requests, self._owner, self.max_attempts)
        closer = Closer(grader, root, self._owner)
        try:
            Dispatch(
                self.engine,
                self.launcher,
                closer,
                seed=self.seed,
                limits=self.limits,
                concurrency=self.concurrency,
                root=root,
                is_cancelled=self._is_cancelled,
                on_closed=self._on_closed,
            ).run(jobs)
        finally:
            closer.close()
        return [trial for job in jobs for trial in job.ended]


def allow_descriptors(wanted: int) -> None:
    """Raise the soft limit on open files as far as the hard one lets."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
