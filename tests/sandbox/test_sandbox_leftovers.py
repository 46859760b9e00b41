"""A program that ends leaves nothing; one that is killed leaves only what the next reap removes."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from journeyman.sandbox import hierarchy
from journeyman.sandbox.protocol import Provider, SandboxSpec
from journeyman.sandbox.reaper import traces

PROGRAM = """
import os, sys, warnings
warnings.simplefilter("ignore")
from journeyman.sandbox import PROVIDERS
from journeyman.sandbox.protocol import SandboxSpec
from journeyman.sandbox.usage import CpuMeter
label, name, end = sys.argv[1:]
meter = CpuMeter.start(label)
spec = SandboxSpec(label, waive=frozenset({"memory", "pids"}))
sandbox = PROVIDERS[name]().create(spec)
sandbox.exec("sleep 616161 & echo started", deadline_s=10)
print("ready", flush=True)
sys.stdin.read() if end == "wait" else None
"""


def start(label: str, name: str, end: str) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, label, name, end], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process


def test_a_program_that_forgets_its_sandbox_and_meter_leaves_nothing(provider: Provider, label: str) -> None:
    with start(label, provider.name, "exit") as process:
        assert process.wait(timeout=20) == 0
    assert traces(label) == {}
    assert not any(b"616161" in line for line in command_lines())


def test_what_a_killed_program_left_is_listed_as_orphaned_and_reaped(provider: Provider, label: str) -> None:
    with start(label, provider.name, "wait") as process:
        assert [info.is_orphan for info in provider.list(label)] == [False]
        assert provider.reap(label) == []  # its owner lives
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert all(info.is_orphan for info in provider.list(label))
    reaped = provider.reap(label)
    assert reaped or (provider.name == "bwrap" and not hierarchy.bases().parents)  # then the kernel has removed it all
    assert traces(label) == {}
    assert not any(b"616161" in line for line in command_lines())


def test_reaping_removes_empty_parents_and_the_next_sandbox_makes_them_anew(bwrap: Provider, label: str) -> None:
    for _ in range(2):
        sandbox = bwrap.create(SandboxSpec(label, waive=frozenset({"memory", "pids"})))
        assert sandbox.exec("echo alive", deadline_s=5).stdout == b"alive\n"
        bwrap.reap(label)
        sandbox.destroy()
        hierarchy.remove_parents(hierarchy.parent_directories())


def command_lines() -> list[list[bytes]]:
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(path.read_bytes().split(b"\0"))
        except OSError:
            continue
    return lines
