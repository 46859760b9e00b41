"""Every task's own proof: its ``solution/solve.sh`` runs in a sandbox and must score 1, its negative controls must not.

The solution sees what an agent sees (the world copied on write at ``/ws``, the same programs, the same read cache)
and nothing else; its deliverable is graded by the same batch verifier as an agent's.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from journeyman.errors import SystemFault
from journeyman.ladder.workshop import Workshop
from journeyman.sandbox.protocol import Mount, SandboxSpec
from journeyman.tasks.grading import GradeItem
from journeyman.tasks.task import Task
from journeyman.tasks.verdict import Verdict
from journeyman.trials.answer import DELIVERABLE

SOLVE_DEADLINE_S = 30.0
LOGS = "/tmp/logs"
"""Where the solution leaves its deliverable: a writable place of its sandbox."""


def solve(workshop: Workshop, task: Task) -> dict[str, bytes] | None:
    """Run the task's solution in a fresh sandbox; returns its deliverables, or None when it made none.

    Raises:
        SystemFault: the sandbox could not be started or was lost.
    """
    sandbox = workshop.provider.create(spec_of(workshop, task))
    try:
        result = sandbox.exec(["sh", "/solution/solve.sh"], deadline_s=SOLVE_DEADLINE_S)
        if result.return_code != 0:
            return None
        return {DELIVERABLE: sandbox.download(f"{LOGS}/artifacts/{DELIVERABLE}", deadline_s=SOLVE_DEADLINE_S)}
    finally:
        sandbox.destroy()


def spec_of(workshop: Workshop, task: Task) -> SandboxSpec:
    """The sandbox of a solution: what an agent of the task would see, and the solution."""
    sandbox_recipe = workshop.recipe.sandbox
    return SandboxSpec(
        label=workshop.label,
        mounts=(
            Mount(workshop.world_directory(task), "/ws", overlay=True),
            Mount(workshop.reads.directory, "/cache"),
            Mount(task.path / "solution", "/solution"),
        ),
        environment=workshop.environment,
        env={"LOGS_DIR": LOGS, "CACHE_DIR": "/cache"},
        memory_mb=sandbox_recipe.memory_mb,
        pids=sandbox_recipe.pids,
        waive=workshop.tier.waive,
    )


def prove(workshop: Workshop, tasks: Sequence[Task]) -> dict[str, Any]:
    """Execute every oracle and grade every negative control of ``tasks``.

    Returns:
        counts, and the ids of the tasks whose oracle does not score 1, whose controls pass, or that broke.
    """
    broken: list[str] = []
    items: list[GradeItem] = []
    for task in tasks:
        try:
            items.append(GradeItem(f"oracle/{task.id}", task, solve(workshop, task)))
        except SystemFault as error:
            broken.append(f"{task.id}: {type(error).__name__}: {error}")
    n_oracles = len(items)
    for task in tasks:
        for name, artifacts in controls_of(task):
            items.append(GradeItem(f"control/{name}/{task.id}", task, artifacts))
    with workshop.verifier() as verifier:
        verdicts = verifier.grade(items)
    unsolved = [i.trial_id for i, v in _zip(items[:n_oracles], verdicts) if not (v.passed and v.reward == 1.0)]
    passing = [i.trial_id for i, v in _zip(items[n_oracles:], verdicts[n_oracles:]) if v.passed or v.reward == 1.0]
    errors = [i.trial_id for i, v in _zip(items, verdicts) if v.kind == "verifier_error"]
    return {
        "n_tasks": len(tasks),
        "n_oracles": n_oracles,
        "n_controls": len(items) - n_oracles,
        "n_oracles_scoring_1": n_oracles - len(unsolved),
        "n_controls_failing": len(items) - n_oracles - len(passing),
        "fewest_controls_of_a_task": min(len(controls_of(task)) for task in tasks),
        "unsolved": unsolved[:20],
        "passing_controls": passing[:20],
        "broken": broken[:20],
        "n_broken": len(broken),
        "n_verifier_errors": len(errors),
    }


def controls_of(task: Task) -> list[tuple[str, dict[str, bytes] | None]]:
    """The task's negative controls as deliverables: ``tests/controls.json`` and the empty delivery."""
    declared = json.loads((task.path / "tests" / "controls.json").read_text())
    answers = [(c["name"], {DELIVERABLE: json.dumps({"answer": c["answer"]}).encode()}) for c in declared]
    return [*answers, ("nothing delivered", None)]


def _zip(items: Sequence[GradeItem], verdicts: Sequence[Verdict]) -> list[tuple[GradeItem, Verdict]]:
    return list(zip(items, verdicts, strict=False))
