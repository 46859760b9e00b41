"""Our sandboxes as an environment of Harbor: ``--environment-import-path journeyman.sandbox.harbor_environment:Env``.

Imported by Harbor, on Python >= 3.12; nothing else imports this file. The image of a task is not built: commands see
this machine's programs, ``environment/world`` (copy-on-write) at ``/ws`` and writable ``/app``, ``/logs``, ``/tests``,
``/solution``. There is no network, whatever the task asks for.
"""

from __future__ import annotations

import asyncio
import math
import shlex
import shutil
import tempfile
from pathlib import Path
from typing import Any

from harbor.environments.base import BaseEnvironment, ExecResult
from harbor.environments.capabilities import EnvironmentCapabilities, EnvironmentResourceCapabilities

from journeyman.sandbox.bwrap import Bubblewrap
from journeyman.sandbox.errors import ExecTimeout
from journeyman.sandbox.protocol import Mount, Sandbox, SandboxSpec

_PLACES = ("app", "logs", "tests", "solution")
_LONGEST_S = 24 * 3600.0
_TRANSFER_S = 120.0
_MAX_BYTES = 256 << 20


class Env(BaseEnvironment):  # type: ignore[misc]  # Harbor is no dependency of ours
    """One bubblewrap sandbox per trial."""

    _sandbox: Sandbox | None = None
    _room: Path | None = None

    @staticmethod
    def type() -> str:
        return "journeyman"

    @classmethod
    def resource_capabilities(cls) -> Any:
        return EnvironmentResourceCapabilities(memory_limit=True, cpu_limit=True)

    @property
    def capabilities(self) -> Any:
        return EnvironmentCapabilities(disable_internet=True)

    def _validate_definition(self) -> None:
        """Any task will do: no image is built."""

    async def start(self, force_build: bool) -> None:
        """Make the sandbox. ``force_build`` means nothing here."""
        self._room = Path(tempfile.mkdtemp(prefix="journeyman-harbor-"))
        for name in _PLACES:
            (self._room / name).mkdir()
        for name in ("agent", "verifier", "artifacts"):
            (self._room / "logs" / name).mkdir()
        world = Path(self.environment_dir) / "world"
        mounts = [Mount(self._room / name, f"/{name}", writable=True) for name in _PLACES]
        if world.is_dir():
            mounts.append(Mount(world, "/ws", overlay=True))
        spec = SandboxSpec(
            "harbor",
            mounts=tuple(mounts),
            cwd="/ws" if world.is_dir() else "/app",
            env={**self.task_env_config.env, **self._persistent_env},
            memory_mb=self.task_env_config.memory_mb or 2048,
            cpus=self.task_env_config.cpus,
            disk_mb=self.task_env_config.storage_mb or 1024,
            pids=512,
        )
        self._sandbox = await asyncio.to_thread(lambda: Bubblewrap().create(spec))

    async def stop(self, delete: bool) -> None:
        """End it; nothing is kept."""
        sandbox, self._sandbox = self._sandbox, None
        if sandbox is not None:
            await asyncio.to_thread(sandbox.destroy)
        if self._room is not None:
            shutil.rmtree(self._room, ignore_errors=True)

    async def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_sec: int | None = None,
        user: str | int | None = None,
    ) -> Any:
        """Run a command as the one user there is. Raises RuntimeError at its time limit, as Harbor's own do."""
        limit_s = float(timeout_sec or _LONGEST_S)
        merged = self._merge_env(env) or {}
        try:
            result = await asyncio.to_thread(
                lambda: self._up().exec(command, deadline_s=limit_s, cwd=cwd, env=merged, max_output_bytes=16 << 20)
            )
        except ExecTimeout as error:
            raise RuntimeError(f"Command timed out after {math.ceil(limit_s)} seconds") from error
        text = (result.stdout.decode(errors="replace"), result.stderr.decode(errors="replace"))
        return ExecResult(stdout=text[0], stderr=text[1], return_code=result.return_code)

    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        """Send one file."""
        data = Path(source_path).read_bytes()
        await asyncio.to_thread(lambda: self._up().upload(data, target_path, deadline_s=_TRANSFER_S))

    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        """Send the files of a directory, their execute bits with them."""
        root = Path(source_dir)
        for file in sorted(root.rglob("*")):
            if file.is_file():
                target = f"{target_dir.rstrip('/')}/{file.relative_to(root).as_posix()}"
                await self.upload_file(file, target)
                if file.stat().st_mode & 0o100:
                    await self.exec(f"chmod +x {shlex.quote(target)}", timeout_sec=10)

    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        """Fetch one file."""
        data = await asyncio.to_thread(
            lambda: self._up().download(source_path, deadline_s=_TRANSFER_S, max_bytes=_MAX_BYTES)
        )
        Path(target_path).parent.mkdir(parents=True, exist_ok=True)
        Path(target_path).write_bytes(data)

    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        """Fetch the regular files of a directory; links are not followed."""
        folder = shlex.quote(source_dir)
        listed = await self.exec(f"cd {folder} 2>/dev/null && find . -type f", timeout_sec=60)
        for name in sorted(line.removeprefix("./") for line in (listed.stdout or "").splitlines()):
            target = Path(target_dir) / name
            if ".." not in Path(name).parts and not name.startswith("/"):
                await self.download_file(f"{source_dir.rstrip('/')}/{name}", target)

    def _up(self) -> Sandbox:
        if self._sandbox is None:
            raise RuntimeError("the environment is not started")
        return self._sandbox
