"""A world directory as tools: a sandbox that sees a copy-on-write view of it, and the faults that the world asks for.

A directory with ``filesystem/`` is taken as Archipelago lays worlds out: files there, state of mail, chat and calendar
in ``.apps_data/``. Any other directory is the files themselves. The directory is never written to.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from journeyman.errors import InputError
from journeyman.sandbox import PROVIDERS
from journeyman.sandbox.protocol import Mount, Provider, SandboxSpec
from journeyman.tools.fault_rules import CONFIG_FILE, FaultPlan, load_plan, load_world_plans
from journeyman.tools.faults import FaultyTools
from journeyman.tools.sandbox_tools import SandboxTools
from journeyman.tools.surface import INSIDE_SERVERS, WEB_SERVERS, specs_of
from journeyman.tools.toolset import ToolSet
from journeyman.tools.workbench import tools_environment, workbench_environment

FILES, APPS = "filesystem", (".apps_data", "apps_data")

PROBE = "filesystem_list_files"

MEMORY_MB, PIDS, DISK_MB = 2048, 256, 512


@dataclass(frozen=True)
class WorldSpec:
    """What is served.

    Attributes:
        directory: of the world.
        servers: which of ``surface.INSIDE_SERVERS``; empty for all.
        provider: key of ``sandbox.PROVIDERS``.
        environments: where the environments of sandboxes are kept; None for the user's cache.
        faults: a file of faults besides the world's own; None for none.
        seed: of the faults, added to their own.
        has_workbench: code finds the packages that agents reach for.
        waive: limits that may stay unenforced.
    """

    directory: Path
    servers: Sequence[str] = ()
    provider: str = "bwrap"
    environments: Path | None = None
    faults: Path | None = None
    seed: int | None = None
    has_workbench: bool = False
    waive: frozenset[str] = frozenset()


@contextmanager
def opened(spec: WorldSpec) -> Iterator[ToolSet]:
    """The tools over a world, until the block ends; nothing of the sandbox remains then.

    Raises:
        InputError: the directory, a server or a file of faults cannot be used.
        EnvironmentMissing: the sandbox or a package for it is not there.
        SandboxStartFailed: it did not come up.
    """
    files, apps = _places(spec.directory)
    servers = tuple(spec.servers) or INSIDE_SERVERS
    specs_of(servers)
    if outside := [server for server in servers if server in WEB_SERVERS]:
        raise InputError(
            "--servers", f"{outside[0]!r} runs beside a sandbox and is not served", allowed=", ".join(INSIDE_SERVERS)
        )
    plans = _plans(spec, apps, servers)
    provider = _provider(spec.provider)
    root = (
        spec.environments
        or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "journeyman/environments"
    )
    environment = workbench_environment(root) if spec.has_workbench else tools_environment(root)
    with tempfile.TemporaryDirectory(prefix="journeyman-empty-") as empty:
        mounts = [Mount(files, "/ws", overlay=True)]
        if apps is not None:
            mounts.append(Mount(apps, "/apps_data", overlay=True))
            hidden = sorted(path.parent for path in apps.glob(f"*/{CONFIG_FILE.parent}/*") if path.is_file())
            mounts += [Mount(Path(empty), f"/apps_data/{path.relative_to(apps)}") for path in dict.fromkeys(hidden)]
        sandbox = provider.create(
            SandboxSpec(
                label=f"mcp-{os.getpid()}",
                mounts=tuple(mounts),
                environment=environment,
                memory_mb=MEMORY_MB,
                pids=PIDS,
                disk_mb=DISK_MB,
                waive=spec.waive,
            ),
            deadline_s=60,
        )
        try:
            tools: ToolSet = SandboxTools(sandbox, servers)
            if PROBE in tools.schemas:  # starts the program inside: a broken one fails here, and no first call waits
                tools.call(PROBE, {"path": "/"}, deadline_s=60)
            yield FaultyTools(tools, plans, seed=spec.seed) if plans else tools
            tools.close()
        finally:
            sandbox.destroy()


def _places(directory: Path) -> tuple[Path, Path | None]:
    """Directory of the files and of the applications' state, if it has one."""
    if not directory.is_dir():
        raise InputError(str(directory), "is no directory", allowed="a world: files, or filesystem/ and .apps_data/")
    directory = directory.resolve()
    if not (directory / FILES).is_dir():
        return directory, None
    return directory / FILES, next((directory / name for name in APPS if (directory / name).is_dir()), None)


def _plans(spec: WorldSpec, apps: Path | None, servers: Sequence[str]) -> list[FaultPlan]:
    """The file that was given first, then the world's own for every server that is offered."""
    plans = [load_plan(spec.faults)] if spec.faults is not None else []
    own = load_world_plans(apps) if apps is not None else ()
    return plans + [plan for plan in own if plan.server in servers or plan.server not in INSIDE_SERVERS]


def _provider(name: str) -> Provider:
    if name not in PROVIDERS:
        raise InputError("--sandbox", f"{name!r} is no provider", allowed=", ".join(PROVIDERS))
    return PROVIDERS[name]()
