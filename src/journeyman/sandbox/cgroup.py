"""Control groups of sandboxes: where they can be made, one group per sandbox, how it is emptied and removed.

A group is made below the caller's own group (or its nearest ancestor that allows it) in a directory ``journeyman``, so
limits that already hold for the caller hold for its sandboxes, and a CPU meter around the caller counts them too.
cgroup v1: one directory in each of pids, memory and, if asked, cpu; the child is born there (``launcher.py``).
cgroup v2: one directory; the child enters through a shell that writes itself to ``cgroup.procs``.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from journeyman.deadline import Deadline

PARENT = "journeyman"
#: The controllers whose limits are used. cpuacct and the unified hierarchy serve the CPU meter.
CONTROLLERS = ("pids", "memory", "cpu", "cpuacct")
_CPU_PERIOD_US = 100_000


@lru_cache(maxsize=1)
def mounts() -> Mapping[str, tuple[str, str]]:
    """Controller (``unified`` for cgroup v2) -> (mount point, root of the mount) from ``/proc/self/mountinfo``."""
    found: dict[str, tuple[str, str]] = {}
    with contextlib.suppress(OSError), open("/proc/self/mountinfo") as file:
        for line in file:
            left, _, right = line.partition(" - ")
            kind, _, options = right.split(" ", 2)
            root, point = left.split()[3:5]
            if kind == "cgroup2":
                found.setdefault("unified", (point, root))
            elif kind == "cgroup":
                for name in options.strip().split(","):
                    if name in CONTROLLERS:
                        found.setdefault(name, (point, root))
    return found


def own_paths() -> tuple[tuple[str, str], ...]:
    """(controller or ``unified``, path) of the calling process, as ``/proc/self/cgroup`` gives it."""
    try:
        text = Path("/proc/self/cgroup").read_text()
    except OSError:
        return ()
    rows: list[tuple[str, str]] = []
    for line in text.splitlines():
        _, names, path = line.split(":", 2)
        rows.extend((name or "unified", path) for name in names.split(","))
    return tuple(rows)


def _directory(point: str, root: str, path: str) -> Path:
    inside = path[len(root) :] if root != "/" and path.startswith(root) else path
    directory = Path(point + "/" + inside.strip("/"))
    return directory if directory.is_dir() else Path(point)


def _ancestors(directory: Path, top: str) -> Iterable[Path]:
    while True:
        yield directory
        if str(directory).rstrip("/") == top.rstrip("/"):
            return
        directory = directory.parent


@dataclass(frozen=True)
class Bases:
    """Where groups can be made right now.

    Attributes:
        version: 1, 2, or 0 when no pids or memory group can be made.
        parents: controller -> directory that will hold the groups (it may not exist yet).
        home: controller -> the caller's own directory.
    """

    version: int
    parents: Mapping[str, Path]
    home: Mapping[str, Path]


def bases() -> Bases:
    """The bases of the calling process; cheap when its groups did not change."""
    return _bases(own_paths())


@lru_cache(maxsize=8)
def _bases(own: tuple[tuple[str, str], ...]) -> Bases:
    home: dict[str, Path] = {}
    parents: dict[str, Path] = {}
    for name, path in own:
        if name not in mounts():
            continue
        point, root = mounts()[name]
        home[name] = _directory(point, root, path)
        if name == "unified":
            continue
        for directory in _ancestors(home[name], point):
            if os.access(directory, os.W_OK) and os.access(directory / "tasks", os.W_OK):
                parents[name] = directory / PARENT
                break
    if "pids" in parents or "memory" in parents:
        return Bases(1, parents, home)
    unified = _unified_parent(home.get("unified"))
    if unified is not None:
        names = (unified / "cgroup.subtree_control").read_text().split()
        return Bases(2, {name: unified for name in ("pids", "memory", "cpu") if name in names}, home)
    return Bases(0, parents, home)


def _unified_parent(home: Path | None) -> Path | None:
    """Nearest ancestor below which the pids and memory controllers work; makes the parent directory there."""
    if home is None:
        return None
    for directory in _ancestors(home, mounts()["unified"][0]):
        try:
            offered = (directory / "cgroup.controllers").read_text().split()
            if "pids" not in offered or "memory" not in offered or not os.access(directory / "cgroup.procs", os.W_OK):
                continue
            parent = directory / PARENT
            existed = parent.is_dir()
            _enable(directory, offered)
            parent.mkdir(exist_ok=True)
            try:
                _enable(parent, offered)
            except OSError:
                if not existed:
                    parent.rmdir()
                raise
            return parent
        except OSError:
            continue  # processes of others live here, or it is not ours
    return None


def _enable(directory: Path, offered: list[str]) -> None:
    control = directory / "cgroup.subtree_control"
    missing = [f"+{n}" for n in ("pids", "memory", "cpu") if n in offered and n not in control.read_text().split()]
    if missing:
        control.write_text(" ".join(missing))


def write(path: Path | str, text: str) -> None:
    """Write a control file in one system call. Raises OSError."""
    handle = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(handle, text.encode())
    finally:
        os.close(handle)


def make_directory(path: Path) -> None:
    """Make a group and its parent. Raises OSError."""
    try:
        os.mkdir(path)  # noqa: PTH102 - on the hot path
    except FileNotFoundError:
        path.parent.mkdir(exist_ok=True)
        path.mkdir()


@dataclass(frozen=True)
class Group:
    """The control group of one sandbox.

    Attributes:
        name: of its directories.
        version: 1 or 2.
        paths: controller -> directory; v2 has the same one for each.
        return_to: v1 ``tasks`` files of the caller's own groups.
    """

    name: str
    version: int
    paths: Mapping[str, Path]
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
            {c: parent / name for c, parent in parents.items()},
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
            write(self.paths["pids"] / "pids.max", str(pids))
        if "memory" in self.paths:
            memory, size = self.paths["memory"], str(memory_mb << 20)
            if self.version == 2:
                write(memory / "memory.max", size)
                swap = memory / "memory.swap.max"
                if swap.exists():
                    write(swap, "0")
            else:
                write(memory / "memory.limit_in_bytes", size)
                with contextlib.suppress(OSError):  # absent when swap accounting is off
                    write(memory / "memory.memsw.limit_in_bytes", size)
        if cpus is not None and "cpu" in self.paths:
            quota = max(1000, int(cpus * _CPU_PERIOD_US))
            if self.version == 2:
                write(self.paths["cpu"] / "cpu.max", f"{quota} {_CPU_PERIOD_US}")
            else:
                write(self.paths["cpu"] / "cpu.cfs_period_us", str(_CPU_PERIOD_US))
                write(self.paths["cpu"] / "cpu.cfs_quota_us", str(quota))

    @property
    def directories(self) -> tuple[Path, ...]:
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
            return [int(pid) for pid in (self.directories[0] / "cgroup.procs").read_text().split()]
        except OSError:
            return []

    def oom_kills(self) -> int:
        """How many processes the memory limit has killed."""
        if "memory" not in self.paths:
            return 0
        file = "memory.events" if self.version == 2 else "memory.oom_control"
        try:
            rows = dict(line.split() for line in (self.paths["memory"] / file).read_text().splitlines())
        except OSError:
            return 0
        return int(rows.get("oom_kill", 0))

    def kill(self, keep: frozenset[int], deadline: Deadline) -> bool:
        """Kill every process but ``keep``; whether only those are left.

        Forking is stopped meanwhile (pids.max = 0), so a fork bomb cannot outrun the list.
        """
        limit = self.paths["pids"] / "pids.max" if "pids" in self.paths else None
        before = limit.read_text() if limit is not None else ""
        if limit is not None:
            write(limit, "0")
        try:
            while True:
                others = [pid for pid in self.processes() if pid not in keep]
                if not others:
                    return True
                for pid in others:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                if deadline.has_passed:
                    return False
                time.sleep(0.001)
        finally:
            if limit is not None:
                write(limit, before.strip())

    def kill_all(self, deadline: Deadline) -> bool:
        """Kill every process, at once where the kernel can (``cgroup.kill``); whether none is left."""
        for directory in self.directories:
            with contextlib.suppress(OSError):
                write(directory / "cgroup.kill", "1")
        return self.kill(frozenset(), deadline) if self.directories[0].is_dir() else True

    def remove(self, deadline: Deadline) -> list[str]:
        """Remove the directories, waiting for the last processes to be gone; returns those that remain."""
        return [str(directory) for directory in self.directories if not remove_directory(directory, deadline)]


def remove_directory(directory: Path, deadline: Deadline) -> bool:
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


def remove_parents() -> None:
    """Remove empty ``journeyman`` directories of the caller's bases."""
    for parent in set(bases().parents.values()):
        with contextlib.suppress(OSError):
            parent.rmdir()
    _bases.cache_clear()


def named_groups() -> dict[str, dict[str, Path]]:
    """Every group below any ``journeyman`` directory on this machine: name -> {controller or mount point: path}."""
    found: dict[str, dict[str, Path]] = {}
    for point, _ in set(mounts().values()):
        for directory, children, _files in os.walk(point):
            if os.path.basename(directory) == PARENT:  # noqa: PTH119 - a string from os.walk
                for child in children:
                    found.setdefault(child, {})[point] = Path(directory, child)
    return found
