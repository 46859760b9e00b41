"""The APEX-Agents data layout: one list of tasks and rubrics, one zip per world, further files per task.

``tasks_and_rubrics.json`` ``[{task_id, task_name, domain, world_id, prompt, task_input_files, rubric: [{verifier_id,
criteria}]}]``, ``world_descriptions.json``, ``world_files_zipped/<world_id>.zip`` and
``task_files/<task_id>/{filesystem,.apps_data}/``. The first criterion is the primary objective.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from journeyman.errors import InputError
from journeyman.tasks.imports.directory import Imported, JudgedTask, read_json, strays, unpacked, write_judged
from journeyman.tasks.rubric import Criterion, Rubric

TASKS, WORLDS, ZIPS, FILES = "tasks_and_rubrics.json", "world_descriptions.json", "world_files_zipped", "task_files"


def import_apex(source: Path, out: Path) -> Imported:
    """Write every task of the data set below ``out``; worlds are unpacked one at a time.

    Raises:
        InputError: the layout is not there, a row lacks a field, a world's archive is missing or refused; names all
            rows that are wrong before anything is written.
    """
    rows = read_json(source / TASKS, list)
    worlds = {str(world.get("world_id")): world for world in read_json(source / WORLDS, list)}
    _check(source, rows, worlds)
    by_world: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        by_world[row["world_id"]].append(row)
    tasks, warnings = [], []
    for world_id, group in sorted(by_world.items()):
        with unpacked(source / ZIPS / f"{world_id}.zip", out) as world:
            warnings += [
                f"{world_id}: {name} is neither filesystem nor .apps_data and is left" for name in strays(world)
            ]
            for row in group:
                overlay = source / FILES / row["task_id"]
                if row.get("task_input_files") and not overlay.is_dir():
                    warnings.append(f"{row['task_id']}: its files are missing below {FILES}/")
                layers = (world, overlay) if overlay.is_dir() else (world,)
                tasks.append(write_judged(_task(row, worlds[world_id], layers), out))
    return Imported(tuple(tasks), tuple(warnings))


def _check(source: Path, rows: list[Any], worlds: Mapping[str, Any]) -> None:
    problems, seen = [], set()
    for number, row in enumerate(rows):
        if not isinstance(row, dict):
            problems.append(f"[{number}] is no object")
            continue
        where = f"[{number}] {row.get('task_id')}"
        lacking = [name for name in ("task_id", "world_id", "prompt") if not isinstance(row.get(name), str)]
        problems += [f"{where}: {name} is missing" for name in lacking]
        rubric = row.get("rubric")
        if not isinstance(rubric, list) or not rubric or not all(_is_criterion(entry) for entry in rubric):
            problems.append(f"{where}: rubric is no list of {{verifier_id, criteria}}")
        if row.get("task_id") in seen:
            problems.append(f"{where}: occurs twice")
        seen.add(row.get("task_id"))
        world_id = row.get("world_id")
        if isinstance(world_id, str) and world_id not in worlds:
            problems.append(f"{where}: world {world_id} is not in {WORLDS}")
        elif isinstance(world_id, str) and ("/" in world_id or not (source / ZIPS / f"{world_id}.zip").is_file()):
            problems.append(f"{where}: {ZIPS}/{world_id}.zip is missing")
    if problems:
        more = f"; and {len(problems) - 20} more" if len(problems) > 20 else ""
        raise InputError(str(source / TASKS), "; ".join(problems[:20]) + more)


def _is_criterion(entry: Any) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("criteria"), str) and bool(entry["criteria"].strip())


def _task(row: Mapping[str, Any], world: Mapping[str, Any], layers: tuple[Path, ...]) -> JudgedTask:
    known = ("verifier_id", "criteria")
    criteria = tuple(
        Criterion(
            id=str(entry.get("verifier_id") or f"criterion-{number}"),
            criterion=entry["criteria"],
            is_primary=number == 0,
            values={name: value for name, value in entry.items() if name not in known},
        )
        for number, entry in enumerate(row["rubric"])
    )
    return JudgedTask(
        id=row["task_id"],
        prompt=row["prompt"],
        family=str(row.get("domain") or "apex"),
        world_id=row["world_id"],
        worlds=layers,
        linkable=layers[0],
        rubric=Rubric(criteria=criteria),
        source={"format": "apex", "task": dict(row), "world": dict(world)},
    )
