"""Harbor's side of ``benchmarks/trials.py``; runs in Harbor's own environment, with our ``src`` on the path.

python trials_harbor.py TASK TRIALS CALLS CONCURRENCY OUT
"""

from __future__ import annotations

import asyncio
import logging
import sys
from pathlib import Path
from typing import Any

from harbor.agents.base import BaseAgent
from harbor.environments.base import BaseEnvironment, ExecResult
from harbor.environments.capabilities import EnvironmentCapabilities
from harbor.models.trial.config import AgentConfig, EnvironmentConfig, TaskConfig, TrialConfig
from harbor.trial.trial import Trial

from journeyman.sandbox.bwrap import Bubblewrap
from journeyman.sandbox.protocol import Mount, SandboxSpec

COMMAND = "read line < /ws/sales.csv; echo $line"
LIMITS = frozenset({"memory", "pids", "disk", "cpus"})
PROVIDER = Bubblewrap()


class Bwrap(BaseEnvironment):
    """The same sandboxes as ours behind Harbor's interface."""

    @staticmethod
    def type() -> str:
        return "bwrap"

    @property
    def capabilities(self) -> EnvironmentCapabilities:
        return EnvironmentCapabilities(disable_internet=True)

    def _validate_definition(self) -> None:
        return

    async def start(self, force_build: bool) -> None:
        spec = SandboxSpec(
            label="bench-harbor",
            mounts=(Mount(self.environment_dir / "world", "/ws", overlay=True),),
            waive=LIMITS - PROVIDER.supports,
        )
        self.sandbox = await asyncio.to_thread(PROVIDER.create, spec)
        await self.exec("mkdir -p /logs/agent /logs/verifier /logs/artifacts")

    async def stop(self, delete: bool) -> None:
        await asyncio.to_thread(self.sandbox.destroy)

    async def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_sec: int | None = None,
        user: str | int | None = None,
    ) -> ExecResult:
        known = {"LOGS_DIR": "/tmp/logs", **(env or {})}
        done = await asyncio.to_thread(
            lambda: self.sandbox.exec(moved(command), deadline_s=timeout_sec or 60, cwd=cwd, env=known)
        )
        return ExecResult(stdout=done.stdout.decode(), stderr=done.stderr.decode(), return_code=done.return_code)

    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        data = Path(source_path).read_bytes()
        await asyncio.to_thread(lambda: self.sandbox.upload(data, moved(target_path), deadline_s=60))

    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        for path in sorted(Path(source_dir).rglob("*")):
            if path.is_file():
                await self.upload_file(path, f"{target_dir}/{path.relative_to(source_dir)}")

    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        data = await asyncio.to_thread(lambda: self.sandbox.download(moved(source_path), deadline_s=60))
        Path(target_path).parent.mkdir(parents=True, exist_ok=True)
        Path(target_path).write_bytes(data)

    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        listing = await self.exec(f"cd {source_dir} && find . -type f")
        for name in (listing.stdout or "").split():
            await self.download_file(f"{source_dir}/{name}", Path(target_dir) / name)


def moved(text: str) -> str:
    """Harbor's fixed places lie below /tmp: the root of these sandboxes is read-only."""
    for name in ("/logs", "/tests", "/solution", "/installed-agent", "/harbor"):
        text = text.replace(f"/tmp{name}", name).replace(name, f"/tmp{name}")
    return text


class Scripted(BaseAgent):
    """K shell commands, then the answer."""

    @staticmethod
    def name() -> str:
        return "scripted"

    def __init__(self, *words: Any, calls: int = 0, **others: Any) -> None:
        super().__init__(*words, **others)
        self.calls = int(calls)

    def version(self) -> str:
        return "1"

    async def setup(self, environment: BaseEnvironment) -> None:
        return

    async def run(self, instruction: str, environment: BaseEnvironment, context: Any) -> None:
        for _ in range(self.calls):
            await environment.exec(COMMAND, timeout_sec=60)
        write = 'mkdir -p /logs/artifacts && echo \'{"answer": "412"}\' > /logs/artifacts/answer.json'
        await environment.exec(write, timeout_sec=60)


async def one(task: Path, out: Path, name: str, calls: int, gate: asyncio.Semaphore) -> float | None:
    """One trial; its reward."""
    async with gate:
        config = TrialConfig(
            task=TaskConfig(path=task),
            trial_name=name,
            trials_dir=out,
            agent=AgentConfig(import_path="trials_harbor:Scripted", kwargs={"calls": calls}),
            environment=EnvironmentConfig(import_path="trials_harbor:Bwrap"),
        )
        trial = await Trial.create(config)
        result = await trial.run()
        rewards = result.verifier_result.rewards if result.verifier_result else None
        if not rewards and result.exception_info is not None:
            print(result.exception_info.exception_message[:300], file=sys.stderr)
        return rewards.get("reward") if rewards else None


async def main(words: list[str]) -> int:
    task, out = Path(words[0]), Path(words[4])
    trials, calls, concurrency = (int(word) for word in words[1:4])
    logging.disable(logging.INFO)
    gate = asyncio.Semaphore(concurrency)
    rewards = await asyncio.gather(*(one(task, out, f"t{n}", calls, gate) for n in range(trials)))
    wrong = [reward for reward in rewards if reward != 1.0]
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1:])))
