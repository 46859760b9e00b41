"""What is graded, and what grades: plain names, for whoever hands trials to a verifier without being one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from journeyman.tasks.artifacts import Artifacts
from journeyman.tasks.task import Task
from journeyman.tasks.verdict import Verdict

PORTION = 32
"""Ended trials that go to the verifier together."""


@dataclass(frozen=True)
class GradeItem:
    """One trial to grade.

    Attributes:
        trial_id: whose it is.
        task: what it was asked.
        artifacts: what it delivered, by name, or None for nothing.
    """

    trial_id: str
    task: Task
    artifacts: Artifacts | None


class Grader(Protocol):
    """What grades a batch: ``tasks.verify.BatchVerifier`` or anything that keeps its contract."""

    def grade(self, items: Sequence[GradeItem]) -> list[Verdict]: ...
