"""What tests of executors share: requests, scripts and workplaces of a prepared run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from journeyman.harness import HARNESSES
from journeyman.ladder.workshop import Workshop
from journeyman.tasks.task import Task
from journeyman.tokens.framing import call_ids
from journeyman.trials.executors.protocol import WorkplaceRecipe
from journeyman.trials.executors.workplaces import task_place
from journeyman.trials.record import TrialRequest
from journeyman.worlds.mini.build import tasks_of
from journeyman.worlds.mini.world import make_world

HARNESS = HARNESSES["toolbelt"]
Turns = list[list[int]]


def requests_of(tasks: Sequence[Task], samples: int = 1) -> list[TrialRequest]:
    return [TrialRequest(task, HARNESS, ("test", task.id, n), n) for task in tasks for n in range(samples)]


def oracle_turns(workshop: Workshop, task: Task) -> Turns:
    """The plan of a task as sampled turns, the final call last."""
    recipe = workshop.recipe
    world = make_world(recipe.seed, task.split, int(task.world_id[-4:]))
    per_world = getattr(recipe.worlds, f"{task.split}_tasks_per_world")
    bound = dict(tasks_of(recipe.seed, world, int(task.world_id[-4:]), per_world))[task.id]
    turns = [call_ids(workshop.tokenizer, step.tool, step.arguments) for step in bound.plan]
    return [*turns, call_ids(workshop.tokenizer, "submit", {"answer": bound.answer})]


def scripts_of(workshop: Workshop, requests: Sequence[TrialRequest]) -> dict[str, Turns]:
    by_task = {request.task.id: oracle_turns(workshop, request.task) for request in requests}
    return {request.trial_id: by_task[request.task.id] for request in requests}


def arguments_of(workshop: Workshop, **changes: Any) -> dict[str, Any]:
    """Arguments of a ``TaskPlace`` over a prepared run."""
    return {
        "label": workshop.label,
        "provider": workshop.provider.name,
        "environment": str(workshop.environment.path),
        "digest": workshop.environment.digest,
        "tokenizer": str(workshop.run.path("tokenizer")),
        "reads": str(workshop.reads.directory),
        "waive": sorted(workshop.tier.waive),
        **changes,
    }


def place_of(workshop: Workshop, **changes: Any) -> WorkplaceRecipe:
    return task_place(**arguments_of(workshop, **changes))
