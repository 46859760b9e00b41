"""Control groups: where they are made, that forking cannot outrun a kill, and the way of cgroup v2."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from journeyman.deadline import Deadline
from journeyman.sandbox import cgroup, hierarchy
from journeyman.sandbox.cgroup import Group

needs_groups = pytest.mark.skipif(not hierarchy.bases().parents, reason="no control group can be made here")


def unified_directory() -> Path | None:
    home = hierarchy.bases().home.get("unified")
    return home if home is not None and os.access(home, os.W_OK) else None


@needs_groups
def test_limits_are_written_and_a_group_that_cannot_be_made_leaves_nothing() -> None:
    where = hierarchy.bases()
    group = Group.create("test~limits", where, memory_mb=64, pids=9, cpus=0.5)
    assert group is not None
    assert Path(group.paths["pids"], "pids.max").read_text() == "9\n"
    assert group.remove(Deadline.after(1, "test")) == []
    with pytest.raises(OSError, match="Invalid argument"):
        Group.create("test~limits", where, memory_mb=64, pids=-5, cpus=None)
    assert not any(parent.joinpath("test~limits").exists() for parent in where.parents.values())


@needs_groups
def test_groups_are_made_below_the_callers_own() -> None:
    where = hierarchy.bases()
    for controller, parent in where.parents.items():
        assert parent.name == hierarchy.PARENT
        assert where.home[controller].is_relative_to(parent.parent)


def test_without_a_hierarchy_there_is_no_group() -> None:
    nowhere = hierarchy.Bases(0, {}, {})
    assert Group.create("test~none", nowhere, memory_mb=64, pids=9, cpus=None) is None


@pytest.mark.skipif(unified_directory() is None, reason="no writable cgroup v2 hierarchy here")
def test_a_v2_child_enters_its_group_and_the_kernel_kills_it_whole() -> None:
    home = unified_directory()
    assert home is not None
    group = Group("test~v2", 2, {"unified": str(home / "journeyman-test-v2")})
    cgroup.make_directory(group.directories[0])
    try:
        assert group.born_in == ()
        script = "trap '' TERM; sleep 100 & setsid sleep 100 & echo ready; wait"
        with subprocess.Popen([*group.entrance(), "/bin/sh", "-c", script], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            deadline = time.monotonic() + 5
            while len(group.processes()) < 3 and time.monotonic() < deadline:
                time.sleep(0.01)
            assert process.pid in group.processes()
            assert len(group.processes()) == 3
            assert group.kill_all(Deadline.after(2, "test"))
        assert group.processes() == []
    finally:
        assert group.remove(Deadline.after(2, "test")) == []


def test_a_group_that_is_still_in_use_is_reported() -> None:
    home = unified_directory()
    if home is None:
        pytest.skip("no writable cgroup v2 hierarchy here")
    group = Group("test~busy", 2, {"unified": str(home / "journeyman-test-busy")})
    cgroup.make_directory(group.directories[0])
    with subprocess.Popen([*group.entrance(), "/bin/sleep", "100"]) as process:
        while process.pid not in group.processes():
            time.sleep(0.01)
        assert group.remove(Deadline.after(0.1, "test")) == [group.directories[0]]
        process.kill()
    assert group.remove(Deadline.after(2, "test")) == []
