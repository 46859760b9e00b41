"""How often judges were asked and failed: the count that must not hide in a mean."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from journeyman.tasks.verdict import Verdict
from journeyman.trials.judge.errors import JudgeFailed


@dataclass
class JudgeTally:
    """Counts of one judge, from any thread.

    Attributes:
        asked: judgements wanted.
        judged: judgements given.
        failed: judgements that failed in all tries.
        tries: requests sent.
        failures: failed tries by kind: ``429``, ``500``, ``silence``, ``garbage``, ...
    """

    asked: int = 0
    judged: int = 0
    failed: int = 0
    tries: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def ask(self) -> None:
        """A judgement is wanted."""
        with self._lock:
            self.asked += 1

    def tried(self, failure: str | None) -> None:
        """A request was sent; ``failure`` is its kind, or None."""
        with self._lock:
            self.tries += 1
            if failure is not None:
                self.failures[failure] += 1

    def end(self, *, is_judged: bool) -> None:
        """A judgement was given, or not."""
        with self._lock:
            self.judged += is_judged
            self.failed += not is_judged

    def report(self) -> dict[str, object]:
        """As JSON-able data, ``judge_failed`` among it."""
        with self._lock:
            return {
                "asked": self.asked,
                "judged": self.judged,
                "judge_failed": self.failed,
                "tries": self.tries,
                "failed_tries": dict(sorted(self.failures.items())),
            }


def judge_failed(verdicts: Iterable[Verdict | None]) -> int:
    """How many verdicts have no number because a judge failed; they are in no mean."""
    return sum(verdict is not None and verdict.error == JudgeFailed.__name__ for verdict in verdicts)
