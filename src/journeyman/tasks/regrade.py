"""Grading again from what was kept: no agent runs, the verifier alone does, in a fresh sandbox.

For verdicts that broke (``verifier_failed`` retries only this), and for a verifier that was corrected.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from journeyman.sandbox.protocol import AgentEnvironment, Provider
from journeyman.tasks.artifacts import read_artifacts
from journeyman.tasks.grading import GradeItem
from journeyman.tasks.task import load_task
from journeyman.tasks.verdict import Verdict
from journeyman.tasks.verify import BatchVerifier


@dataclass(frozen=True)
class SavedTrial:
    """A finished trial on disk.

    Attributes:
        trial_id: whose it is.
        task: its task directory.
        artifacts: directory that ``write_artifacts`` filled; None for a trial that delivered nothing.
    """

    trial_id: str
    task: Path
    artifacts: Path | None


def regrade(
    items: Sequence[SavedTrial],
    provider: Provider,
    environment: AgentEnvironment,
    *,
    label: str = "regrade",
    waive: frozenset[str] = frozenset(),
) -> list[Verdict]:
    """One verdict per saved trial, in order, with the tests as they are now.

    Raises:
        InputError: a task directory does not load, or there are no artifacts where they were promised; nothing was
            graded.
    """
    tasks = {path: load_task(path) for path in {item.task for item in items}}
    batch = [
        GradeItem(i.trial_id, tasks[i.task], None if i.artifacts is None else read_artifacts(i.artifacts))
        for i in items
    ]
    with BatchVerifier(provider, environment, label, waive=waive) as verifier:
        return verifier.grade(batch)
