"""Archipelago tasks: a world (zip or folders), files laid over it, messages, and the configuration of the grading.

A directory is one task: ``initial_messages.json`` (or ``prompt.txt``), ``verifiers.json``, ``eval_configs.json``,
``scoring_config.json``, optional ``grading_settings.json`` and ``agent_config.json``, the world as ``filesystem/`` and
``.apps_data/`` or as the only zip that is no final snapshot, and ``task_files/{filesystem,.apps_data}/`` over it. Or it
is a world with many: ``tasks/<name>.json``, ``grader/configs/<name>_grading_config.json``, ``files/``,
``tools/.apps_data/`` and ``tools/files/<name>/``.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from journeyman.errors import InputError
from journeyman.tasks.imports.directory import (
    Imported,
    JudgedTask,
    read_json,
    scratch_in,
    strays,
    unpacked,
    write_judged,
)
from journeyman.tasks.reward_file import read_plain_file
from journeyman.tasks.rubric import Criterion, Rubric

CONFIGS = ("verifiers", "eval_configs", "scoring_config")


def import_archipelago(source: Path, out: Path) -> Imported:
    """Write every task at or one level below ``source`` as a task directory below ``out``.

    Raises:
        InputError: nothing there is a task; a configuration is missing or wrong; a world's archive is refused.
    """
    if not source.is_dir():
        raise InputError(str(source), "is not a directory")
    places = [source] if _kind(source) else sorted(path for path in source.iterdir() if path.is_dir() and _kind(path))
    if not places:
        allowed = "verifiers.json beside a world, or tasks/ with grader/configs/, here or one level below"
        raise InputError(str(source), "holds no Archipelago task", allowed=allowed)
    tasks: list[Path] = []
    warnings: list[str] = []
    for place in places:
        made = _one_task(place, out) if _kind(place) == "task" else _world_of_tasks(place, out)
        tasks += made.tasks
        warnings += made.warnings
    return Imported(tuple(tasks), tuple(warnings))


def _kind(place: Path) -> str | None:
    if (place / "verifiers.json").is_file():
        return "task"
    return "world" if (place / "tasks").is_dir() and (place / "grader" / "configs").is_dir() else None


def _one_task(place: Path, out: Path) -> Imported:
    configs: dict[str, Any] = {
        "verifiers": read_json(place / "verifiers.json", list),
        "eval_configs": read_json(place / "eval_configs.json", list),
        "scoring_config": read_json(place / "scoring_config.json", dict),
    }
    for name in ("grading_settings", "agent_config"):
        if (place / f"{name}.json").is_file():
            configs[name] = read_json(place / f"{name}.json", dict)
    with _world(place, out) as world:
        overlay = place / "task_files"
        layers = (world, overlay) if overlay.is_dir() else (world,)
        ids = {str(row.get(key)) for row in configs["verifiers"] for key in ("world_id",) if row.get(key)}
        task = JudgedTask(
            id=_directory_name(_task_id(configs["verifiers"]) or place.resolve().name),
            prompt=_prompt(place),
            family="archipelago",
            world_id=min(ids) if ids else place.resolve().name,
            worlds=layers,
            rubric=_rubric(str(place), configs),
            source={"format": "archipelago", **configs},
            agent_timeout_s=_timeout(configs.get("agent_config", {})),
        )
        left = strays(world) if world != place else []
        return Imported((write_judged(task, out),), tuple(f"{place}: {name} is left" for name in left))


@contextmanager
def _world(place: Path, out: Path) -> Iterator[Path]:
    if (place / "filesystem").is_dir() or (place / ".apps_data").is_dir():
        yield place
        return
    zips = [path for path in sorted(place.glob("*.zip")) if not path.name.startswith("final_snapshot")]
    if len(zips) != 1:
        names = ", ".join(path.name for path in zips) or "none"
        raise InputError(str(place), f"has no single world; found: {names}", allowed="one zip, or filesystem/")
    with unpacked(zips[0], out) as world:
        yield world


def _world_of_tasks(place: Path, out: Path) -> Imported:
    tasks, warnings = [], []
    with scratch_in(out) as scratch:
        world = scratch / "world"
        for folder, origin in (("filesystem", place / "files"), (".apps_data", place / "tools" / ".apps_data")):
            if origin.is_dir():
                shutil.copytree(origin, world / folder, symlinks=True)
            else:
                warnings.append(f"{place}: {origin.relative_to(place)} is not there; the world lacks it")
        for path in sorted((place / "tasks").glob("*.json")):
            row = read_json(path, dict)
            configs = read_json(place / "grader" / "configs" / f"{path.stem}_grading_config.json", dict)
            overlay = scratch / path.stem
            if (place / "tools" / "files" / path.stem).is_dir():
                shutil.copytree(place / "tools" / "files" / path.stem, overlay / "filesystem", symlinks=True)
            tasks.append(write_judged(_row_task(path, row, configs, (world, overlay)), out))
    return Imported(tuple(tasks), tuple(warnings))


def _row_task(path: Path, row: Mapping[str, Any], configs: Mapping[str, Any], layers: tuple[Path, ...]) -> JudgedTask:
    lacking = [name for name in CONFIGS if name not in configs]
    if lacking:
        raise InputError(str(path), f"its grading configuration lacks {', '.join(lacking)}")
    extra = row.get("extra") or {}
    return JudgedTask(
        id=_directory_name(path.stem),
        prompt=_parts(row.get("prompt")),
        family=re.sub(r"[ -]*World.*", "", str(extra.get("world_name") or "archipelago"), flags=re.I).lower()
        or "archipelago",
        world_id=str(extra.get("world_id") or path.parent.parent.name),
        worlds=layers,
        linkable=layers[0],
        rubric=_rubric(str(path), configs),
        source={"format": "archipelago", "task": dict(row), **configs},
    )


def _parts(prompt: Any) -> str:
    if isinstance(prompt, list):
        return "\n\n".join(str(part.get("content", "")) for part in prompt if isinstance(part, dict))
    return str(prompt or "")


def _prompt(place: Path) -> str:
    text = read_plain_file(place / "prompt.txt")
    if text is not None:
        return text.decode("utf-8", "replace")
    messages = read_json(place / "initial_messages.json", list)
    users = [m for m in messages if isinstance(m, dict) and m.get("role") == "user"]
    if not users:
        raise InputError(str(place / "initial_messages.json"), "has no message of the user")
    return "\n\n".join(_parts(message.get("content")) for message in users)


def _rubric(where: str, configs: Mapping[str, Any]) -> Rubric:
    evaluations = {row.get("eval_config_id"): row for row in configs["eval_configs"] if isinstance(row, dict)}
    criteria = []
    for number, row in enumerate(configs["verifiers"]):
        values = dict(row.get("verifier_values") or {}) if isinstance(row, dict) else {}
        config = evaluations.get(row.get("eval_config_id")) if isinstance(row, dict) else None
        criterion = values.pop("criteria", None)
        if config is None or not isinstance(criterion, str) or not criterion.strip():
            raise InputError(
                where, f"verifier {number} has no criteria, or an eval_config_id that no configuration has"
            )
        weight = values.pop("weight", 1)
        criteria.append(
            Criterion(
                id=str(row.get("verifier_id") or f"verifier-{number}"),
                criterion=criterion,
                evaluation=str(config.get("eval_defn_id")),
                weight=float(weight) if isinstance(weight, int | float) else 1.0,
                is_primary=bool(values.pop("is_primary_objective", False)),
                depends_on=tuple(str(other) for other in row.get("verifier_dependencies") or ()),
                values=values,
            )
        )
    if not criteria:
        raise InputError(where, "has no verifier")
    scoring = configs["scoring_config"]
    return Rubric(
        criteria=tuple(criteria),
        scoring=str(scoring.get("scoring_defn_id") or "template"),
        scoring_values=dict(scoring.get("scoring_config_values") or {}),
        judge=dict(configs.get("grading_settings") or {}),
    )


def _task_id(verifiers: list[Any]) -> str | None:
    ids = {row.get("task_id") for row in verifiers if isinstance(row, dict) and row.get("task_id")}
    return str(ids.pop()) if len(ids) == 1 else None


def _directory_name(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-.") or "task"


def _timeout(agent: Mapping[str, Any]) -> float | None:
    found = (agent.get("agent_config_values") or {}).get("timeout")
    return float(found) if isinstance(found, int | float) and not isinstance(found, bool) and found > 0 else None
