"""A second verdict of the same deliverables, by a verifier that is held back: the policy is never rewarded by it.

Its mean is compared with the reward step by step (guard ``proxy``): gains that the rewarding verifier alone sees are a
hack of that verifier.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from journeyman.errors import InputError
from journeyman.seeds import stream
from journeyman.tasks.grading import GradeItem, Grader
from journeyman.tasks.task import Task
from journeyman.tasks.verdict import Verdict


class ShadowGrader:
    """A ``Grader`` that asks a second verifier about the same deliverables.

    Args:
        grader: gives both verdicts.
        shadows: the tasks whose verifiers are held back, by the id of the task they belong to.
        share: of the trials that are graded twice, chosen by their ids.
    """

    def __init__(self, grader: Grader, shadows: Mapping[str, Task], share: float = 1.0) -> None:
        self._grader, self._shadows, self._share = grader, shadows, share
        self._rewards: dict[str, float] = {}

    def grade(self, items: Sequence[GradeItem]) -> list[Verdict]:
        """As ``Grader.grade``; the second verdicts are kept for ``reward_of``."""
        again = [
            GradeItem(item.trial_id, self._shadows[item.task.id], item.artifacts)
            for item in items
            if item.task.id in self._shadows and self._is_chosen(item.trial_id)
        ]
        verdicts = self._grader.grade([*items, *again])
        for item, verdict in zip(again, verdicts[len(items) :], strict=True):
            if verdict.reward is not None:
                self._rewards[item.trial_id] = verdict.reward
        return verdicts[: len(items)]

    def reward_of(self, trial_id: str) -> float | None:
        """What the second verifier gave, once; None where it was not asked or broke."""
        return self._rewards.pop(trial_id, None)

    def _is_chosen(self, trial_id: str) -> bool:
        return self._share >= 1 or stream(0, "shadow", trial_id).random() < self._share


def shadows_of(tasks: Sequence[Task], shadows: Sequence[Task]) -> dict[str, Task]:
    """Tasks with held-back verifiers, by id.

    Raises:
        InputError: one is no task of the run, or its verifier is the rewarding one.
    """
    own = {task.id: task for task in tasks}
    found: dict[str, Task] = {}
    for shadow in shadows:
        task = own.get(shadow.id)
        if task is None:
            raise InputError("shadow.tasks", f"{shadow.id} is no task of tasks.train", hint="name it as the task")
        if task.tests.resolve() == shadow.tests.resolve():
            problem = f"{shadow.id} is the task itself: its verifier already gives the reward"
            raise InputError("shadow.tasks", problem, hint="give a directory of tasks with other verifiers")
        found[shadow.id] = shadow
    return found
