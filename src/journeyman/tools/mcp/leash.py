"""Run a server on the standard streams it was given and end all of it with its owner: ``python leash.py ARGV...``.

The owner is the parent process. When it is gone (``kill -9`` included), or this program is told to end, the server may
end by itself for ``GRACE_S`` seconds, then everything it started is killed, also what left its process group. When the
server ends, what it left behind is killed at once, so that its end is seen at once. Of its standard error the first
``MAX_STDERR_BYTES`` pass. Standard library only.
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

GRACE_S = 1.0
MAX_STDERR_BYTES = 65536
SUBREAPER, DEATH_SIGNAL = 36, 1
"""PR_SET_CHILD_SUBREAPER and PR_SET_PDEATHSIG of prctl(2)."""


def main() -> int:
    owner = os.getppid()
    owner_fd = os.pidfd_open(owner)
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    prctl(SUBREAPER, 1, 0, 0, 0)
    wake_read, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(wake_write)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)

    def tie() -> None:
        prctl(DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)

    words_read, words_write = os.pipe()
    server = subprocess.Popen(sys.argv[1:], stderr=words_write, preexec_fn=tie)
    os.close(words_write)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1):  # their ends are the server's alone now
        os.dup2(nowhere, descriptor)
    if os.getppid() == owner:
        watch(server.pid, owner_fd, wake_read, words_read)
    give_grace(server)
    sweep()
    code = server.wait()
    return 128 - code if code < 0 else code


def watch(server: int, owner_fd: int, wake_fd: int, words_fd: int) -> None:
    """Return when the server or its owner has ended, or this program was told to."""
    server_fd = os.pidfd_open(server)
    poller = select.poll()
    for descriptor in (server_fd, owner_fd, wake_fd, words_fd):
        poller.register(descriptor, select.POLLIN)
    left = MAX_STDERR_BYTES
    while True:
        ready = {descriptor for descriptor, _ in poller.poll()}
        if words_fd in ready:
            words = os.read(words_fd, 65536)
            if not words:
                poller.unregister(words_fd)
            elif left:
                os.write(2, words[:left])
                left -= len(words[:left])
        if ready - {words_fd}:
            return


def give_grace(server: subprocess.Popen[bytes]) -> None:
    """Let a server that still runs end by itself, with its input closed and a SIGTERM."""
    if server.poll() is None:
        server.terminate()
        until = time.monotonic() + GRACE_S
        while server.poll() is None and time.monotonic() < until:
            time.sleep(0.01)


def sweep() -> None:
    """Kill every descendant until none is left: an orphan among them becomes a child of this process."""
    for _ in range(200):
        left = descendants()
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        if not left:
            return
        time.sleep(0.005)


def descendants() -> list[int]:
    """Living processes below this one."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] != "Z":
            parents[int(entry.parent.name)] = int(fields[1])
    found: list[int] = []
    waiting = [os.getpid()]
    while waiting:
        above = waiting.pop()
        below = [pid for pid, parent in parents.items() if parent == above]
        found += below
        waiting += below
    return found


if __name__ == "__main__":
    sys.exit(main())
