"""A run that continues starts from the worlds it made: a file that changed in between is named, and nothing is done."""

from __future__ import annotations

from journeyman.errors import InputError
from journeyman.ladder.workshop import Workshop
from journeyman.worlds.mini.intact import findings
from journeyman.worlds.mini.world import make_world

MAX_SHOWN = 5


def refuse_changed_worlds(workshop: Workshop) -> None:
    """Compare the world files of every published task with what the recipe's seed makes.

    Raises:
        InputError: files were changed, damaged or removed since they were made; names the first ones.
    """
    published = workshop.run.load("tasks")
    if published is None:
        return
    lines: list[str] = []
    for task in (task for split in published for task in workshop.tasks(split)):
        if findings(task.world, task.world_digest, None):
            made = make_world(workshop.recipe.seed, task.split, int(task.world_id.rpartition("-")[2])).files
            lines += findings(task.world, task.world_digest, made)
        if len(lines) >= MAX_SHOWN:
            break
    if lines:
        where, _, problem = lines[0].partition(": ")
        more = [f"also {line}" for line in lines[1:MAX_SHOWN]]
        hint = "put it back as it was, or choose another --out; nothing was done"
        raise InputError(where, "; ".join([problem, *more]), hint=hint)
