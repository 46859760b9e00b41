from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from task_directories import MakeTask, draft

from journeyman.sandbox import PROVIDERS
from journeyman.sandbox.environment import build_environment
from journeyman.sandbox.protocol import AgentEnvironment, Provider
from journeyman.tasks.task import Task, load_task, write_task


@pytest.fixture
def make_task(tmp_path: Path) -> MakeTask:
    """Write a task under ``tmp_path/tasks/<name>`` and load it; keyword arguments as for ``draft``."""

    def make(name: str = "look-0001", **changes: Any) -> Task:
        return load_task(write_task(draft(**changes), tmp_path / "tasks" / name))

    return make


@pytest.fixture(scope="session")
def provider() -> Provider:
    """The default provider of this machine."""
    return PROVIDERS["bwrap"]()


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> AgentEnvironment:
    """An agent environment with an interpreter and the fork server, and no package."""
    return build_environment(tmp_path_factory.mktemp("agent"), distributions=(), packages={}, programs={})
