"""CPU time and peak memory of a whole process tree, sandboxes included.

Never from ``getrusage``: a process of another pid namespace is waited for by bubblewrap, not by this program, so its
time does not arrive there. The meter moves this process into a group of its own; what it starts is born below, and a
group counts what was below it also when that is gone. Where no group can be made, the busy time of the whole machine is
read instead, which is right on an idle machine only; ``source`` says which it is.
"""

from __future__ import annotations

import atexit
import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

from journeyman.deadline import Deadline
from journeyman.sandbox import cgroup, hierarchy
from journeyman.sandbox.identity import Identity
from journeyman.sandbox.kernel_files import write
from journeyman.sandbox.launcher import on_launcher

_MACHINE = "/proc/stat (the whole machine, whatever else ran on it)"


@dataclass(frozen=True)
class _Place:
    """One group of the meter: where it is, where this process goes back to."""

    group: Path
    procs: Path
    home_procs: Path


def machine_seconds() -> float:
    """Busy CPU seconds of the machine since boot: user, nice, system, irq, softirq; 0.0 without a /proc/stat."""
    try:
        fields = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    except OSError:
        return 0.0
    return (sum(fields[:3]) + sum(fields[5:7])) / os.sysconf("SC_CLK_TCK")


class CpuMeter:
    """Counts from ``start`` on. State: the groups it made, until ``close``.

    Attributes:
        source: where the seconds come from, for the report.
    """

    def __init__(self, source: str, places: dict[str, _Place], started_s: float) -> None:
        """Use ``start``."""
        self.source = source
        self._places, self._started_s = places, started_s
        self._final: tuple[float, int | None] | None = None

    @classmethod
    def start(cls, label: str) -> CpuMeter:
        """Move this process, all its threads, into a group of its own if it can be made; start counting.

        Args:
            label: as in ``SandboxSpec.label``; ``reap`` finds the group by it.
        """
        name = Identity.fresh(label).as_meter().name
        where = hierarchy.bases()
        places: dict[str, _Place] = {}
        try:
            if where.version == 1 and "cpuacct" in where.parents:
                for controller in ("cpuacct", "memory"):
                    if controller in where.parents:
                        group = where.parents[controller] / name
                        places[controller] = _Place(
                            group, group / "cgroup.procs", where.home[controller] / "cgroup.procs"
                        )
                        cgroup.make_directory(group)
            elif where.version == 2 and where.parents:
                group = next(iter(where.parents.values())) / name
                places["unified"] = _Place(
                    group, group / "main" / "cgroup.procs", where.home["unified"] / "cgroup.procs"
                )
                cgroup.make_directory(group)
                (group / "main").mkdir()
            _move((os.getpid(),), [place.procs for place in places.values()])
        except OSError:
            meter = cls("", places, 0.0)
            meter.close()
            places = {}
        if not places:
            return cls(_MACHINE, {}, machine_seconds())
        source = "cgroup v1 cpuacct" if where.version == 1 else "cgroup v2 cpu.stat"
        meter = cls(f"{source} (this program and everything it starts)", places, 0.0)
        atexit.register(meter.close)
        return meter

    @property
    def is_exact(self) -> bool:
        """Whether only this program and what it started is counted."""
        return self.source != _MACHINE

    def seconds(self) -> float:
        """CPU seconds since the start, user and system; after ``close`` the last figure."""
        if self._final is not None:
            return self._final[0]
        if "cpuacct" in self._places:
            return int((self._places["cpuacct"].group / "cpuacct.usage").read_text()) / 1e9
        if "unified" in self._places:
            return _field(self._places["unified"].group / "cpu.stat", "usage_usec") / 1e6
        return machine_seconds() - self._started_s

    def peak_memory_bytes(self) -> int | None:
        """Most memory charged to the tree at one instant, page cache included; None where no group tells.

        cgroup v1 leaves what this process held before the start on its old account.
        """
        if self._final is not None:
            return self._final[1]
        files = {"memory": "memory.max_usage_in_bytes", "unified": "memory.peak"}
        for controller, file in files.items():
            if controller in self._places:
                with contextlib.suppress(OSError, ValueError):
                    return int((self._places[controller].group / file).read_text())
        return None

    def close(self) -> None:
        """Stop counting, move the processes back and remove the groups; a second call does nothing.

        Sandboxes that are still alive keep their groups and the meter's; ``reap`` of a later run removes them.
        """
        if self._final is not None:
            return
        try:
            self._final = (self.seconds(), self.peak_memory_bytes())
        except (OSError, ValueError):
            self._final = (0.0, None)
        deadline = Deadline.after(1.0, "removal of a meter's groups")
        for place in self._places.values():
            with contextlib.suppress(OSError):
                _move(tuple(int(pid) for pid in place.procs.read_text().split()), [place.home_procs])
            for directory in (place.group / hierarchy.PARENT, place.procs.parent, place.group):
                if directory.is_dir() and not any(child.is_dir() for child in directory.iterdir()):
                    cgroup.remove_directory(directory, deadline)
        hierarchy.remove_parents()


def _move(pids: tuple[int, ...], targets: list[Path]) -> None:
    """Move processes while no sandbox is being started: its thread may stand in another group for that moment."""

    def move() -> None:
        for target in targets:
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    write(target, str(pid))

    on_launcher(move)


def _field(path: Path, name: str) -> int:
    for line in path.read_text().splitlines():
        key, _, value = line.partition(" ")
        if key == name:
            return int(value)
    raise ValueError(f"{path} has no {name}")
