"""The oracle from files: a template's solver, driven through the tools of one sandbox that holds the world.

All tasks of a world share the sandbox; whatever a solver left is taken out and removed before the next one starts. A
solver that changes a file of the world itself is stopped, since the next one would not see what an agent sees.
"""

from __future__ import annotations

import base64
import io
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from journeyman.digest import sha256
from journeyman.sandbox.protocol import AgentEnvironment, Mount, Provider, SandboxSpec
from journeyman.tasks.artifacts import stays_inside
from journeyman.tasks.counterparts import Script
from journeyman.tools.counterparts import AnsweringTools, journal_of
from journeyman.tools.hosts import DIRECT_ENTRY
from journeyman.tools.observations import ObservationCache
from journeyman.tools.sandbox_tools import SandboxTools
from journeyman.tools.toolset import ToolSet
from journeyman.worlds.gates import Executed
from journeyman.worlds.template import FOLDER, Bound, Lost, Solving, Template

MAX_CALLS = 1_200
CALL_DEADLINE_S = 60.0
MAX_COLLECTED_CHARS = 40_000_000

_CLEAN = f"rm -rf {FOLDER}"
_PACK = f"tar -cf - -C {FOLDER} . 2>/dev/null | base64 -w0; {_CLEAN}"
_KEEP_APPS = "rm -rf /tmp/apps && cp -a /apps_data /tmp/apps"
_RESTORE_APPS = "find /apps_data -mindepth 1 -delete; cp -a /tmp/apps/. /apps_data/"


class WorldDesk:
    """A sandbox with one world and the tools an agent has; a context manager.

    Args:
        layer: ``world/`` and ``apps_data/``, see ``worlds.package.write_layer``.
        provider, environment: sandbox and the tools' environment.
        label: owner of the sandbox.
        today: ISO date that new records carry.
        waive: limits that may stay unenforced.
    """

    def __init__(
        self,
        layer: Path,
        provider: Provider,
        environment: AgentEnvironment,
        label: str,
        *,
        today: str = "",
        waive: frozenset[str] = frozenset(),
    ) -> None:
        spec = SandboxSpec(
            label=label,
            environment=environment,
            mounts=(
                Mount((layer / "world").absolute(), "/ws", overlay=True),
                Mount((layer / "apps_data").absolute(), "/apps_data", overlay=True),
            ),
            entry=DIRECT_ENTRY,
            env={"WORKTOOLS_NOW": f"{today}T09:00:00+00:00"} if today else {},
            memory_mb=1024,
            waive=waive,
        )
        self._sandbox = provider.create(spec)
        self._reads = ObservationCache(environment.digest)
        self._files = {
            path.relative_to(layer / "world").as_posix(): sha256(path.read_bytes())
            for path in sorted((layer / "world").rglob("*"))
            if path.is_file()
        }

    def __enter__(self) -> WorldDesk:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._sandbox.destroy()

    def solve(self, template: Template, bound: Bound) -> Executed:
        """Run a template's solver to its end; what it left and how many calls it took.

        Raises:
            SystemFault: the sandbox or the tools' program broke.
        """
        tools = SandboxTools(self._sandbox, reads=self._reads, files=self._files, serves_frames=True)
        offered: ToolSet = tools
        if bound.counterparts:
            offered = AnsweringTools(tools, Script.of(bound.counterparts))
            _plain_shell(tools, _KEEP_APPS)
        calls, problem, files = 0, "", None
        solving = template.solve(bound.ask)
        try:
            calls, problem = _drive(solving, offered)
            files = {**_collected(tools), **journal_of(offered)} if not problem else None
        finally:
            solving.close()
            if files is None:
                _plain_shell(tools, _CLEAN)
            if bound.counterparts:
                _plain_shell(tools, _RESTORE_APPS)
        return Executed(files or {}, calls, problem)


def _drive(solving: Solving, tools: ToolSet) -> tuple[int, str]:
    """Number of calls, and why it stopped before its end."""
    calls = 0
    try:
        call = next(solving)
        while True:
            calls += 1
            if calls > MAX_CALLS:
                return calls, f"more than {MAX_CALLS} calls"
            seen = tools.call(call.tool, call.arguments, deadline_s=CALL_DEADLINE_S)
            if seen.is_error:
                return calls, f"{call.tool} answered: {seen.text[:300]}"
            call = solving.send(seen.text)
    except StopIteration:
        return calls, ""
    except Lost as error:
        return calls, f"lost: {error}"
    except (LookupError, ValueError, TypeError, AttributeError) as error:  # a solver that met what it cannot read
        return calls, f"{type(error).__name__}: {error}"


def _collected(tools: SandboxTools) -> dict[str, bytes]:
    """Regular files that a solver left in the place of deliverables, which is empty afterwards."""
    text = _plain_shell(tools, _PACK)
    if not text:
        return {}
    found: dict[str, bytes] = {}
    with tarfile.open(fileobj=io.BytesIO(base64.b64decode(text)), mode="r:") as archive:
        for member in archive:
            name = member.name.removeprefix("./")
            file = archive.extractfile(member) if member.isreg() and stays_inside(name) else None
            if file is not None:
                found[name] = file.read()
    return dict(sorted(found.items()))


def _plain_shell(tools: SandboxTools, code: str) -> str:
    """Output of a command line, whole; empty when it failed."""
    wide = SandboxTools(tools.sandbox, serves_frames=True, max_chars=MAX_COLLECTED_CHARS)
    arguments: Mapping[str, Any] = {"code": code}
    answer = json.loads(wide.call("code_exec", arguments, deadline_s=CALL_DEADLINE_S).text)
    return str(answer["output"]).strip() if answer["success"] else ""
