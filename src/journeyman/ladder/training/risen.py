"""Which kinds of tasks rose in an overfit run, and what the verdicts of the others say.

An agent that cannot be overfitted to a kind of task is more often the verifier's fault than the agent's: in published
work the tasks graded by file differences did not rise, and the difference tool was wrong. So those that did not rise
are named with the words of their verdicts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import PurePosixPath
from typing import Any

from journeyman.tasks.task import Task

SOLVED = 0.95
"""Mean reward at which a kind of task has no room to rise."""

SHOWN = 3
"""Explanations given per kind, the most frequent first."""

Row = Mapping[str, Any]
"""One trial: ``task``, ``world``, ``family``, ``reward``, ``passed``, ``outcome``, ``explain``, ``failed``."""


@dataclass(frozen=True)
class Kind:
    """One kind of task and what became of it.

    Attributes:
        what, name: ``verifier`` ``check``, ``deliverable`` ``.json``, ``family`` ``lookup``, ...
        tasks: overfitted. seen: in the task set; those without reward variance were not chosen.
        before, after: mean reward, sampled afresh before and after; None where no task was chosen.
        curve: mean reward of each step.
        verdict: ``rose``, ``did not rise``, ``solved before``, or ``no variance``.
        words: the most frequent explanations of trials that were not paid in full, with counts.
    """

    what: str
    name: str
    tasks: int
    seen: int
    before: float | None
    after: float | None
    curve: tuple[float | None, ...]
    verdict: str
    words: tuple[tuple[str, int], ...]

    def lines(self) -> list[str]:
        """As text; explanations only where it did not rise."""
        if self.before is None or self.after is None:
            head = f"{self.what} {self.name}: {self.verdict} in any of its {self.seen} tasks"
        else:
            rise = f"{self.before:.3f} -> {self.after:.3f}"
            head = f"{self.what} {self.name}: {self.verdict}, mean reward {rise} on {self.tasks} of {self.seen} tasks"
        if self.verdict not in ("did not rise", "no variance"):
            return [head]
        return [head, *(f"    {count} x {words}" for words, count in self.words)]

    def as_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return asdict(self)


def kinds_of(task: Task) -> dict[str, str]:
    """The kinds a task belongs to: how it is graded, what it delivers, its template family."""
    if task.is_judged:
        verifier = "judge"
    elif (task.tests / "check.py").is_file():
        verifier = "check"
    else:
        verifier = "script"
    suffixes = sorted({PurePosixPath(name).suffix or "directory" for name in task.deliverables})
    return {"verifier": verifier, "deliverable": "+".join(suffixes) or "any", "family": task.family}


def judge_kinds(
    tasks: Mapping[str, Mapping[str, str]],
    screened: Sequence[Row],
    before: Sequence[Row],
    steps: Sequence[Sequence[Row]],
    after: Sequence[Row],
    min_rise: float,
) -> list[Kind]:
    """Every kind, those that did not rise first.

    Args:
        tasks: of the whole set, id -> ``kinds_of``.
        screened: trials of the screening, all tasks. before, after: fresh trials of the chosen tasks.
        steps: trials of each step.
        min_rise: in mean reward, below which a kind has not risen.
    """
    found = []
    for what, name in sorted({pair for kinds in tasks.values() for pair in kinds.items()}):
        members = {task for task, kinds in tasks.items() if kinds.get(what) == name}
        first, last = _of(before, members), _of(after, members)
        chosen = {row["task"] for row in first}
        b, a = mean_reward(first), mean_reward(last)
        if b is None or a is None:
            verdict, said = "no variance", _of(screened, members)
        else:
            verdict = "rose" if a - b >= min_rise else "solved before" if b >= SOLVED else "did not rise"
            said = last
        curve = tuple(mean_reward(_of(rows, members)) for rows in steps)
        found.append(Kind(what, name, len(chosen), len(members), b, a, curve, verdict, words_of(said)))
    rank = {"did not rise": 0, "no variance": 1, "rose": 2, "solved before": 3}
    return sorted(found, key=lambda kind: rank[kind.verdict])


def words_of(rows: Iterable[Row]) -> tuple[tuple[str, int], ...]:
    """The most frequent explanations of trials that were graded and not paid in full."""
    counts: Counter[str] = Counter()
    for row in rows:
        if row["reward"] is None or row["reward"] >= 1:
            continue
        said = [f"{check}: {explain}" if explain else str(check) for check, explain in row["failed"]]
        counts.update(said or [row["explain"] or "the verifier gave no reason"])
    return tuple(counts.most_common(SHOWN))


def mean_reward(rows: Sequence[Row]) -> float | None:
    """Over valid rewards; None without any."""
    rewards = [row["reward"] for row in rows if row["reward"] is not None]
    return sum(rewards) / len(rewards) if rewards else None


def _of(rows: Sequence[Row], tasks: set[str]) -> list[Row]:
    return [row for row in rows if row["task"] in tasks]
