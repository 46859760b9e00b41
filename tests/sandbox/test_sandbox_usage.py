"""CPU time of a whole tree, sandboxes included."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable

import pytest

from journeyman.sandbox import hierarchy
from journeyman.sandbox.protocol import AgentEnvironment, Provider, Sandbox, SandboxSpec
from journeyman.sandbox.usage import CpuMeter, machine_seconds

Opener = Callable[..., Sandbox]
BURN = ["python3", "-c", "import time\nwhile time.process_time() < 1.0: pass"]

needs_groups = pytest.mark.skipif(not hierarchy.bases().parents, reason="no control group can be made here")


@needs_groups
def test_a_second_burnt_inside_a_sandbox_is_a_second_in_the_figure(
    open_isolated: Opener, environment: AgentEnvironment, label: str
) -> None:
    meter = CpuMeter.start(label)
    try:
        assert meter.is_exact
        sandbox = open_isolated(environment=environment)
        before, own = meter.seconds(), resource.getrusage(resource.RUSAGE_CHILDREN)
        sandbox.exec(BURN, deadline_s=30)
        assert 0.95 < meter.seconds() - before < 1.5
        sandbox.destroy()
        assert 0.95 < meter.seconds() - before < 1.6  # also when its groups are gone
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert after.ru_utime - own.ru_utime < 0.5  # what would have been reported otherwise
    finally:
        meter.close()
    assert meter.seconds() > 0.95


@needs_groups
def test_sandboxes_of_a_metered_program_keep_their_limits(bwrap: Provider, label: str) -> None:
    meter = CpuMeter.start(label)
    try:
        assert {"memory", "pids"} <= bwrap.supports
        sandbox = bwrap.create(SandboxSpec(label, memory_mb=64, disk_mb=500))
        assert sandbox.exec("head -c 200000000 /dev/zero >big", deadline_s=30).oom_kills >= 1
        assert len(bwrap.list(label)) == 1
        sandbox.destroy()
        peak = meter.peak_memory_bytes()
        assert peak is not None
        assert 60 << 20 < peak < 400 << 20
    finally:
        meter.close()


@needs_groups
def test_a_meter_within_a_meter_counts_its_own_part(label: str) -> None:
    burn = [sys.executable, "-c", "import time\nwhile time.process_time() < 0.3: pass"]
    outer = CpuMeter.start(label)
    subprocess.run(burn, check=True)
    inner = CpuMeter.start(label)
    subprocess.run(burn, check=True)
    inner_s, outer_s = inner.seconds(), outer.seconds()
    inner.close()
    outer.close()
    assert 0.28 < inner_s < 0.6
    assert outer_s > inner_s + 0.28


def test_the_machines_clock_counts_a_burn_as_well() -> None:
    before = machine_seconds()
    subprocess.run([sys.executable, "-c", "import time\nwhile time.process_time() < 0.5: pass"], check=True)
    assert machine_seconds() - before > 0.4


def test_without_a_group_the_meter_says_that_it_reads_the_whole_machine() -> None:
    meter = CpuMeter("/proc/stat (the whole machine, whatever else ran on it)", {}, machine_seconds())
    assert not meter.is_exact
    assert meter.peak_memory_bytes() is None
    assert meter.seconds() >= 0
    meter.close()
