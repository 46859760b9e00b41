"""Sandboxes behind somebody else's client: Harbor's environments as ours, ours as Harbor's, and Modal's signatures.

No cloud is asked anything. What needs Harbor runs it in a Python of its own, named by JOURNEYMAN_HARBOR_PYTHON.
"""

from __future__ import annotations

import asyncio
import importlib.util
import inspect
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from journeyman.errors import EnvironmentMissing, InputError
from journeyman.sandbox.errors import (
    ExecTimeout,
    LimitUnenforceable,
    SandboxLeak,
    SandboxLost,
    SandboxStartFailed,
    TransferFailed,
)
from journeyman.sandbox.harbor import Harbor
from journeyman.sandbox.identity import Identity
from journeyman.sandbox.modal import Modal, create_arguments, exec_arguments
from journeyman.sandbox.protocol import Mount, Provider, Sandbox, SandboxSpec

WAIVED = frozenset({"memory", "pids", "disk"})


class Environment:
    """Harbor's interface over a sandbox of ours: coroutines, called by keyword. ``hang``: a call that never ends."""

    def __init__(self, provider: Provider, spec: SandboxSpec, session_id: str, hang: str = "") -> None:
        self.provider, self.label, self.session_id, self.hang = provider, spec.label, session_id, hang
        self.sandbox: Sandbox | None = None

    async def _maybe_hang(self, name: str) -> None:
        if name == self.hang:
            await asyncio.sleep(3600)

    async def start(self, force_build: bool) -> None:
        await self._maybe_hang("start")
        spec = SandboxSpec(self.label, waive=frozenset({"memory", "pids"}))
        self.sandbox = await asyncio.to_thread(lambda: self.provider.create(spec))

    async def stop(self, delete: bool) -> None:
        if self.sandbox is not None:
            await asyncio.to_thread(self.sandbox.destroy)
        await self._maybe_hang("stop")

    async def exec(
        self, command: str, cwd: str | None = None, env: dict[str, str] | None = None, timeout_sec: int | None = None
    ) -> Any:
        assert self.sandbox is not None
        await self._maybe_hang("exec")
        run = self.sandbox.exec
        done = await asyncio.to_thread(lambda: run(command, deadline_s=timeout_sec or 60, cwd=cwd, env=env))
        return SimpleNamespace(stdout=done.stdout.decode(), stderr=done.stderr.decode(), return_code=done.return_code)

    async def upload_file(self, source_path: Path, target_path: str) -> None:
        assert self.sandbox is not None
        self.sandbox.upload(Path(source_path).read_bytes(), target_path, deadline_s=30)

    async def download_file(self, source_path: str, target_path: Path) -> None:
        assert self.sandbox is not None
        Path(target_path).write_bytes(self.sandbox.download(source_path, deadline_s=30))


@pytest.fixture
def harbor(bwrap: Provider, label: str) -> Iterator[Callable[..., Harbor]]:
    made: list[Environment] = []

    def make(hang: str = "", **fields: Any) -> Harbor:
        def environment(spec: SandboxSpec, session_id: str) -> Environment:
            made.append(Environment(bwrap, spec, session_id, hang))
            return made[-1]

        return Harbor(environment, **fields)

    yield make
    for environment in made:
        if environment.sandbox is not None:
            environment.sandbox.destroy()


def test_an_environment_of_harbor_serves_as_a_sandbox(harbor: Any, label: str, tmp_path: Path) -> None:
    (tmp_path / "world").mkdir()
    (tmp_path / "world" / "a file").write_bytes(b"\0\xff world")
    provider = harbor()
    sandbox = provider.create(SandboxSpec(label, waive=WAIVED, mounts=(Mount(tmp_path / "world", "/ws/world"),)))
    result = sandbox.exec("cat; echo out; echo err >&2; exit 7", deadline_s=10)
    assert (result.return_code, result.stdout, result.stderr) == (7, b"out\n", b"err\n")
    assert sandbox.exec(["printf", "[%s]", "a b", "'", "$HOME"], deadline_s=10).stdout == b"[a b]['][$HOME]"
    assert sandbox.exec("echo $A; pwd", deadline_s=10, cwd="/tmp", env={"A": "it's"}).stdout == b"it's\n/tmp\n"
    sandbox.upload(b"x\0y" * 1000, "/ws/new/file", deadline_s=10)
    assert sandbox.download("/ws/new/file", deadline_s=10) == b"x\0y" * 1000
    assert sandbox.download("/ws/world/a file", deadline_s=10) == b"\0\xff world"
    cut = sandbox.exec(["printf", "\U0001f4d0" * 50], deadline_s=10, max_output_bytes=99)
    assert (cut.stdout.decode(), cut.omitted_bytes) == ("\U0001f4d0" * 24, 104)
    for path, size in (("/ws/none", 10), ("/ws/new/file", 10)):
        with pytest.raises(TransferFailed):
            sandbox.download(path, deadline_s=10, max_bytes=size)
    assert [(info.id, info.label, info.is_orphan) for info in provider.list(label)] == [(sandbox.id, label, False)]
    assert sandbox.alive(deadline_s=10)
    sandbox.destroy()
    sandbox.destroy()
    assert not sandbox.alive(deadline_s=10)
    assert provider.list(label) == []
    with pytest.raises(SandboxLost):
        sandbox.exec("true", deadline_s=5)


def test_a_command_past_its_deadline_ends_the_whole_sandbox_since_no_client_can_sweep_it(
    harbor: Any, bwrap: Provider, label: str
) -> None:
    sandbox = harbor().create(SandboxSpec(label, waive=WAIVED))
    started = time.monotonic()
    with pytest.raises(ExecTimeout):
        sandbox.exec("setsid sleep 100 & sleep 100", deadline_s=0.5)
    assert time.monotonic() - started < 5
    assert bwrap.list(label) == []
    with pytest.raises(SandboxLost):
        sandbox.exec("true", deadline_s=5)


def test_a_service_that_hangs_is_bounded_at_start_command_and_end(harbor: Any, label: str) -> None:
    started = time.monotonic()
    with pytest.raises(SandboxStartFailed, match=r"did not end within 0\.3 s"):
        harbor("start").create(SandboxSpec(label, waive=WAIVED), deadline_s=0.3)
    sandbox = harbor("exec").create(SandboxSpec(label, waive=WAIVED))
    with pytest.raises(ExecTimeout):
        sandbox.exec("true", deadline_s=0.3)
    sandbox = harbor("stop").create(SandboxSpec(label, waive=WAIVED))
    with pytest.raises(SandboxLeak, match="itself at its service"):
        sandbox.destroy(deadline_s=0.5)
    assert time.monotonic() - started < 20


def test_what_nobody_vouches_for_or_cannot_be_done_is_refused_before_anything_starts(
    harbor: Any, label: str, tmp_path: Path
) -> None:
    with pytest.raises(LimitUnenforceable, match="disk"):
        harbor().create(SandboxSpec(label))
    with pytest.raises(LimitUnenforceable, match="memory"):
        harbor(supports=frozenset({"pids", "disk"})).create(SandboxSpec(label))
    for fields in ({"entry": ("python3", "x")}, {"mounts": (Mount(tmp_path, "/out", writable=True),)}):
        with pytest.raises(InputError):
            harbor().create(SandboxSpec(label, waive=WAIVED, **fields))


def harbor_python() -> str:
    python = os.environ.get("JOURNEYMAN_HARBOR_PYTHON", "")
    if not python:
        pytest.skip("JOURNEYMAN_HARBOR_PYTHON does not name a Python >= 3.12 with the package harbor")
    return python


def harbor_variables() -> dict[str, str]:
    from journeyman.sandbox.bwrap_binary import find_bwrap

    program = find_bwrap()
    assert program is not None
    source = str(Path(__file__).parents[2] / "src")
    return {
        **os.environ,
        "PYTHONPATH": source,
        "JOURNEYMAN_BWRAP": str(program.path),
        "LITELLM_LOCAL_MODEL_COST_MAP": "1",
    }


@pytest.mark.parametrize(("solution", "reward"), [("412", 1.0), ("413", 0.0)])
def test_harbor_runs_its_oracle_in_our_sandbox(bwrap: Provider, tmp_path: Path, solution: str, reward: float) -> None:
    python = harbor_python()
    files = {
        "environment/Dockerfile": "FROM debian:12\n",
        "environment/world/sales.csv": "client,Q1\n",
        "instruction.md": "report it\n",
        "task.toml": 'schema_version = "1.4"\n[verifier]\ntimeout_sec = 30\n[agent]\ntimeout_sec = 30\n',
        "tests/test.sh": 'r=0; [ "$(cat /app/answer)" = 412 ] && r=1; echo $r >/logs/verifier/reward.txt\n',
        "solution/solve.sh": f"#!/bin/sh\ntest -f /ws/sales.csv && echo {solution} >/app/answer\n",
    }
    for name, text in files.items():
        (tmp_path / "task" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "task" / name).write_text(text)
    (tmp_path / "task" / "solution" / "solve.sh").chmod(0o755)
    program = shutil.which("harbor", path=str(Path(python).parent))
    assert program is not None
    words = [program, "run", "-p", "task", "-a", "oracle", "--jobs-dir", "jobs", "-q"]
    done = subprocess.run(
        [*words, "--env", "journeyman.sandbox.harbor_environment:Env"],
        cwd=tmp_path,
        env=harbor_variables(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (trial,) = tmp_path.glob("jobs/*/*/result.json")
    result = json.loads(trial.read_text())
    assert result["exception_info"] is None
    assert result["verifier_result"]["rewards"]["reward"] == reward
    assert bwrap.list("harbor") == []


ROUND_TRIP = """
import json, logging, sys
from pathlib import Path
from harbor.models.task.config import EnvironmentConfig
from harbor.models.trial.paths import TrialPaths
from journeyman.sandbox.errors import ExecTimeout
from journeyman.sandbox.harbor import Harbor
from journeyman.sandbox.harbor_environment import Env
from journeyman.sandbox.protocol import SandboxSpec
root = Path(sys.argv[1])
def make(spec, session_id):
    return Env(root, "round", session_id, TrialPaths(root / "trial"), EnvironmentConfig(memory_mb=256))
provider = Harbor(make, frozenset({"memory", "pids", "disk"}))
sandbox = provider.create(SandboxSpec("round"))
said = {"exec": sandbox.exec("echo out; id -u; exit 3", deadline_s=10).stdout.decode()}
sandbox.upload(b"data", "/app/sub/file", deadline_s=10)
said["file"] = sandbox.download("/app/sub/file", deadline_s=10).decode()
said["memory"] = sandbox.exec("head -c 500000000 /dev/zero | tail", deadline_s=20).return_code
try:
    sandbox.exec("sleep 60", deadline_s=0.5)
except ExecTimeout:
    said["timeout"] = True
said["alive"] = sandbox.alive(deadline_s=5)
print(json.dumps(said))
"""


def test_the_adapters_of_both_directions_fit_the_real_harbor(bwrap: Provider, tmp_path: Path) -> None:
    (tmp_path / "trial").mkdir()
    done = subprocess.run(
        [harbor_python(), "-c", ROUND_TRIP, str(tmp_path)],
        env=harbor_variables(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert (said["exec"], said["file"], said["timeout"], said["alive"]) == ("out\n1000\n", "data", True, False)
    assert said["memory"] != 0 or "memory" not in bwrap.supports
    assert bwrap.list("harbor") == []


SIGNATURES = """
import inspect, json, sys
import modal
from modal.container_process import ContainerProcess
from journeyman.sandbox.identity import Identity
from journeyman.sandbox.modal import create_arguments, exec_arguments
from journeyman.sandbox.protocol import SandboxSpec
said = []
def fits(call, *words, **options):
    inspect.signature(call).bind(*words, **options)
    said.append(call.__name__ if hasattr(call, "__name__") else str(call))
words, options = create_arguments(SandboxSpec("x", cpus=1.0), Identity.fresh("x"), None, None, 60)
fits(modal.Sandbox.create, *words, **options)
words, options = exec_arguments("true", "/ws", {"A": "b"}, 3)
fits(modal.Sandbox.exec, None, *words, **options)
fits(modal.Sandbox.terminate, None, wait=True)
fits(modal.Sandbox.list, tags={"journeyman": "x"})
fits(modal.Sandbox.get_tags, None)
fits(modal.App.lookup, "journeyman", create_if_missing=True)
fits(modal.Image.debian_slim)
fits(ContainerProcess.wait, None)
from modal.sandbox._filesystem import _SandboxFilesystem
fits(_SandboxFilesystem.write_bytes, None, b"", "/x")
fits(_SandboxFilesystem.read_bytes, None, "/x")
assert isinstance(modal.Sandbox.filesystem, property)
for name in ("stdout", "stderr"):
    assert hasattr(ContainerProcess, name), name
assert hasattr(modal.Sandbox, "object_id")
print(json.dumps(said))
"""


def test_every_call_to_modal_fits_the_signature_of_the_real_sdk() -> None:
    python = os.environ.get("JOURNEYMAN_MODAL_PYTHON", "")
    if not python and importlib.util.find_spec("modal") is None:
        pytest.skip("the SDK of Modal is not installed, nor does JOURNEYMAN_MODAL_PYTHON name a Python that has it")
    import sys

    source = str(Path(__file__).parents[2] / "src")
    done = subprocess.run(
        [python or sys.executable, "-c", SIGNATURES],
        env={**os.environ, "PYTHONPATH": source},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)) == 10


def test_a_modal_sandbox_is_asked_for_with_a_life_a_limit_no_network_and_an_owner() -> None:
    identity = Identity.fresh("my-run")
    spec = SandboxSpec("my-run", memory_mb=300, cpus=2.0, env={"A": "b"})
    words, options = create_arguments(spec, identity, "app", "image", 7200.5)
    assert words == ("sleep", "infinity")
    assert options["timeout"] == 7201
    assert (options["memory"], options["cpu"], options["block_network"]) == ((300, 300), (2.0, 2.0), True)
    assert options["tags"] == {
        "journeyman": "my-run",
        "journeyman-owner": f"{identity.owner_pid}.{identity.owner_start}",
    }
    assert exec_arguments("echo", "/ws", {}, 0.5)[1]["timeout"] == 2
    assert inspect.signature(Modal.__init__).parameters["life_s"].default > 3600


@pytest.mark.skipif(importlib.util.find_spec("modal") is not None, reason="the SDK of Modal is installed")
def test_without_its_sdk_modal_says_what_to_install() -> None:
    with pytest.raises(EnvironmentMissing, match="pip install modal"):
        Modal()
