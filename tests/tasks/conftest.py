from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from task_directories import MakeTask, draft

from journeyman.tasks.task import Task, load_task, write_task


@pytest.fixture
def make_task(tmp_path: Path) -> MakeTask:
    """Write a task under ``tmp_path/tasks/<name>`` and load it; keyword arguments as for ``draft``."""

    def make(name: str = "look-0001", **changes: Any) -> Task:
        return load_task(write_task(draft(**changes), tmp_path / "tasks" / name))

    return make
