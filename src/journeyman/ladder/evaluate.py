"""Evaluations: one policy, one harness, one split, stored once; and the count of how often ``test`` was opened."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from journeyman.clock import now
from journeyman.durable import write_json
from journeyman.evals.score import Boundary
from journeyman.harness import HARNESSES
from journeyman.ladder.rollouts import Rollouts
from journeyman.ladder.rundir import RunDirectory
from journeyman.tasks.task import Task
from journeyman.trials.inline import final_attempts
from journeyman.trials.record import TrialRequest
from journeyman.trials.store import read_summaries, write_batch
from journeyman.worlds.splits import refuse_mixed

JUDGE = "tests/check.py of the task, in a fresh sandbox that no agent ran in"


@dataclass(frozen=True)
class Evaluation:
    """What is measured.

    Attributes:
        role: which policy, e.g. ``warm_start``.
        harness: key of ``HARNESSES``.
        split: which worlds; every task must be of this split.
        samples: trials per task.
        temperature: 0 is greedy.
        purpose: why, printed beside an opening of ``test``.
        tag: tells evaluations of one policy on different tasks of one split apart, e.g. ``overfit-32``.
    """

    role: str
    harness: str
    split: str
    samples: int
    temperature: float
    purpose: str
    tag: str = ""

    @property
    def decoding(self) -> str:
        return "greedy" if self.temperature == 0 else f"sampled, T={self.temperature:g}"

    @property
    def name(self) -> str:
        kind = "greedy" if self.temperature == 0 else "sampled"
        return "-".join(part for part in (self.role, self.harness, self.split, self.tag, kind) if part)

    @property
    def boundary_name(self) -> str:
        where = f"{self.split} {self.tag}".strip()
        return f"{self.role} / {self.harness} / {where} / {self.decoding}"


def evaluate(
    run: RunDirectory,
    what: Evaluation,
    tasks: Sequence[Task],
    rollouts: Rollouts,
    system: Boundary,
    *,
    is_recorded: bool = False,
) -> list[dict[str, Any]]:
    """Run ``what`` on ``tasks`` with the weights that the engine holds, or read it back when it is complete.

    Args:
        is_recorded: the caller has noted the opening of ``test``.

    Raises:
        InputError: a task belongs to another split: no world of one split ever enters a score of another.
    """
    refuse_mixed(tasks, what.split)
    place = run.path("evaluations", what.name)
    if run.load(f"evaluation-{what.name}") is None:
        if what.split == "test" and not is_recorded:
            record_opening(run, what, tasks)
        stream = ("evaluation", what.role, what.harness, what.split, what.tag)
        requests = [
            TrialRequest(task, HARNESSES[what.harness], (*stream, task.id, sample), sample, what.temperature)
            for task in tasks
            for sample in range(what.samples)
        ]
        trials = final_attempts(rollouts.run(requests))
        write_batch(place, trials)
        run.finish(f"evaluation-{what.name}", {"n_trials": len(trials), "boundary": system.model_dump(mode="json")})
    return read_summaries(place)


def record_opening(run: RunDirectory, what: Evaluation, tasks: Sequence[Task]) -> None:
    """Note, durably and before the first trial, that the test split is being looked at."""
    openings = read_openings(run)
    previous = openings.get(what.name)
    openings[what.name] = {
        "by": what.boundary_name,
        "purpose": what.purpose,
        "n_worlds": len({task.world_id for task in tasks}),
        "n_tasks": len(tasks),
        "opened_at": now(),
        "n_times": 1 + (previous["n_times"] if previous else 0),
    }
    write_json(run.path("openings.json"), openings)


def read_openings(run: RunDirectory) -> dict[str, dict[str, Any]]:
    """Every opening of the test split by evaluation, in order."""
    path = run.path("openings.json")
    return json.loads(path.read_text()) if path.is_file() else {}


def boundary(what: Evaluation, model: str, model_sha256: str | None, max_context: int) -> Boundary:
    """The system that a score of ``what`` was measured on. ``dollars`` is 0: nothing was bought."""
    harness = HARNESSES[what.harness]
    return Boundary(
        name=what.boundary_name,
        model=model,
        model_sha256=model_sha256,
        harness=f"{harness.name}: final call {harness.framing.final_verb}, {harness.max_turns} turns",
        tools=harness.tools,
        judge=JUDGE,
        budgets={
            "turns": harness.max_turns,
            "new_tokens_per_turn": harness.max_new_tokens,
            "context_tokens": max_context,
            "trials_per_task": what.samples,
        },
        decoding=what.decoding,
        split=what.split,
        dollars=0.0,
    )
