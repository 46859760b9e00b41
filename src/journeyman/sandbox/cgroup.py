"""The control group of one sandbox: its limits, how it is entered, emptied and removed.

cgroup v1: one directory in each of pids, memory and, if asked, cpu; the child is born there (``launcher.py``).
cgroup v2: one directory; the child enters through a shell that writes itself to ``cgroup.procs``.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from journeyman.deadline import Deadline
from journeyman.sandbox import hierarchy
from journeyman.sandbox.errors import SandboxStartFailed
from journeyman.sandbox.hierarchy import Bases
from journeyman.sandbox.kernel_files import read, write
from journeyman.sandbox.protocol import SandboxSpec

#: Processes of a sandbox besides its commands: bubblewrap's monitor and the supervisor.
OWN_PROCESSES = 2
_CPU_PERIOD_US = 100_000
_OPEN_ROUNDS = 5
"""Rounds of a kill, the first that finds forking stopped."""


def make_directory(path: Path | str) -> None:
    """Make a group and its parent. Raises OSError."""
    try:
        os.mkdir(path)  # noqa: PTH102 - on the hot path
    except FileNotFoundError:
        Path(path).parent.mkdir(exist_ok=True)
        Path(path).mkdir()


@dataclass(frozen=True)
class Group:
    """The control group of one sandbox.

    Attributes:
        name: of its directories.
        version: 1 or 2.
        paths: controller -> directory; v2 has the same one for each. Texts: each attempt pays for what ``Path`` does.
        return_to: v1 ``tasks`` files of the caller's own groups.
    """

    name: str
    version: int
    paths: Mapping[str, str]
    return_to: tuple[str, ...] = ()

    @classmethod
    def create(cls, name: str, where: Bases, *, memory_mb: int, pids: int, cpus: float | None) -> Group | None:
        """Make the group with its limits; None where no controller is available. Raises OSError, leaving nothing."""
        wanted = ["pids", "memory"] + (["cpu"] if cpus is not None else [])
        parents = {c: where.parents[c] for c in wanted if c in where.parents}
        if not parents:
            return None
        group = cls(
            name,
            where.version,
            {c: f"{parent}/{name}" for c, parent in parents.items()},
            tuple(f"{where.home[c]}/tasks" for c in parents) if where.version == 1 else (),
        )
        try:
            for directory in group.directories:
                make_directory(directory)
            group._limit(memory_mb, pids, cpus)
        except OSError:
            group.remove(Deadline.after(1.0, "removal of an unfinished group"))
            raise
        return group

    def _limit(self, memory_mb: int, pids: int, cpus: float | None) -> None:
        if "pids" in self.paths:
            write(f"{self.paths['pids']}/pids.max", str(pids))
        if "memory" in self.paths:
            memory, size = self.paths["memory"], str(memory_mb << 20)
            if self.version == 2:
                write(f"{memory}/memory.max", size)
                with contextlib.suppress(FileNotFoundError):
                    write(f"{memory}/memory.swap.max", "0")
            else:
                write(f"{memory}/memory.limit_in_bytes", size)
                with contextlib.suppress(OSError):  # absent when swap accounting is off
                    write(f"{memory}/memory.memsw.limit_in_bytes", size)
        if cpus is not None and "cpu" in self.paths:
            cpu, quota = self.paths["cpu"], max(1000, int(cpus * _CPU_PERIOD_US))
            if self.version == 2:
                write(f"{cpu}/cpu.max", f"{quota} {_CPU_PERIOD_US}")
            else:
                write(f"{cpu}/cpu.cfs_period_us", str(_CPU_PERIOD_US))
                write(f"{cpu}/cpu.cfs_quota_us", str(quota))

    @property
    def directories(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.paths.values()))

    @property
    def born_in(self) -> tuple[str, ...]:
        """v1 ``tasks`` files for ``launch``; v2 children enter by ``entrance``."""
        return tuple(f"{d}/tasks" for d in self.directories) if self.version == 1 else ()

    def entrance(self) -> tuple[str, ...]:
        """v2: argv prefix of a shell that enters the group and then becomes the program; empty for v1."""
        if self.version != 2:
            return ()
        script = 'echo 0 >"$0" && exec "$@"'
        return ("/bin/sh", "-c", script, f"{self.directories[0]}/cgroup.procs")

    def processes(self) -> list[int]:
        """Host pids in the group; empty once it is removed."""
        try:
            return [int(pid) for pid in read(f"{self.directories[0]}/cgroup.procs").split()]
        except OSError:
            return []

    def oom_kills(self) -> int:
        """How many processes the memory limit has killed."""
        if "memory" not in self.paths:
            return 0
        file = "memory.events" if self.version == 2 else "memory.oom_control"
        try:
            words = read(f"{self.paths['memory']}/{file}").split()
        except OSError:
            return 0
        return int(words[words.index("oom_kill") + 1]) if "oom_kill" in words else 0

    def kill(self, keep: frozenset[int], deadline: Deadline) -> bool:
        """Kill every process but ``keep``; whether only those are left.

        Where a few rounds do not end them, forking is stopped (pids.max = 0), so a fork bomb cannot outrun the list.
        Not before: a supervisor that is about to fork for its next command would end by that.
        """
        limit = f"{self.paths['pids']}/pids.max" if "pids" in self.paths else None
        before, rounds = "", 0
        try:
            while True:
                rounds += 1
                others = [pid for pid in self.processes() if pid not in keep]
                if not others:
                    return True
                if rounds == _OPEN_ROUNDS and limit is not None:
                    found = read(limit).strip()
                    before = found if found != "0" else ""  # another kill is under way, which gives the limit back
                    write(limit, "0")
                for pid in others:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                if deadline.has_passed:
                    return False
                time.sleep(0.001)
        finally:
            if before and limit is not None:
                write(limit, before)

    def kill_all(self, deadline: Deadline) -> bool:
        """Kill every process, at once where the kernel can (``cgroup.kill``); whether none is left."""
        for directory in self.directories:
            with contextlib.suppress(OSError):
                write(f"{directory}/cgroup.kill", "1")
        return self.kill(frozenset(), deadline) if os.path.isdir(self.directories[0]) else True  # noqa: PTH112

    def remove(self, deadline: Deadline) -> list[str]:
        """Remove the directories, waiting for the last processes to be gone; returns those that remain."""
        return [directory for directory in self.directories if not remove_directory(directory, deadline)]


def remove_directory(directory: Path | str, deadline: Deadline) -> bool:
    """Remove one group, retrying while the kernel still counts a dying process in it; whether it is gone."""
    while True:
        try:
            os.rmdir(directory)  # noqa: PTH106 - on the hot path
        except FileNotFoundError:
            return True
        except OSError:
            if deadline.has_passed:
                return False
            time.sleep(0.002)
        else:
            return True


def make_group(name: str, spec: SandboxSpec, where: Bases) -> Group | None:
    """The group of a sandbox below the caller's own, None where the host has none. Raises SandboxStartFailed."""

    def create(where: Bases) -> Group | None:
        return Group.create(name, where, memory_mb=spec.memory_mb, pids=spec.pids + OWN_PROCESSES, cpus=spec.cpus)

    try:
        return create(where)
    except OSError:
        hierarchy.forget()  # another program may have removed the parent, which was empty for a moment
    try:
        return create(hierarchy.bases())
    except OSError as error:
        raise SandboxStartFailed(spec.label, f"control group: {error}") from error
