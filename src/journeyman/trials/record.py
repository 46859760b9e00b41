"""What is kept of a trial: who, what it did, how it ended, and the tokens themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from journeyman.harness import Harness, Turn
from journeyman.seeds import Part
from journeyman.tasks.task import Task
from journeyman.tasks.verdict import Verdict
from journeyman.tokens.context import Columns
from journeyman.trials.outcome import Outcome


@dataclass(frozen=True)
class TrialRequest:
    """One trial to run.

    Attributes:
        task: the task directory as loaded.
        harness: the loop the policy acts in.
        stream: words and numbers that key the sampling noise, e.g. ``("rl", step, task id, sample)``.
        sample: index of the trial within its group.
        temperature: 0 is greedy.
    """

    task: Task
    harness: Harness
    stream: tuple[Part, ...]
    sample: int
    temperature: float = 1.0

    @property
    def trial_id(self) -> str:
        return "/".join(str(part) for part in self.stream)


@dataclass
class Trial:
    """One attempt, ended. ``outcome`` is its only row of the error table.

    Attributes:
        tokens: the context's columns, each ``[tokens]``.
        artifacts: deliverables by name, or None when nothing was delivered.
        attempt: 1 for the first; a retry is a new trial with the next number.
        error: type name and message of what broke, or None.
        retry: why this attempt follows another one and how long it waited (``retrying.Retry``), or None for the first.
        segments: those of a context that was edited (``tokens.segments.as_json``); empty for one that only grew.
    """

    request: TrialRequest
    turns: list[Turn]
    tokens: Columns
    stop_reason: str
    artifacts: dict[str, bytes] | None
    attempt: int = 1
    error: tuple[str, str] | None = None
    verdict: Verdict | None = None
    outcome: Outcome | None = None
    retry: dict[str, Any] | None = None
    segments: Sequence[Mapping[str, Any]] = ()

    @property
    def reward(self) -> float | None:
        """The reward, or None where the trial has no valid one."""
        if self.outcome is None or not self.outcome.reward_valid or self.verdict is None:
            return None
        return self.verdict.reward

    @property
    def passed(self) -> bool | None:
        """Whether the verdict passed, or None where the trial has no valid reward."""
        if self.reward is None or self.verdict is None:
            return None
        return bool(self.verdict.passed)

    def summary(self) -> dict[str, Any]:
        """Everything but the tokens, as JSON."""
        task, outcome, verdict = self.request.task, self.outcome, self.verdict
        return {
            "trial_id": self.request.trial_id,
            "attempt": self.attempt,
            "task_id": task.id,
            "world_id": task.world_id,
            "family": task.family,
            "split": task.split,
            "harness": self.request.harness.name,
            "sample": self.request.sample,
            "temperature": self.request.temperature,
            "stop_reason": self.stop_reason,
            "error": list(self.error) if self.error else None,
            "outcome": outcome.outcome_class if outcome else None,
            "cause": outcome.cause if outcome else None,
            "reward": self.reward,
            "passed": self.passed,
            "verdict": verdict.to_dict() if verdict else None,
            "n_tokens": len(self.tokens.ids),
            "n_sampled": int(self.tokens.mask.sum()),
            "turns": [turn.record() for turn in self.turns],
            "deliverables": {n: d.decode(errors="replace") for n, d in (self.artifacts or {}).items()},
            **({"retry": self.retry} if self.retry is not None else {}),
            **({"segments": list(self.segments)} if self.segments else {}),
        }
