"""Start a server and outlive whoever asked for it just long enough to end it: ``python watch.py GRACE_S ARGV...``.

Standard input is a pipe that the asker holds open. When it closes, or the asker is gone (``kill -9`` included), or the
server ends by itself, everything the server started is ended: its process group first, with SIGTERM and after
``GRACE_S`` seconds SIGKILL; then, where the system lets orphans be adopted, whatever had left the group.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

SUBREAPER, DEATH_SIGNAL = 36, 1
"""PR_SET_CHILD_SUBREAPER and PR_SET_PDEATHSIG of prctl(2)."""
POLL_S = 0.2


def main() -> int:
    grace_s, argv, asker = float(sys.argv[1]), sys.argv[2:], os.getppid()
    prctl = getattr(ctypes.CDLL(None, use_errno=True), "prctl", None)
    if prctl:
        prctl(SUBREAPER, 1, 0, 0, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the asker, whose end is what counts here

    def tie() -> None:
        if prctl:
            prctl(DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)

    server = subprocess.Popen(argv, stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=tie)
    while server.poll() is None and os.getppid() == asker and not closed(POLL_S):
        pass
    code = server.poll()
    end(server, grace_s)
    return 0 if code is None else code


def closed(wait_s: float) -> bool:
    """Whether the asker closed its end of the pipe; waits so long at most."""
    readable, _, _ = select.select([0], [], [], wait_s)
    return bool(readable) and not os.read(0, 1)


def end(server: subprocess.Popen[bytes], grace_s: float) -> None:
    """End the group, then every adopted or remaining descendant."""
    until = time.monotonic() + grace_s
    signal_group(server.pid, signal.SIGTERM)
    while time.monotonic() < until and (server.poll() is None or descendants()):
        reap()
        time.sleep(POLL_S / 4)
    signal_group(server.pid, signal.SIGKILL)
    for _ in range(50):
        left = descendants()
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        server.poll()
        reap()
        if not left:
            return
        time.sleep(POLL_S / 4)


def signal_group(group: int, number: int) -> None:
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return


def reap() -> None:
    """Collect adopted children that ended."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return


def descendants() -> list[int]:
    """Living processes below this one, from ``/proc``; empty where there is none."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] != "Z":
            parents[int(entry.parent.name)] = int(fields[1])
    found, waiting = [], [os.getpid()]
    while waiting:
        above = waiting.pop()
        below = [pid for pid, parent in parents.items() if parent == above]
        found += below
        waiting += below
    return found


if __name__ == "__main__":
    sys.exit(main())
