"""Proofs of tasks that belong to no run: what ``journeyman worlds check --prove`` does with a directory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from journeyman.ladder.oracles import prove
from journeyman.ladder.recipe import QuickstartRecipe
from journeyman.ladder.rundir import RunDirectory
from journeyman.ladder.tier import strict_tier
from journeyman.ladder.workshop import Workshop
from journeyman.sandbox.scratch import scratch
from journeyman.tasks.oracle import Proof
from journeyman.tasks.oracle import prove as prove_one
from journeyman.tasks.steps import load_any
from journeyman.tasks.task import Task
from journeyman.tools.workbench import tools_environment
from journeyman.trials.world_documents import documents_of, is_office_directory

LABEL = "worlds-check"


def prove_tasks(tasks: Sequence[Task], waive: frozenset[str]) -> dict[str, Any]:
    """Read every document, execute every oracle and grade every control in sandboxes; nothing is kept.

    Args:
        tasks: at least one, each with ``solution/solve.sh`` and ``tests/controls.json``.
        waive: limits that may stay unenforced.

    Returns:
        the counts and ids of ``oracles.prove``.

    Raises:
        InputError: documents cannot be read; the first of them are named.
        EnvironmentMissing: there is no sandbox here, or it cannot keep a limit that is not waived.
    """
    tier = strict_tier(waive)
    with scratch(LABEL) as place:
        run = RunDirectory(place, QuickstartRecipe(out=place), owner=False)
        workshop = Workshop(run, tier, LABEL)
        workshop.reads.fill(documents_of(tasks))
        return prove(workshop, tasks)


def prove_imported(paths: Sequence[Path], waive: frozenset[str]) -> dict[Path, Proof]:
    """Run the solution of every task directory, of any origin and number of steps, and grade it; nothing is kept.

    Args:
        paths: task directories.
        waive: limits that may stay unenforced.

    Raises:
        InputError: a directory does not load, has no solution, or needs an image.
        EnvironmentMissing: there is no sandbox here, or it cannot keep a limit that is not waived.
        SystemFault: a solution's sandbox broke or passed its deadline.
    """
    tier = strict_tier(waive)
    loaded = [load_any(path) for path in paths]
    with scratch(LABEL) as place:
        run = RunDirectory(place, QuickstartRecipe(out=place), owner=False)
        is_office = any(map(is_office_directory, paths))  # its checks read office files
        environment = tools_environment(place / "tools") if is_office else Workshop(run, tier, LABEL).environment
        return {
            task.path: prove_one(task, tier.provider, environment, label=LABEL, waive=tier.waive) for task in loaded
        }


def findings_of(proof: dict[str, Any]) -> list[str]:
    """What a proof found wrong, one line each."""
    return [
        *(f"{name}: its oracle does not score 1" for name in proof["unsolved"]),
        *(f"{name}: a negative control passes" for name in proof["passing_controls"]),
        *(f"{line}: its oracle could not be executed" for line in proof["broken"]),
        *([f"the verifier broke on {proof['n_verifier_errors']} deliverables"] if proof["n_verifier_errors"] else []),
    ]
