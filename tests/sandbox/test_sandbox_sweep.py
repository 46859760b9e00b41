"""``sandbox list`` and ``reap`` find and remove what a killed run left, of every provider, and say what they cannot."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from journeyman.cli.main import main
from journeyman.sandbox import reaper
from journeyman.sandbox.protocol import Provider, Sandbox
from journeyman.sandbox.scratch import make_scratch
from journeyman.sandbox.sweep import survey, sweep

KILLED = """
import sys, warnings
warnings.simplefilter("ignore")
from journeyman.sandbox import PROVIDERS
from journeyman.sandbox.protocol import SandboxSpec
from journeyman.sandbox.scratch import make_scratch
from journeyman.sandbox.usage import CpuMeter
label, name = sys.argv[1:]
meter = CpuMeter.start(label)
(make_scratch(label) / "half-written").write_text("x")
sandbox = PROVIDERS[name]().create(SandboxSpec(label, waive=frozenset({"memory", "pids"})))
sandbox.exec("setsid sleep 717171 & echo started", deadline_s=10)
print("ready", flush=True)
sys.stdin.read()
"""


def killed_run(label: str, provider: Provider) -> None:
    """A program with a sandbox, a meter and a scratch directory, killed at once."""
    words = [sys.executable, "-c", KILLED, label, provider.name]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == b"ready\n"
        run.send_signal(signal.SIGKILL)
        run.wait()


def test_a_killed_run_is_listed_and_reaped_whole(
    provider: Provider, label: str, capsys: pytest.CaptureFixture[str]
) -> None:
    killed_run(label, provider)
    found, _ = survey(label)
    assert found
    assert all(trace.is_orphan for trace in found)
    assert "scratch" in {trace.kind for trace in found}
    assert main(["sandbox", "reap", "--label", label, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    removed = {trace["id"] for trace in said["removed"]}
    assert removed
    assert removed <= {trace.id for trace in found}
    assert (said["leaks"], said["living"]) == ([], [])
    assert survey(label)[0] == []
    assert not sleeping("717171")


def sleeping(word: str) -> bool:
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(path.read_bytes().split(b"\0"))
        except OSError:
            continue
    return any(word.encode() in line for line in lines)


def test_what_a_living_program_holds_is_listed_with_its_provider_and_not_touched(
    open_sandbox: Callable[..., Sandbox], provider: Provider, label: str, capsys: pytest.CaptureFixture[str]
) -> None:
    sandbox = open_sandbox()
    assert main(["sandbox", "list", "--label", label]) == 0
    said = capsys.readouterr().out
    assert f"alive    {provider.name} sandbox" in said
    assert sandbox.id in said
    assert said.splitlines()[-1] == "1 found, 0 without an owner"
    done = sweep(label)
    assert [trace.id for trace in done.living] == [sandbox.id]
    assert (done.removed, done.leaks) == ((), ())
    assert sandbox.exec("echo alive", deadline_s=5).stdout == b"alive\n"


def test_what_cannot_be_removed_is_reported_as_a_leak_with_its_place(
    label: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = make_scratch(label)
    dead = directory.with_name(directory.name.replace(f"~{os.getpid()}~", "~4194303~"))  # no such process
    directory.rename(dead)
    with monkeypatch.context() as patched:
        patched.setattr(reaper.shutil, "rmtree", lambda *_, **__: None)  # a disk that refuses
        assert main(["sandbox", "reap", "--label", label]) == 4
    said = capsys.readouterr().out
    assert "LEAK" in said
    assert str(dead) in said
    assert said.splitlines()[-1] == "0 removed, 1 leaks, 0 have a living owner"
    assert main(["sandbox", "reap", "--label", label]) == 0
    assert not dead.exists()
