"""The tasks of a run: what its trials were asked, found by id in the task directories that it names or is given."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from journeyman.errors import InputError
from journeyman.tasks.task import Task, load_task
from journeyman.trials.detached import FILE as RUN_FILE

RECORDS = (RUN_FILE, "dry-run.json")
"""Files of a run that name its task directories."""
_HINT = "say where the task directories lie: --tasks DIR"


class RunTasks:
    """Task directories by their id, each loaded once.

    Args:
        run: a run directory.
        root: where task directories lie, at any depth. None: ``run/tasks``, else those that the run names.

    Attributes:
        where: where they lie, in words.
        paths: name of a directory -> task directory.

    Raises:
        InputError: there is no such directory, or nothing says where the tasks are.
    """

    def __init__(self, run: Path, root: Path | None = None) -> None:
        if not run.is_dir():
            raise InputError(str(run), "is not a directory", allowed="a run directory")
        named = [] if root is not None or (run / "tasks").is_dir() else list(_named(run))
        self.paths: dict[str, Path] = {path.name: path for path in named}
        self.where = f"below {root or run / 'tasks'}" if not named else f"in a directory that {run} names"
        if not named:
            place = root or run / "tasks"
            if not place.is_dir():
                raise InputError(str(place), "is not a directory", hint=_HINT)
            for path in sorted(place.rglob("task.toml")):
                self.paths.setdefault(path.parent.name, path.parent)
        self._loaded: dict[str, Task | None] = {}
        self._has_all = False

    def task(self, task_id: str) -> Task | None:
        """The task of that id, mostly in a directory of that name; None when there is none."""
        if task_id not in self._loaded and task_id in self.paths:
            task = load_task(self.paths[task_id])
            self._loaded.setdefault(task.id, task)
        if task_id not in self._loaded and not self._has_all:
            self._has_all = True
            for path in self.paths.values():
                task = load_task(path)
                self._loaded.setdefault(task.id, task)
        return self._loaded.get(task_id)


def _named(run: Path) -> Iterator[Path]:
    """The task directories that a run's own record names and that are still there."""
    for name in RECORDS:
        if not (run / name).is_file():
            continue
        try:
            record: dict[str, Any] = json.loads((run / name).read_bytes())
            for task in record.get("plan", record)["tasks"]:
                path = Path(task if isinstance(task, str) else task["path"])
                if (path / "task.toml").is_file():
                    yield path
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(str(run / name), f"is damaged: {error}", hint=_HINT) from error
