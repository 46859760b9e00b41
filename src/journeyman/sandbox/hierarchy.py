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

from journeyman.sandbox.kernel_files import read

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
    return _rows(_own_text())


def _own_text() -> str:
    try:
        return read("/proc/self/cgroup")
    except OSError:
        return ""


def _rows(text: str) -> tuple[tuple[str, str], ...]:
    rows: list[tuple[str, str]] = []
    for line in text.splitlines():
        _, names, path = line.split(":", 2)
        rows.extend((name or "unified", path) for name in names.split(","))
    return tuple(rows)


def directory_of(point: str, root: str, path: str) -> Path:
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
    return _bases(_own_text())


@lru_cache(maxsize=8)
def _bases(own: str) -> Bases:
    home: dict[str, Path] = {}
    parents: dict[str, Path] = {}
    for name, path in _rows(own):
        if name not in mounts():
            continue
        point, root = mounts()[name]
        home[name] = directory_of(point, root, path)
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


def forget() -> None:
    """Look again at the next question: a directory was removed, or another one may be used."""
    _bases.cache_clear()


def remove_parents(parents: Iterable[Path] | None = None) -> None:
    """Remove the ``journeyman`` directories that are empty (default: those of the caller's bases)."""
    for parent in set(bases().parents.values()) if parents is None else parents:
        with contextlib.suppress(OSError):
            parent.rmdir()
    forget()


def parent_directories() -> list[Path]:
    """Every ``journeyman`` directory of this machine, inner ones first."""
    found = [
        Path(directory)
        for point in sorted({point for point, _ in mounts().values()})
        for directory, _, _ in os.walk(point)
        if directory.endswith("/" + PARENT)
    ]
    return found[::-1]


def named_groups() -> dict[str, list[Path]]:
    """Every group below one of them: name -> its directories, one in each hierarchy."""
    found: dict[str, list[Path]] = {}
    for parent in parent_directories():
        with contextlib.suppress(OSError):
            for child in parent.iterdir():
                if child.is_dir():
                    found.setdefault(child.name, []).append(child)
    return found
