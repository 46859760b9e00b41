"""Many sandboxes at one instant, and what one costs."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from journeyman.sandbox import hierarchy
from journeyman.sandbox.errors import ExecTimeout
from journeyman.sandbox.protocol import Provider, Sandbox, SandboxSpec
from journeyman.sandbox.reaper import traces
from journeyman.sandbox.usage import CpuMeter

NUM_SANDBOXES = 256


def mount_points() -> set[str]:
    """Those of this machine, without what container engines mount for tests that run beside this one."""
    found = {line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()}
    return {point for point in found if "/containers/storage/" not in point}


def proportional_kib(pids: list[int]) -> int:
    """Memory of processes, shared pages divided among those that share them."""
    total = 0
    for pid in pids:
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
        total += int(next(line.split()[1] for line in rollup.splitlines() if line.startswith("Pss:")))
    return total


@pytest.mark.skipif(not hierarchy.bases().parents, reason="capability memory: no control group can be made here")
def test_256_sandboxes_live_at_one_instant_and_nothing_of_them_remains(bwrap: Provider, label: str) -> None:
    mounts_before = mount_points()
    sandboxes: list[Sandbox] = []
    started = time.monotonic()
    try:
        for index in range(NUM_SANDBOXES):
            sandboxes.append(bwrap.create(SandboxSpec(label)))
            sandboxes[-1].exec(f"echo {index} >file", deadline_s=30)
        alive_s = time.monotonic() - started
        infos = bwrap.list(label)
        assert len(infos) == NUM_SANDBOXES
        assert {info.num_processes for info in infos} == {2}
        for controller in ("pids", "memory"):
            groups = [g for g in hierarchy.bases().parents[controller].iterdir() if g.name.startswith(label)]
            assert len(groups) == NUM_SANDBOXES
        pids = [pid for trace in traces(label).values() for pid in trace.processes()]
        kib = proportional_kib(pids) / NUM_SANDBOXES
        answers = [sandbox.exec("cat file", deadline_s=30).stdout for sandbox in sandboxes]
        assert answers == [b"%d\n" % index for index in range(NUM_SANDBOXES)]
    finally:
        ending = time.monotonic()
        for sandbox in sandboxes:
            sandbox.destroy()
    print(f"256 alive after {alive_s:.1f} s, {kib:.0f} KiB each, gone in {time.monotonic() - ending:.1f} s")
    assert traces(label) == {}
    assert mount_points() == mounts_before


def middle(times: list[float], share: float = 0.5) -> float:
    """The quantile, in ms."""
    return sorted(times)[int(len(times) * share)] * 1000


def test_starting_and_commanding_are_quick_and_cheap(bwrap: Provider, label: str) -> None:
    starts, commands = [], []
    spec = SandboxSpec(label, waive=frozenset({"memory", "pids"}))
    meter = CpuMeter.start(label)
    try:
        for _ in range(40):
            started = time.monotonic()
            sandbox = bwrap.create(spec)
            starts.append(time.monotonic() - started)
            sandbox.destroy()
        cpu_ms = meter.seconds() / 40 * 1000
        sandbox = bwrap.create(spec)
        for _ in range(100):
            started = time.monotonic()
            sandbox.exec("true", deadline_s=5)
            commands.append(time.monotonic() - started)
        sandbox.destroy()
    finally:
        meter.close()
    print(
        f"start p50 {middle(starts):.1f} ms, p95 {middle(starts, 0.95):.1f} ms; command p50 {middle(commands):.2f} ms; "
        f"create and destroy {cpu_ms:.1f} CPU-ms"
    )
    assert middle(starts) < 200  # some 10 ms on an idle machine; the bounds are for a busy one
    assert middle(commands) < 50
    if meter.is_exact:
        assert cpu_ms < 40


@pytest.mark.thorough
def test_a_full_tree_is_killed_at_once(bwrap: Provider, label: str) -> None:
    """60 processes that ignore signals: from the deadline until none is left, and from ``destroy`` until it returns."""
    spec = SandboxSpec(label, pids=64, waive=frozenset({"memory", "pids"}))
    fill = "trap '' TERM INT HUP; i=0; while [ $i -lt 60 ]; do setsid sleep 600 & i=$((i+1)); done"
    after_deadline, by_destroy = [], []
    for _ in range(8):
        sandbox = bwrap.create(spec)
        with pytest.raises(ExecTimeout) as caught:
            sandbox.exec(f"{fill}; sleep 600", deadline_s=1.0)
        after_deadline.append(caught.value.elapsed_s - 1.0)
        assert [info.num_processes for info in bwrap.list(label)] == [2]
        sandbox.exec(fill, deadline_s=20)
        started = time.monotonic()
        sandbox.destroy()
        by_destroy.append(time.monotonic() - started)
        assert traces(label) == {}
    load = Path("/proc/loadavg").read_text().split()[0]
    print(
        f"60 processes: dead {middle(after_deadline):.1f} ms after the deadline, sandbox gone in "
        f"{middle(by_destroy):.1f} ms (p50 of 8; load {load})"
    )
    assert middle(after_deadline) < 500  # below 100 on an idle machine; the bounds are for a busy one
    assert middle(by_destroy) < 500
