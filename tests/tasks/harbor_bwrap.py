"""A small bubblewrap environment for Harbor, given by import path: ``harbor_bwrap:BwrapEnvironment``.

Runs under Harbor's Python and imports nothing of ours. Of a Dockerfile it honours WORKDIR, COPY and ENV; programs come
from the host's /usr and from the directory that stands for /opt/agent.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from pathlib import Path

from harbor.environments.base import BaseEnvironment, ExecResult
from harbor.environments.capabilities import EnvironmentCapabilities


class BwrapEnvironment(BaseEnvironment):
    def __init__(self, *args, bwrap: str = "bwrap", agent: str | None = None, **kwargs) -> None:
        self._bwrap, self._agent = bwrap, agent
        super().__init__(*args, **kwargs)

    @staticmethod
    def type() -> str:
        return "bwrap"

    @property
    def capabilities(self) -> EnvironmentCapabilities:
        return EnvironmentCapabilities(disable_internet=True)

    def _validate_definition(self) -> None:
        pass

    async def start(self, force_build: bool) -> None:
        self._root = Path(tempfile.mkdtemp(prefix="harbor-bwrap-"))
        self._cwd, self._env = "/ws", {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/tmp"}
        for name in ("ws", "tmp", "tests", "solution", "logs/agent", "logs/verifier", "logs/artifacts"):
            (self._root / name).mkdir(parents=True)
        dockerfile = self.environment_dir / "Dockerfile"
        for line in dockerfile.read_text().splitlines() if dockerfile.is_file() else ():
            self._instruction(line.split())
        if self.task_env_config.workdir:
            self._cwd = self.task_env_config.workdir
        self._inside(self._cwd).mkdir(parents=True, exist_ok=True)

    def _instruction(self, words: list[str]) -> None:
        if words[:1] == ["WORKDIR"]:
            self._cwd = words[1]
            self._inside(words[1]).mkdir(parents=True, exist_ok=True)
        elif words[:1] == ["ENV"]:
            name, _, value = words[1].partition("=")
            self._env[name] = value.replace("$PATH", self._env["PATH"])
        elif words[:1] == ["COPY"] and not (self._agent and words[2].startswith("/opt/agent")):
            shutil.copytree(self.environment_dir / words[1], self._inside(words[2]), dirs_exist_ok=True)

    def _inside(self, path: str) -> Path:
        return self._root / str(path).lstrip("/")

    async def stop(self, delete: bool) -> None:
        shutil.rmtree(self._root, ignore_errors=True)

    async def upload_file(self, source_path, target_path) -> None:
        self._inside(target_path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source_path, self._inside(target_path))

    async def upload_dir(self, source_dir, target_dir) -> None:
        shutil.copytree(source_dir, self._inside(target_dir), dirs_exist_ok=True)

    async def download_file(self, source_path, target_path) -> None:
        Path(target_path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(self._inside(source_path), target_path)

    async def download_dir(self, source_dir, target_dir) -> None:
        shutil.copytree(self._inside(source_dir), target_dir, dirs_exist_ok=True)

    async def exec(self, command, cwd=None, env=None, timeout_sec=None, user=None) -> ExecResult:
        words = [self._bwrap, "--unshare-all", "--die-with-parent", "--new-session", "--proc", "/proc", "--dev", "/dev"]
        for name in ("usr", "bin", "sbin", "lib", "lib64", "etc"):
            words += ["--ro-bind-try", f"/{name}", f"/{name}"]
        for path in sorted(self._root.iterdir()):
            words += ["--bind", str(path), f"/{path.name}"]
        if self._agent:
            words += ["--ro-bind", self._agent, "/opt/agent"]
        merged = {**self._env, **(self._merge_env(env) or {})}
        words += ["--clearenv", *(word for name, value in merged.items() for word in ("--setenv", name, value))]
        words += ["--chdir", cwd or self._cwd, "/bin/sh", "-c", command]
        process = await asyncio.create_subprocess_exec(
            *words, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            env={"PATH": os.environ["PATH"]},
        )  # fmt: skip
        try:
            out, err = await asyncio.wait_for(process.communicate(), timeout_sec)
        except BaseException:
            process.kill()
            await process.wait()
            raise
        return ExecResult(stdout=out.decode(), stderr=err.decode(), return_code=process.returncode or 0)
