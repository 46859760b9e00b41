"""The processes of one container: whom to kill, how, and when that did not work.

Killing the attached program would leave the container running, so a kill goes to the container's own processes: through
its control group where it is on this kernel and ours to kill, else through a second process inside that signals all
others. As the first of a pid namespace, the supervisor cannot be killed from inside, and nothing inside outlives it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path

from journeyman.deadline import Deadline
from journeyman.sandbox import hierarchy, proctree
from journeyman.sandbox.cgroup import Group
from journeyman.sandbox.identity import METER_PREFIX
from journeyman.sandbox.kernel_files import write
from journeyman.sandbox.oci.engine import Engine, EngineFailed
from journeyman.sandbox.processes import Processes
from journeyman.sandbox.protocol import KILL_GRACE_S

#: Kills all but the first process and itself, then fails if anything else is still alive.
_SWEEP = (
    "kill -9 -1 2>/dev/null; n=0; while [ $n -lt 50 ]; do n=$((n+1)); left=; for p in /proc/[0-9]*; do"
    ' case $p in /proc/1|/proc/$$) ;; *) { read -r _ _ state _ <$p/stat; } 2>/dev/null && [ "$state" != Z ] && left=y;;'
    ' esac; done; [ -z "$left" ] && exit 0; kill -9 -1 2>/dev/null; done; exit 1'
)
#: Exit status of the attached program when the container's first process was killed.
_KILLED = 137


class Container(Processes):
    """The container of one sandbox and the program that is attached to it."""

    def __init__(self, process: subprocess.Popen[bytes], engine: Engine, name: str) -> None:
        """
        Args:
            process: the attached program, a child of this one.
            engine: of the container.
            name: of the container.
        """
        super().__init__(process, None, is_wrapped=True, poll_memory_mb=None)
        self._engine, self._name = engine, name
        self._pid: int | None = None
        self._control: Group | None = None

    def find(self, pidfile: Path, deadline: Deadline) -> None:
        """Learn the pid of its first process, once it is running; where that is not on this kernel, do nothing."""
        if not self._engine.is_local:
            return
        pid = 0
        if self._engine.kind == "podman":
            while not (pid := _number(pidfile)) and not deadline.has_passed and self.process.poll() is None:
                time.sleep(0.002)
        else:
            with contextlib.suppress(EngineFailed, ValueError):
                pid = int(self._engine.run("inspect", "--format", "{{.State.Pid}}", self._name, deadline=deadline))
        group = group_of(pid) if pid else None
        if group is not None and _may_kill(pid):
            self._pid, self._control = pid, group
            _count_in_meter(pid)

    def supervisor(self) -> int | None:
        """Host pid of the container's first process, None where it is not known."""
        return self._pid

    def others(self) -> list[int] | None:
        """None: which of a container's processes are its own depends on the program."""
        return None

    def kill_commands(self) -> None:
        """Kill everything but the first process; when that cannot be made sure, end the container."""
        deadline = Deadline.after(KILL_GRACE_S, "kill of a command")
        if self._control is not None and self._pid is not None:
            if not self._control.kill(frozenset({self._pid}), deadline):
                self.end(Deadline.after(KILL_GRACE_S, "end of a container that cannot be swept"))
            return
        try:
            self._engine.run("exec", self._name, "/bin/sh", "-c", _SWEEP, deadline=deadline)
        except EngineFailed:  # no process left for it, or something survived
            self.end(Deadline.after(KILL_GRACE_S, "end of a container that cannot be swept"))

    def oom_kills(self) -> int:
        """Kills by the memory limit since the last question; 0 where the group cannot be read."""
        total = self._control.oom_kills() if self._control is not None else 0
        new, self._oom_seen = max(0, total - self._oom_seen), max(total, self._oom_seen)
        return new

    def end(self, deadline: Deadline) -> None:
        """Kill the first process, and with it the rest; wait until the program has removed the container."""
        if self.process.poll() is None:
            if self._pid is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self._pid, signal.SIGKILL)
            else:
                with contextlib.suppress(EngineFailed):
                    self._engine.run("kill", self._name, deadline=deadline)
            if not proctree.wait_for(self.process, min(deadline.remaining_s, 10.0)):
                self.process.kill()
                proctree.wait_for(self.process, max(deadline.remaining_s, 1.0))
        if self.process.returncode != _KILLED:
            remove(
                self._engine, [self._name], Deadline.after(max(deadline.remaining_s, 10.0), "removal of a container")
            )
        self._pid = self._control = None

    def remains(self, deadline: Deadline) -> list[str]:
        """After ``end``: the container if it is still there, in words. A program that ended as it should removed it."""
        if self.process.returncode == _KILLED:
            return []
        try:
            self._engine.run("inspect", self._name, deadline=deadline)
        except EngineFailed:
            return []
        return [f"container {self._name}"]


def remove(engine: Engine, containers: list[str], deadline: Deadline) -> None:
    """Kill and remove containers; those that are gone already are none of its business."""
    for container in containers:
        with contextlib.suppress(EngineFailed):
            engine.run("rm", "-f", container, deadline=deadline, fails=False)


def group_of(pid: int) -> Group | None:
    """The control group that holds a container, by the pid of its first process; None when it has none of its own."""
    try:
        text = Path(f"/proc/{pid}/cgroup").read_text()
    except OSError:
        return None
    own = dict(hierarchy.own_paths())
    paths: dict[str, str] = {}
    for line in text.splitlines():
        _, controllers, path = line.split(":", 2)
        for name in controllers.split(",") if controllers else ["unified"]:
            if name in hierarchy.mounts() and path not in ("/", own.get(name)):
                point, top = hierarchy.mounts()[name]
                paths[name] = str(hierarchy.directory_of(point, top, path))
    if "pids" in paths or "memory" in paths:
        return Group(str(pid), 1, {name: path for name, path in paths.items() if name in ("pids", "memory")})
    if "unified" in paths:
        return Group(str(pid), 2, dict.fromkeys(("pids", "memory"), paths["unified"]))
    return None


def _count_in_meter(pid: int) -> None:
    """Let a meter of this program count the container's CPU time, which the runtime's own group would hide (v1)."""
    home, points = hierarchy.bases().home.get("cpuacct"), hierarchy.mounts()
    if home is not None and f"~{METER_PREFIX}" in home.name and points["cpuacct"] != points.get("cpu"):
        with contextlib.suppress(OSError):
            write(home / "cgroup.procs", str(pid))


def _number(path: Path) -> int:
    with contextlib.suppress(OSError, ValueError):
        return int(path.read_text())
    return 0


def _may_kill(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True
