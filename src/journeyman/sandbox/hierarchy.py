"""Where control groups can be made: which hierarchies are mounted, which directories are the caller's to use.

Groups are made below the caller's own group, or its nearest ancestor that allows it, in a directory ``journeyman``: so
limits that already hold for the caller hold for its sandboxes, and a CPU meter around the caller counts them too.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

#: Directory below which the groups of sandboxes and meters lie.
PARENT = "journeyman"
#: The controllers whose limits are used; cpuacct serves the CPU meter.
CONTROLLERS = ("pids", "memory", "cpu", "cpuacct")


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
