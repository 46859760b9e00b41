"""Make the tasks of a split: worlds, tasks spread evenly over the families, gates, Harbor directories.

Everything is written to a staging directory, made durable with one sync, and moved to its name directory by directory:
whoever sees a task or a world sees all of it. Same arguments, same names and bytes, also when the split grows later.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from journeyman.durable import sync_directory
from journeyman.errors import GateFailed, InputError, StorageError
from journeyman.seeds import stream
from journeyman.worlds.mini.gates import Subject, findings_of
from journeyman.worlds.mini.protocol import BoundTask
from journeyman.worlds.mini.publish import publish, write_agent, write_world
from journeyman.worlds.mini.templates import TEMPLATES
from journeyman.worlds.mini.world import SPLITS, World, make_world

MAX_SHOWN_FINDINGS = 10


def build_tasks(
    seed: int, split: str, worlds: int, tasks_per_world: int, out: Path, first_index: int = 0
) -> list[Path]:
    """Build and publish tasks of one split.

    Args:
        seed: root seed.
        split: one of ``SPLITS``.
        worlds: how many.
        tasks_per_world: tasks in each, families in turn over the whole split.
        out: gets ``worlds/<world id>/`` and ``tasks/<split>/<task id>/``; existing ones are replaced.
        first_index: index of the first world, so that a split can grow without changing what it has.

    Returns:
        the task directories in the order of their ids, ``<split>-<world>-<number>-<family>``.

    Raises:
        InputError: an unknown split or a count below 1.
        GateFailed: a task did not pass its gates; nothing was published.
        StorageError: ``out`` cannot be written; the staging directory is gone, what was there before is untouched.
    """
    if split not in SPLITS:
        raise InputError("split", f"{split!r} is unknown", allowed=", ".join(SPLITS))
    if worlds < 1 or tasks_per_world < 1 or first_index < 0:
        raise InputError("worlds", f"cannot build {worlds} worlds of {tasks_per_world} tasks from {first_index}")
    staging = out / f".staging-{os.getpid()}"
    try:
        shutil.rmtree(staging, ignore_errors=True)
        made = [make_world(seed, split, index) for index in range(first_index, first_index + worlds)]
        task_ids = _stage(seed, made, tasks_per_world, staging, first_index)
        os.sync()
        _move(staging / "worlds", out / "worlds", [world.id for world in made])
        _move(staging / "tasks", out / "tasks" / split, task_ids)
    except OSError as error:
        raise StorageError(str(out), f"cannot be written: {error.strerror or error}") from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return [out / "tasks" / split / task_id for task_id in task_ids]


def tasks_of(seed: int, world: World, index: int, tasks_per_world: int) -> Iterator[tuple[str, BoundTask]]:
    """Ids and tasks of one world: families in turn, no instruction twice. ``index`` is the world's in its split."""
    families, seen = list(TEMPLATES), set()
    for number in range(tasks_per_world):
        family = families[(index * tasks_per_world + number) % len(families)]
        rng = stream(seed, "task", world.split, index, number)
        bound = TEMPLATES[family].bind(world, rng)
        while bound.instruction in seen:
            bound = TEMPLATES[family].bind(world, rng)
        seen.add(bound.instruction)
        yield f"{world.id}-{number:02d}-{family}", bound


def _stage(seed: int, worlds: list[World], tasks_per_world: int, staging: Path, first_index: int) -> list[str]:
    agent, task_ids, findings = write_agent(staging / "agent"), [], []
    for index, world in enumerate(worlds, start=first_index):
        directory = write_world(world, staging / "worlds")
        for task_id, bound in tasks_of(seed, world, index, tasks_per_world):
            findings += [f"{task_id}: {finding}" for finding in findings_of(Subject(seed, world, bound))]
            publish(bound, world, staging / "tasks", task_id, world_directory=directory, agent_directory=agent)
            task_ids.append(task_id)
    if findings:
        shown = "\n  ".join(findings[:MAX_SHOWN_FINDINGS])
        raise GateFailed(f"{len(findings)} findings in {len(task_ids)} tasks, nothing was published:\n  {shown}")
    return task_ids


def _move(staging: Path, final: Path, names: list[str]) -> None:
    final.mkdir(parents=True, exist_ok=True)
    for name in names:
        if (final / name).exists():
            shutil.rmtree(final / name)
        (staging / name).replace(final / name)
    sync_directory(final)
