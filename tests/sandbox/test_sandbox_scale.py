"""Many sandboxes at one instant, and what one costs."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from journeyman.sandbox import hierarchy
from journeyman.sandbox.protocol import Provider, Sandbox, SandboxSpec
from journeyman.sandbox.reaper import traces

NUM_SANDBOXES = 256


def mount_points() -> set[str]:
    return {line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()}


@pytest.mark.skipif(not hierarchy.bases().parents, reason="capability memory: no control group can be made here")
def test_256_sandboxes_live_at_one_instant_and_nothing_of_them_remains(bwrap: Provider, label: str) -> None:
    mounts_before = mount_points()
    sandboxes: list[Sandbox] = []
    try:
        for index in range(NUM_SANDBOXES):
            sandboxes.append(bwrap.create(SandboxSpec(label)))
            sandboxes[-1].exec(f"echo {index} >file", deadline_s=30)
        infos = bwrap.list(label)
        assert len(infos) == NUM_SANDBOXES
        assert {info.num_processes for info in infos} == {2}
        for controller in ("pids", "memory"):
            groups = [g for g in hierarchy.bases().parents[controller].iterdir() if g.name.startswith(label)]
            assert len(groups) == NUM_SANDBOXES
        answers = [sandbox.exec("cat file", deadline_s=30).stdout for sandbox in sandboxes]
        assert answers == [b"%d\n" % index for index in range(NUM_SANDBOXES)]
    finally:
        for sandbox in sandboxes:
            sandbox.destroy()
    assert traces(label) == {}
    assert mount_points() == mounts_before


def test_start_and_command_are_quick(bwrap: Provider, label: str) -> None:
    starts, commands = [], []
    for _ in range(20):
        started = time.monotonic()
        sandbox = bwrap.create(SandboxSpec(label, waive=frozenset({"memory", "pids"})))
        starts.append(time.monotonic() - started)
        for _ in range(3):
            started = time.monotonic()
            sandbox.exec("true", deadline_s=5)
            commands.append(time.monotonic() - started)
        sandbox.destroy()
    start_ms, command_ms = (sorted(times)[len(times) // 2] * 1000 for times in (starts, commands))
    print(f"start p50 {start_ms:.1f} ms, command p50 {command_ms:.1f} ms")
    assert start_ms < 200  # a tenth of this on an idle machine; the bound is for a busy one
    assert command_ms < 50
