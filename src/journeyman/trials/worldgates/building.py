"""A set of office worlds and tasks, world by world: made, judged by every gate, published, resumable.

``OUT/layers/`` holds each world once, ``OUT/tasks/<split>/<task>/`` the tasks, ``OUT/build.json`` what was asked,
``OUT/progress/<world>.json`` what became of a world: its tasks, what was refused and why. A world is published by
renames after its last gate, then its progress file is written; a build that was stopped begins again with the world it
was in. What a world cost stands in ``OUT/cost/``, what LibreOffice made of a sample in ``OUT/legs/``, apart from
everything that has to be equal in two builds.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from journeyman.durable import publish_directory, sync_directory, write_json
from journeyman.errors import InputError, StorageError
from journeyman.trials.worldgates.legs import LEGS
from journeyman.trials.worldgates.workshop import Workshop
from journeyman.worlds.diversify import Wording
from journeyman.worlds.splits import office_worlds

log = logging.getLogger("journeyman.worlds")

WORDING = "wording"
"""Folder of a build that keeps the paraphrases it was made with."""


@dataclass(frozen=True)
class Order:
    """What to build.

    Attributes:
        seed: root seed.
        worlds, tasks: how many.
        split: all of one split, or empty for the usual mix.
        templates: ids to use, empty for all.
        gates: ``all``; ``static`` leaves out everything that needs a sandbox, for a quick look: such tasks say so.
        wording: model that puts instructions into other words, kept in ``OUT/wording/``; empty for none.
    """

    seed: int
    worlds: int
    tasks: int
    split: str = ""
    templates: tuple[str, ...] = ()
    gates: str = "all"
    wording: str = ""


@dataclass(frozen=True)
class Outcome:
    """What a build gave.

    Attributes:
        tasks: ids, in the order of their worlds.
        refused: (template, reason) -> how often.
        out: where it lies.
    """

    tasks: tuple[str, ...]
    refused: Mapping[str, int]
    out: Path


def build(
    order: Order,
    out: Path,
    *,
    jobs: int = 1,
    waive: frozenset[str] = frozenset(),
    endpoint: tuple[str, str] = ("", ""),
    progress: Callable[[int, int, str], None] = lambda done, total, what: None,
) -> Outcome:
    """Build, or go on building, a set of tasks.

    Args:
        out: where to; must be empty, or hold a build of the same order.
        jobs: worlds that are built at the same time, each in a process of its own.
        waive: sandbox limits that may stay unenforced.
        endpoint: URL and key of who answers for ``order.wording``; without a URL only what is kept is used.
        progress: told (worlds done, worlds, what was done) after each world.

    Raises:
        InputError: an impossible order, or ``out`` holds another build.
        EnvironmentMissing: a sandbox or a library is missing.
        StorageError: ``out`` cannot be written.
    """
    _check_order(order)
    plan = list(enumerate(office_worlds(order.worlds, order.split)))
    try:
        _claim(order, out)
        _clear(out)
        waiting = [item for item in plan if not (out / "progress" / f"{_world_id(item[1])}.json").is_file()]
        done = len(plan) - len(waiting)
        progress(done, len(plan), "worlds found" if done else "")
        for world_id, made in _made(order, out, waiting, jobs, waive, _wording(order, out, endpoint)):
            done += 1
            progress(done, len(plan), f"{world_id}: {made} tasks")
    except OSError as error:
        raise StorageError(str(out), f"cannot be written: {error.strerror or error}") from error
    return outcome_of(out)


def _made(
    order: Order,
    out: Path,
    waiting: list[tuple[int, tuple[str, int]]],
    jobs: int,
    waive: frozenset[str],
    wording: Wording | None,
) -> Iterator[tuple[str, int]]:
    if jobs <= 1 or len(waiting) < 2:
        with Workshop(out / "environments", waive, with_sandboxes=order.gates == "all", wording=wording) as workshop:
            for position, (split, index) in waiting:
                yield _world_id((split, index)), make_world(order, out, position, split, index, workshop)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        pending = [pool.submit(_in_process, order, out, item, waive, wording) for item in waiting]
        for item, future in zip(waiting, pending, strict=True):
            yield _world_id(item[1]), future.result()


def _wording(order: Order, out: Path, endpoint: tuple[str, str]) -> Wording | None:
    return Wording(order.wording, out / WORDING, *endpoint) if order.wording else None


_WORKSHOPS: dict[Path, Workshop] = {}


def _in_process(
    order: Order, out: Path, item: tuple[int, tuple[str, int]], waive: frozenset[str], wording: Wording | None
) -> int:
    """One world in a worker, whose workshop stays open between worlds and ends with the process."""
    import atexit

    if out not in _WORKSHOPS:
        _WORKSHOPS[out] = Workshop(out / "environments", waive, with_sandboxes=order.gates == "all", wording=wording)
        atexit.register(_WORKSHOPS[out].close)
    position, (split, index) = item
    return make_world(order, out, position, split, index, _WORKSHOPS[out])


def make_world(order: Order, out: Path, position: int, split: str, index: int, workshop: Workshop) -> int:
    """Make one world and its tasks, and publish what passed. Returns the number of tasks."""
    staging = out / f".staging-{split}-{index:04d}-{os.getpid()}"
    shutil.rmtree(staging, ignore_errors=True)
    try:
        made = workshop.world(order, position, split, index, staging)
        if not (out / "layers" / made.layer.name).exists():
            publish_directory(made.layer, out / "layers" / made.layer.name)
        (out / "tasks" / split).mkdir(parents=True, exist_ok=True)
        for task_id in made.task_ids:
            target = out / "tasks" / split / task_id
            if target.exists():
                shutil.rmtree(target)
            (staging / "tasks" / task_id).replace(target)
        sync_directory(out / "tasks" / split)
        refused = {f"{template}: {why}": count for (template, why), count in sorted(made.refusals.counts.items())}
        facts = {"world": made.world_id, "layer": made.layer.name, "tasks": list(made.task_ids), "refused": refused,
                 "facts": made.facts}  # fmt: skip
        write_json(out / "cost" / f"{made.world_id}.json", made.cost)
        if made.legs:
            write_json(out / LEGS / f"{made.world_id}.json", [dict(leg) for leg in made.legs])
        write_json(out / "progress" / f"{made.world_id}.json", facts)
        return len(made.task_ids)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def outcome_of(out: Path) -> Outcome:
    """What lies in a directory that ``build`` wrote. Raises InputError when it is none."""
    if not (out / "build.json").is_file():
        raise InputError(str(out), "holds no build of office worlds", hint="make one: journeyman worlds build")
    tasks: list[str] = []
    refused: dict[str, int] = {}
    for path in sorted((out / "progress").glob("*.json")):
        facts = json.loads(path.read_text())
        tasks += facts["tasks"]
        for why, count in facts["refused"].items():
            refused[why] = refused.get(why, 0) + count
    return Outcome(tuple(tasks), refused, out)


def order_of(out: Path) -> Order:
    """The order of a build. Raises InputError when there is none."""
    path = out / "build.json"
    if not path.is_file():
        raise InputError(str(out), "holds no build of office worlds", hint="make one: journeyman worlds build")
    values: dict[str, Any] = json.loads(path.read_text())
    return Order(**{**values, "templates": tuple(values["templates"])})


def _claim(order: Order, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    if (out / "build.json").is_file():
        found = order_of(out)
        if found != order:
            was = ", ".join(f"{k}={v}" for k, v in asdict(found).items())
            raise InputError(str(out), f"holds another build: {was}", hint="choose another --out, or the same options")
        return
    if any((out / name).exists() for name in ("tasks", "layers", "progress")):
        raise InputError(str(out), "holds tasks that no office build made", hint="choose an empty --out")
    write_json(out / "build.json", {**asdict(order), "templates": list(order.templates)})


def _clear(out: Path) -> None:
    """Remove the unfinished worlds of builds that were killed; their process is part of the name."""
    for staging in out.glob(".staging-*"):
        if not Path(f"/proc/{staging.name.rpartition('-')[2]}").exists():
            shutil.rmtree(staging, ignore_errors=True)


def _check_order(order: Order) -> None:
    from journeyman.worlds.templates import TEMPLATES

    if order.worlds < 1 or order.tasks < order.worlds:
        raise InputError(
            "tasks", f"cannot spread {order.tasks} tasks over {order.worlds} worlds", allowed="1 or more each"
        )
    unknown = [name for name in order.templates if name not in TEMPLATES]
    if unknown:
        raise InputError("templates", f"no template {unknown[0]!r}", allowed=", ".join(TEMPLATES))


def _world_id(world: tuple[str, int]) -> str:
    return f"{world[0]}-{world[1]:04d}"
