"""Sandboxes with the tools of an office; their environment is built once for all tests of this room."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from journeyman.errors import EnvironmentMissing
from journeyman.sandbox import PROVIDERS
from journeyman.sandbox.protocol import AgentEnvironment, Mount, Provider, Sandbox, SandboxSpec
from journeyman.tools import SandboxTools
from journeyman.tools.workbench import tools_environment

WAIVED = frozenset({"memory", "pids", "disk", "cpus"})


@pytest.fixture(scope="session")
def office_provider() -> Provider:
    try:
        return PROVIDERS["bwrap"]()
    except EnvironmentMissing as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def office_environment(tmp_path_factory: pytest.TempPathFactory) -> AgentEnvironment:
    return tools_environment(tmp_path_factory.mktemp("office"))


@pytest.fixture(scope="module")
def open_office(office_provider: Provider, office_environment: AgentEnvironment) -> Iterator[Callable[..., Sandbox]]:
    """``open_office(world, apps=None, **fields of SandboxSpec)``; every sandbox ends with the module."""
    opened: list[Sandbox] = []

    def start(world: Path, apps: Path | None = None, **fields: Any) -> Sandbox:
        mounts = [Mount(world, "/ws", overlay=True)]
        mounts += [Mount(apps, "/apps_data", overlay=True)] if apps is not None else []
        fields = {"environment": office_environment, "mounts": tuple(mounts), "waive": WAIVED, **fields}
        opened.append(office_provider.create(SandboxSpec(label="test-office", **fields)))
        return opened[-1]

    yield start
    for sandbox in opened:
        sandbox.destroy()


@pytest.fixture
def tools(open_office: Callable[..., Sandbox], tmp_path: Path) -> SandboxTools:
    """Tools over a small world of its own."""
    world = tmp_path / "world"
    world.mkdir()
    (world / "note.txt").write_text("the quick brown fox\n")
    return SandboxTools(open_office(world))
