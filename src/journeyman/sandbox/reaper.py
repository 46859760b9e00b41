"""Finds sandboxes of every process of this machine, and removes what owners that were killed left behind.

The register is the kernel's: names of control groups and ``argv[0]`` of outermost processes (``identity.py``). What a
provider keeps on disk carries the same name (``plain.py``).
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from journeyman.deadline import Deadline
from journeyman.sandbox import cgroup, hierarchy, proctree
from journeyman.sandbox.identity import ARGV0_PREFIX, Identity
from journeyman.sandbox.kernel_files import write
from journeyman.sandbox.protocol import SandboxInfo

#: Seconds that the removal of one orphan may take.
_REAP_S = 5.0
#: Prefix of directories that a provider makes in the temporary directory; the identity's name follows.
DIRECTORY_PREFIX = "journeyman-sandbox~"


@dataclass
class Traces:
    """Everything of one sandbox that can be seen from outside."""

    identity: Identity
    groups: list[Path] = field(default_factory=list)
    outermost: list[int] = field(default_factory=list)
    directories: list[Path] = field(default_factory=list)

    def processes(self) -> set[int]:
        """Pids that are alive: of its groups, else below its outermost process or at home in its directory."""
        pids = set(self.outermost)
        for group in self.groups:
            with contextlib.suppress(OSError):
                pids.update(int(pid) for pid in (group / "cgroup.procs").read_text().split())
        if not self.groups:
            for pid in self.outermost:
                pids.update(proctree.descendants(pid))
            for directory in self.directories:  # what a dead supervisor left
                pids.update(proctree.at_home_in(directory))
        return pids


def traces(label: str | None = None) -> dict[str, Traces]:
    """Every sandbox or meter with traces, by the name of its identity."""
    found: dict[str, Traces] = {}

    def of(name: str) -> Traces | None:
        identity = Identity.parse(name)
        if identity is None or (label is not None and identity.label != label):
            return None
        return found.setdefault(name, Traces(identity))

    for name, paths in hierarchy.named_groups().items():
        if (trace := of(name)) is not None:
            trace.groups.extend(paths)
    for process in os.listdir("/proc") if Path("/proc/self").exists() else ():  # noqa: PTH208 - strings are enough
        if not process.isdigit():
            continue
        with contextlib.suppress(OSError):
            argv0 = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0", 1)[0].decode(errors="replace")
            if argv0.startswith(ARGV0_PREFIX) and (trace := of(argv0.removeprefix(ARGV0_PREFIX))) is not None:
                trace.outermost.append(int(process))
    for path in Path(tempfile.gettempdir()).glob(DIRECTORY_PREFIX + "*"):
        if (trace := of(path.name.removeprefix(DIRECTORY_PREFIX))) is not None:
            trace.directories.append(path)
    return found


def list_sandboxes(label: str | None = None) -> list[SandboxInfo]:
    """Sandboxes that are alive or left traces, oldest owner first; nothing else that has a label."""
    return [
        SandboxInfo(i.id, i.label, i.owner_pid, i.is_orphan, len(trace.processes()))
        for name, trace in sorted(traces(label).items())
        if (i := trace.identity).is_sandbox
    ]


def reap(label: str | None = None) -> list[str]:
    """Kill and remove everything of owners that are gone; returns the ids, sorted."""
    reaped = []
    for _, trace in sorted(traces(label).items()):
        if trace.identity.is_orphan:
            _remove(trace)
            reaped.append(trace.identity.id)
    hierarchy.remove_parents(hierarchy.parent_directories())
    return sorted(reaped)


def _remove(trace: Traces) -> None:
    deadline = Deadline.after(_REAP_S, f"reaping of {trace.identity.id}")
    for group in trace.groups:
        with contextlib.suppress(OSError):
            write(group / "cgroup.kill", "1")
    while (alive := {pid for pid in trace.processes() if not proctree.is_zombie(pid)}) and not deadline.has_passed:
        for pid in alive:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        trace.outermost = [pid for pid in trace.outermost if not proctree.is_zombie(pid)]
    for group in trace.groups:
        for below, _, _ in os.walk(group, topdown=False):
            cgroup.remove_directory(Path(below), deadline)
    for directory in trace.directories:
        shutil.rmtree(directory, ignore_errors=True)
