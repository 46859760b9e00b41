"""Proofs of tasks that belong to no run: what ``journeyman worlds check --prove`` does with a directory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from journeyman.digest import sha256
from journeyman.ladder.oracles import prove
from journeyman.ladder.recipe import QuickstartRecipe
from journeyman.ladder.rundir import RunDirectory
from journeyman.ladder.tier import strict_tier
from journeyman.ladder.workshop import Workshop
from journeyman.sandbox.scratch import scratch
from journeyman.tasks.task import Task

LABEL = "worlds-check"


def prove_tasks(tasks: Sequence[Task], waive: frozenset[str]) -> dict[str, Any]:
    """Read every document, execute every oracle and grade every control in sandboxes; nothing is kept.

    Args:
        tasks: at least one, each with ``solution/solve.sh`` and ``tests/controls.json``.
        waive: limits that may stay unenforced.

    Returns:
        the counts and ids of ``oracles.prove``.

    Raises:
        InputError: a document cannot be read; all of them are named.
        EnvironmentMissing: there is no sandbox here, or it cannot keep a limit that is not waived.
    """
    tier = strict_tier(waive)
    with scratch(LABEL) as place:
        run = RunDirectory(place, QuickstartRecipe(out=place), owner=False)
        workshop = Workshop(run, tier, LABEL)
        files: dict[str, tuple[str, bytes]] = {}
        for task in tasks:
            for path in sorted(task.world.iterdir()):
                data = path.read_bytes()
                files.setdefault(sha256(data), (str(path), data))
        workshop.reads.fill(files)
        return prove(workshop, tasks)


def findings_of(proof: dict[str, Any]) -> list[str]:
    """What a proof found wrong, one line each."""
    return [
        *(f"{name}: its oracle does not score 1" for name in proof["unsolved"]),
        *(f"{name}: a negative control passes" for name in proof["passing_controls"]),
        *(f"{line}: its oracle could not be executed" for line in proof["broken"]),
        *([f"the verifier broke on {proof['n_verifier_errors']} deliverables"] if proof["n_verifier_errors"] else []),
    ]
