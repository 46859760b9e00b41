"""The container program (podman or docker): which one works here, what it can do, and one call of it with a deadline.

Chosen by asking it, not by its presence: a docker client without a daemon is common. ``JOURNEYMAN_OCI=/path`` names
another one; ``JOURNEYMAN_OCI_RUNTIME`` the OCI runtime, where the probe's choice is wrong.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from journeyman.deadline import Deadline
from journeyman.errors import EnvironmentMissing
from journeyman.sandbox.errors import SandboxFault

#: Seconds that one question to the program may take: a podman machine or a daemon may just be waking up.
_PROBE_S = 20.0
PROGRAMS = ("podman", "docker")
#: The runtime that podman prefers cannot enter mixed cgroups; this one can.
_FALLBACK_RUNTIME = "runc"


class EngineFailed(SandboxFault):
    """The container program refused or did not answer; the text says what it said."""


@dataclass(frozen=True)
class Engine:
    """A container program that answered.

    Attributes:
        path: of the program.
        kind: ``podman`` or ``docker``.
        version: of what does the work.
        is_local: containers run on this kernel, so directories can be their root and their processes are ours to kill.
        is_rootless: it works as an ordinary user.
        is_unified: cgroup v2.
        options: words before each command.
        limits: of memory, pids, cpus: those that it can set.
    """

    path: str
    kind: str
    version: str
    is_local: bool
    is_rootless: bool
    is_unified: bool
    options: tuple[str, ...]
    limits: frozenset[str]

    @property
    def summary(self) -> str:
        """One line about it, for people."""
        user = "rootless" if self.is_rootless else "as root"
        place = "on this kernel" if self.is_local else "in a virtual machine"
        limits = ", ".join(sorted(self.limits)) or "none"
        return f"{self.kind} {self.version} ({self.path}), {user}, {place}; limits: {limits}"

    def words(self, *words: str) -> list[str]:
        """The command line of one command."""
        return [self.path, *self.options, *words]

    def run(self, *words: str, deadline: Deadline, stdin: bytes = b"", fails: bool = True) -> str:
        """Run one command of the program and return its output, as text without surrounding space.

        Args:
            words: the command and its arguments.
            deadline: by which it is killed.
            stdin: what it reads.
            fails: whether a status other than 0 raises.

        Raises:
            EngineFailed: it could not be run, passed the deadline, or failed.
        """
        done = _run(self.words(*words), deadline.remaining_s, stdin)
        if fails and done.returncode != 0:
            said = done.stderr.decode(errors="replace").strip() or f"status {done.returncode}"
            raise EngineFailed(f"{Path(self.path).name} {words[0]}: {said}")
        return done.stdout.decode(errors="replace").strip()


@dataclass(frozen=True)
class Absence:
    """A container program that cannot be used, with a fix."""

    kind: str
    reason: str
    fix: str


def _run(words: Sequence[str], limit_s: float, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Raises EngineFailed when it cannot be run or passes the limit."""
    try:
        return subprocess.run(
            list(words), input=stdin, capture_output=True, timeout=max(limit_s, 0.001), check=False, cwd="/"
        )
    except subprocess.TimeoutExpired as passed:
        raise EngineFailed(f"{Path(words[0]).name} did not answer within {limit_s:.0f} s") from passed
    except OSError as error:
        raise EngineFailed(str(error)) from error


def candidates() -> Iterator[tuple[str, str]]:
    """(kind, path) of the programs to try, in order of preference."""
    chosen = os.environ.get("JOURNEYMAN_OCI")
    if chosen:
        yield ("docker" if "docker" in Path(chosen).name else "podman"), chosen
        return
    for name in PROGRAMS:
        path = shutil.which(name)
        if path is not None:
            yield name, path


@lru_cache(maxsize=4)
def look_at(kind: str, path: str) -> Engine | Absence:
    """Ask one program; takes some hundred milliseconds, once for each."""
    try:
        done = _run([path, "info", "--format", "json" if kind == "podman" else "{{json .}}"], _PROBE_S)
        info = json.loads(done.stdout)
    except EngineFailed as error:
        return Absence(kind, str(error), _fix(kind, str(error)))
    except ValueError:
        said = done.stderr.decode(errors="replace").strip().splitlines() or [f"status {done.returncode}"]
        return Absence(kind, said[0], _fix(kind, said[0]))
    if "host" in info:  # podman, also under the name docker
        return _podman(path, info)
    if info.get("ServerErrors") or not info.get("ServerVersion"):
        said = info.get("ServerErrors") or done.stderr.decode(errors="replace").split("\n")
        reason = said[0] or "no daemon answers"
        return Absence(kind, reason, _fix(kind, reason))
    return _docker(path, info)


def _podman(path: str, info: dict[str, Any]) -> Engine | Absence:
    host = info["host"]
    is_local = sys.platform == "linux" and not host.get("serviceIsRemote", False)
    is_unified = host.get("cgroupVersion") == "v2"
    options: list[str] = []
    if is_local:
        runtime = os.environ.get("JOURNEYMAN_OCI_RUNTIME") or _runtime(host, is_unified)
        if isinstance(runtime, Absence):
            return runtime
        options = ["--runtime", runtime]
        if not Path("/run/systemd/system").is_dir():
            options += ["--cgroup-manager", "cgroupfs", "--events-backend", "file"]
    is_rootless = bool(host.get("security", {}).get("rootless", False))
    given = host.get("cgroupControllers") or []
    names = {"memory": "memory", "pids": "pids", "cpu": "cpus"}
    limits = frozenset(limit for controller, limit in names.items() if controller in given)
    if is_rootless and not is_unified:
        limits = frozenset()  # cgroup v1 gives nothing to an ordinary user
    version = str(info.get("version", {}).get("Version", "?"))
    return Engine(path, "podman", version, is_local, is_rootless, is_unified, tuple(options), limits)


def _runtime(host: dict[str, Any], is_unified: bool) -> str | Absence:
    """podman's own runtime unless that is crun on mixed cgroups, which it refuses to enter."""
    name = str(host.get("ociRuntime", {}).get("name", ""))
    if name == "crun" and not is_unified and Path("/sys/fs/cgroup/unified").is_dir():
        found = shutil.which(_FALLBACK_RUNTIME) or shutil.which(_FALLBACK_RUNTIME, path="/usr/sbin:/sbin")
        if found is None:
            return Absence("podman", "crun cannot work with hybrid control groups", "install runc (apt install runc)")
        return found
    return name or _FALLBACK_RUNTIME


def _docker(path: str, info: dict[str, Any]) -> Engine:
    where = os.environ.get("DOCKER_HOST", "unix://")
    has_machine = "Desktop" in str(info.get("OperatingSystem"))
    is_local = sys.platform == "linux" and where.startswith("unix://") and not has_machine
    limits = frozenset(
        limit
        for limit, key in (("memory", "MemoryLimit"), ("pids", "PidsLimit"), ("cpus", "CpuCfsQuota"))
        if info.get(key, True)
    )
    is_rootless = any("rootless" in str(option) for option in info.get("SecurityOptions") or ())
    is_unified = str(info.get("CgroupVersion")) == "2"
    return Engine(path, "docker", str(info["ServerVersion"]), is_local, is_rootless, is_unified, (), limits)


def _fix(kind: str, said: str) -> str:
    """What to do when the program is there and does not answer."""
    if kind == "podman":
        if sys.platform == "darwin":
            return "podman machine init; podman machine start"
        return "see what `podman info` says; install runc, uidmap and fuse-overlayfs"
    if "ermission denied" in said:
        return "join the group docker, or use podman"
    return "start Docker Desktop" if sys.platform == "darwin" else "start the docker daemon, or install podman and runc"


def engines() -> tuple[Engine | Absence, ...]:
    """Every container program that was found."""
    return tuple(look_at(kind, path) for kind, path in candidates())


def find_engine() -> Engine:
    """The first one that works. Raises EnvironmentMissing with what each lacks."""
    absences = []
    for found in engines():
        if isinstance(found, Engine):
            return found
        absences.append(f"{found.kind}: {found.reason}; {found.fix}")
    if absences:
        raise EnvironmentMissing(f"no container program works here ({'; '.join(absences)})")
    raise EnvironmentMissing(f"neither podman nor docker was found; {install_hint()}")


def install_hint() -> str:
    """How to get one."""
    if sys.platform == "darwin":
        return "brew install podman, then podman machine init and podman machine start"
    return "apt install podman runc (or the like of your distribution)"
