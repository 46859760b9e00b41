"""Grades attempts that ended and closes their records, in a thread beside the engine.

Grading happens in portions, in the grader's own sandbox. A broken verifier is asked once more on the saved artifacts;
the agent never runs again for it. What ``take`` returned is durable: its record is closed and the index has its row.
"""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from journeyman.tasks.artifacts import write_artifacts
from journeyman.tasks.grading import PORTION, GradeItem, Grader
from journeyman.tasks.verdict import Verdict
from journeyman.trials.outcome import classify, outcome_of
from journeyman.trials.record import Trial
from journeyman.trials.store.hot import HotTrial
from journeyman.trials.store.owner import Owner

ARTIFACTS = "artifacts"
"""Directory of saved deliverables below a run, one directory per attempt as below ``trials``."""
WRITERS = 8
"""Records closed at once: each waits for the disk several times."""
_INLINE_BYTES = 20_000


@dataclass
class Closing:
    """An attempt on its way to its row.

    Attributes:
        trial: what it did; gets its verdict and outcome.
        fault: what broke, or None.
        hot: its open record, or None where nothing is stored.
        facts: phases and the like, for the record.
    """

    trial: Trial
    fault: Exception | None
    hot: HotTrial | None
    facts: dict[str, Any]


class Closer:
    """Takes ended attempts and returns them with their outcomes.

    Args:
        grader: gives verdicts.
        root: the run directory; None stores nothing.
        owner: acknowledges closed trials; None leaves that to a later owner.

    Attributes:
        bell: becomes readable when there is something to ``take``.
    """

    def __init__(self, grader: Grader, root: Path | None, owner: Owner | None) -> None:
        self._grader, self._root, self._owner = grader, root, owner
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="closing")
        self._writers = ThreadPoolExecutor(max_workers=WRITERS, thread_name_prefix="records")
        self._waiting: list[Closing] = []
        self._at_work: tuple[Future[list[Trial]], int] | None = None
        self.bell, self._rope = socket.socketpair()
        self.bell.setblocking(False)

    @property
    def backlog(self) -> int:
        """Attempts that have no row yet."""
        return len(self._waiting) + (self._at_work[1] if self._at_work is not None else 0)

    @property
    def is_idle(self) -> bool:
        """Nothing waits and nothing is being graded."""
        return not self._waiting and self._at_work is None

    def add(self, item: Closing) -> None:
        """Take an attempt that ended."""
        self._waiting.append(item)

    @property
    def is_due(self) -> bool:
        """``take`` has something to return or to start."""
        return self._at_work[0].done() if self._at_work is not None else bool(self._waiting)

    def take(self) -> list[Trial]:
        """Attempts that have their row since the last call; starts the next portion when the thread is free."""
        found: list[Trial] = []
        with contextlib.suppress(BlockingIOError):
            self.bell.recv(64)
        if self._at_work is not None and self._at_work[0].done():
            found = self._at_work[0].result()
            self._at_work = None
        if self._at_work is None and self._waiting:
            portion, self._waiting = self._waiting[:PORTION], self._waiting[PORTION:]
            work = self._pool.submit(self._close_all, portion)
            self._at_work = work, len(portion)
            work.add_done_callback(lambda _: self._rope.send(b"."))
        return found

    def close(self) -> None:
        """Wait for the portion at work."""
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._writers.shutdown(wait=True, cancel_futures=True)
        self.bell.close()
        self._rope.close()

    def _close_all(self, portion: Sequence[Closing]) -> list[Trial]:
        graded = [item for item in portion if item.fault is None or classify(item.fault).grade]
        self._judge(graded)
        self._judge([g for g in graded if g.trial.verdict is not None and g.trial.verdict.kind == "verifier_error"])
        for item in portion:
            trial = item.trial
            trial.outcome = outcome_of(trial.verdict, trial.stop_reason, item.fault)
        if len(portion) == 1:
            self._store(portion[0])
        else:
            list(self._writers.map(self._store, portion))
        return [item.trial for item in portion]

    def _judge(self, items: Sequence[Closing]) -> None:
        if not items:
            return
        asked = [GradeItem(i.trial.request.trial_id, i.trial.request.task, i.trial.artifacts) for i in items]
        verdicts: list[Verdict] = self._grader.grade(asked)
        for item, verdict in zip(items, verdicts, strict=True):
            item.trial.verdict = verdict

    def _store(self, item: Closing) -> None:
        if item.hot is None:
            return
        trial = item.trial
        with item.hot as hot:
            if trial.artifacts and self._root is not None:
                place = hot.directory.relative_to(self._root / "trials")
                write_artifacts(trial.artifacts, self._root / ARTIFACTS / place)
            facts = _jsonable(item.facts)
            hot.event("ended", stop_reason=trial.stop_reason, error=trial.error, **facts)
            if trial.verdict is not None:
                hot.event("graded", verdict=trial.verdict.kind, reward=trial.verdict.reward)
            directory = hot.close(record_of(trial, facts))
        if self._owner is not None:
            self._owner.admit(directory, hot.stored)


def record_of(trial: Trial, facts: dict[str, Any]) -> dict[str, Any]:
    """``Trial.summary`` with phases; long and binary deliverables are named only, their bytes lie in ``artifacts/``."""
    record = trial.summary()
    for name, data in (trial.artifacts or {}).items():
        if len(data) > _INLINE_BYTES or b"\0" in data:
            record["deliverables"][name] = f"<{len(data)} bytes in {ARTIFACTS}/>"
    return {**record, **facts, "masked": trial.reward is None}


def _jsonable(facts: dict[str, Any]) -> dict[str, Any]:
    """Facts as they came over a socket or were made here; anything odd becomes text."""
    found: dict[str, Any] = json.loads(json.dumps(facts, default=str, allow_nan=True).replace("NaN", "null"))
    return found
