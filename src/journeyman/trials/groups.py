"""The group rule and the drop-rate report: which trials of a group count, and where failures thin a task out.

A trial that broke is retried, then masked alone; the others of its group stay. Dropping whole groups is the alternative
(``rule="group"``): it wastes what worked. Dropping silently biases a group, so the report says per task how much is
missing and why.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from journeyman.trials.outcome import OUTCOMES
from journeyman.trials.record import Trial
from journeyman.trials.store.rows import TrialRow

Rule = Literal["trial", "group"]
ALARM_RATE = 0.01
"""Share of ``unclassified`` ends above which a run has an unnamed problem."""


@dataclass(frozen=True)
class Drops:
    """What is missing of one task.

    Attributes:
        task_id: which.
        trials: requests, each counted once by its last attempt.
        valid: trials with a reward that counts.
        attempts: attempts that ran for them.
        causes: rows of the error table that the dropped ones ended in, with counts.
    """

    task_id: str
    trials: int
    valid: int
    attempts: int
    causes: dict[str, int]

    @property
    def rate(self) -> float:
        """Share of its trials without a valid reward."""
        return 1.0 - self.valid / self.trials if self.trials else 0.0


@dataclass(frozen=True)
class DropReport:
    """All tasks, those that lost most first.

    Attributes:
        tasks: one entry per task.
        unclassified: share of all trials that ended in no named row.
    """

    tasks: tuple[Drops, ...]
    unclassified: float

    @property
    def trials(self) -> int:
        return sum(task.trials for task in self.tasks)

    @property
    def rate(self) -> float:
        """Share of all trials without a valid reward."""
        valid = sum(task.valid for task in self.tasks)
        return 1.0 - valid / self.trials if self.trials else 0.0

    @property
    def alarms(self) -> bool:
        """More than ``ALARM_RATE`` ended unclassified."""
        return self.unclassified > ALARM_RATE

    def lines(self) -> list[str]:
        """As text: a line for the run, a line for each task that lost something."""
        head = f"{self.trials} trials, {self.rate:.1%} without a valid reward"
        alarm = [f"unclassified errors: {self.unclassified:.1%}, above {ALARM_RATE:.0%}"] if self.alarms else []
        lost = [
            f"{task.task_id}: {task.trials - task.valid} of {task.trials} dropped ({task.rate:.0%}); "
            + ", ".join(f"{cause} {n}" for cause, n in sorted(task.causes.items()))
            for task in self.tasks
            if task.valid < task.trials
        ]
        return [head, *alarm, *lost]


def kept(group: Sequence[Trial], rule: Rule = "trial") -> list[bool]:
    """Which trials of a group are trained on.

    Args:
        group: the counting attempts of one task's group.
        rule: ``trial`` masks a trial without a valid reward alone, ``group`` all of them together.
    """
    valid = [trial.reward is not None for trial in group]
    return [all(valid)] * len(valid) if rule == "group" else valid


def drop_report(rows: Iterable[TrialRow]) -> DropReport:
    """What a run lost, from the rows of all its attempts; the last attempt of a trial is the one that counts."""
    attempts: Counter[str] = Counter()
    last: dict[str, TrialRow] = {}
    for row in rows:
        attempts[row.task_id] += 1
        if row.trial_id not in last or row.attempt > last[row.trial_id].attempt:
            last[row.trial_id] = row
    by_task: dict[str, list[TrialRow]] = {}
    for row in last.values():
        by_task.setdefault(row.task_id, []).append(row)
    tasks = [_drops(task_id, found, attempts[task_id]) for task_id, found in sorted(by_task.items())]
    unclassified = sum(row.cause == "unclassified" for row in last.values())
    return DropReport(tuple(sorted(tasks, key=lambda task: -task.rate)), unclassified / len(last) if last else 0.0)


def _drops(task_id: str, rows: Sequence[TrialRow], attempts: int) -> Drops:
    dropped = [row for row in rows if row.reward is None]
    causes = Counter(row.cause if row.cause in OUTCOMES else "unclassified" for row in dropped)
    return Drops(task_id, len(rows), len(rows) - len(dropped), attempts, dict(causes))
