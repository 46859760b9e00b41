from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from task_directories import MakeTask, draft

from journeyman.errors import EnvironmentMissing
from journeyman.sandbox import PROVIDERS
from journeyman.sandbox.environment import build_environment
from journeyman.sandbox.protocol import (
    AgentEnvironment,
    Provider,
    Sandbox,
    SandboxIds,
    SandboxInfos,
    SandboxSpec,
)
from journeyman.tasks.task import Task, load_task, write_task


@pytest.fixture
def make_task(tmp_path: Path) -> MakeTask:
    """Write a task under ``tmp_path/tasks/<name>`` and load it; keyword arguments as for ``draft``."""

    def make(name: str = "look-0001", **changes: Any) -> Task:
        return load_task(write_task(draft(**changes), tmp_path / "tasks" / name))

    return make


class Waiving:
    """A real provider that waives what it cannot limit here: these tests are about grading, and they are ours."""

    def __init__(self, provider: Provider) -> None:
        self.provider, self.name, self.supports = provider, provider.name, provider.supports

    def create(self, spec: SandboxSpec, *, deadline_s: float = 30) -> Sandbox:
        missing = frozenset({"memory", "pids", "disk", "cpus"}) - self.supports
        return self.provider.create(replace(spec, waive=spec.waive | missing), deadline_s=deadline_s)

    def list(self, label: str | None = None) -> SandboxInfos:
        return self.provider.list(label)

    def reap(self, label: str | None = None) -> SandboxIds:
        return self.provider.reap(label)


@pytest.fixture(scope="session")
def provider() -> Provider:
    """The default provider of this machine; on one without control groups, its memory limit is watched by polling."""
    try:
        return Waiving(PROVIDERS["bwrap"]())
    except EnvironmentMissing as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> AgentEnvironment:
    """An agent environment with an interpreter and the fork server, and no package."""
    return build_environment(tmp_path_factory.mktemp("agent"), distributions=(), packages={}, programs={})
