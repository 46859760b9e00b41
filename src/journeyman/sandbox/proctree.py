"""The processes below one process, from ``/proc``: for hosts without control groups, and to find a supervisor."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from journeyman.deadline import Deadline
from journeyman.sandbox.kernel_files import read

_PAGE = os.sysconf("SC_PAGE_SIZE")


def children(pid: int) -> list[int]:
    """Direct children of a process's main thread; empty when it is gone."""
    try:
        return [int(child) for child in read(f"/proc/{pid}/task/{pid}/children").split()]
    except FileNotFoundError:
        if not Path(f"/proc/{pid}").exists():
            return []
        return sorted(child for child, parent in parents().items() if parent == pid)
    except OSError:
        return []


def parents() -> dict[int, int]:
    """Living process -> its parent."""
    found: dict[int, int] = {}
    if not Path("/proc/self").exists():
        table = subprocess.run(["ps", "-axo", "pid=,ppid="], capture_output=True, text=True, check=False).stdout
        return {int(pid): int(parent) for pid, parent in (line.split() for line in table.splitlines())}
    for name in os.listdir("/proc"):  # noqa: PTH208 - on a hot path
        if name.isdigit():
            with contextlib.suppress(OSError, IndexError):
                state, parent = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[:2]
                if state not in "ZX":
                    found[int(name)] = int(parent)
    return found


def descendants(pid: int, table: Mapping[int, int] | None = None) -> list[int]:
    """Every living process below ``pid``. Complete for pid 1 of a pid namespace: the kernel hands it every orphan.

    Args:
        table: what ``parents`` gave a moment ago; None looks now.
    """
    below: dict[int, list[int]] = {}
    for child, parent in (parents() if table is None else table).items():
        below.setdefault(parent, []).append(child)
    found: list[int] = []
    queue = list(below.get(pid, ()))
    while queue:
        process = queue.pop()
        found.append(process)
        queue.extend(below.get(process, ()))
    return found


def at_home_in(directory: Path) -> list[int]:
    """Processes of this user that work below ``directory`` or were started with a variable that lies there.

    The variables of a process that is just becoming another program cannot be read, its working directory can.
    """
    below = f"{directory}/"
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (path / "cwd").readlink().as_posix().startswith(below) or (
                f"={below}".encode(errors="surrogateescape") in (path / "environ").read_bytes()
            ):
                found.append(int(path.name))
    return found


def kill_at_home_in(directory: Path, deadline: Deadline) -> None:
    """Kill every process that ``at_home_in`` finds, until none is left or the deadline has passed."""
    while alive := [pid for pid in at_home_in(directory) if not is_zombie(pid)]:
        for pid in alive:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if deadline.has_passed:
            return
        time.sleep(0.002)


def is_zombie(pid: int) -> bool:
    """Whether the process is dead (gone, or not yet reaped)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def kill_descendants(pid: int, deadline: Deadline) -> bool:
    """Kill everything below ``pid`` but not itself; whether nothing is left.

    All are stopped before they are killed, so that what forks cannot outrun the list for long.
    """
    while True:
        others = descendants(pid)
        if not others:
            return True
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for other in others:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(other, number)
        if deadline.has_passed:
            return False
        time.sleep(0.002)


def resident_bytes(pid: int, table: Mapping[int, int] | None = None) -> int:
    """Resident memory of ``pid`` and everything below it; shared pages count once per process."""
    total = 0
    for process in (pid, *descendants(pid, table)):
        with contextlib.suppress(OSError, IndexError):
            total += int(Path(f"/proc/{process}/statm").read_text().split()[1]) * _PAGE
    return total


def wait_for(process: subprocess.Popen[bytes], limit_s: float) -> bool:
    """Wait for a child to end and reap it; whether it did within ``limit_s``. Sleeps in the kernel, without polling."""
    if process.poll() is not None:
        return True
    try:
        handle = os.pidfd_open(process.pid)
    except (OSError, AttributeError):
        try:
            process.wait(limit_s)
        except subprocess.TimeoutExpired:
            return False
        return True
    try:
        poller = select.poll()  # unlike select, it takes descriptors above 1023
        poller.register(handle, select.POLLIN)
        poller.poll(limit_s * 1000)
    finally:
        os.close(handle)
    return process.poll() is not None
