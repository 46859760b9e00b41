"""A program on a leash ends with its owner, and everything that it started ends with it: ``leashed(words)``.

This file is also the program that holds the leash (``python leash.py GRACE_S pipe|through ARGV...``; standard library
only). The owner is its parent process. When that is gone (``kill -9`` included), or the holder is told to end, the
program may end by itself for the grace, then it is killed; so is whatever it left behind, also outside its process
group, as soon as it has ended.

``through``: the program has the holder's standard input and output, and of its standard error the first
``MAX_STDERR_BYTES`` pass. ``pipe``: standard input is a pipe whose end tells the holder to end; the program has a
session of its own, no input, and the holder's outputs.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

MAX_STDERR_BYTES = 65536
SUBREAPER, DEATH_SIGNAL = 36, 1
"""PR_SET_CHILD_SUBREAPER and PR_SET_PDEATHSIG of prctl(2)."""

POLL_S = 0.2
"""How often is looked where the kernel has no handles of processes."""


def leashed(words: Sequence[str], *, grace_s: float = 1.0, has_pipe: bool = False) -> list[str]:
    """The words that start ``words`` on a leash.

    Args:
        words: program and arguments.
        grace_s: seconds that it may take to end by itself.
        has_pipe: whoever starts it keeps the other end of its standard input, and closes that to end it.
    """
    holder = [sys.executable, "-I", "-S", str(Path(__file__).resolve()), f"{grace_s:g}"]
    return [*holder, "pipe" if has_pipe else "through", *words]


def main() -> int:
    """Start the program, hold it until its end or its owner's; its exit status."""
    grace_s, has_pipe, argv = float(sys.argv[1]), sys.argv[2] == "pipe", sys.argv[3:]
    owner = os.getppid()
    prctl = getattr(ctypes.CDLL(None, use_errno=True), "prctl", None)
    if prctl:
        prctl(SUBREAPER, 1, 0, 0, 0)
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_write, False)
    signal.set_wakeup_fd(wake_write)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)

    def tie() -> None:
        if prctl:
            prctl(DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)

    if has_pipe:
        program = subprocess.Popen(argv, stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=tie)
        ends, words = [wake_read, 0], None
    else:
        words, words_write = os.pipe()
        program = subprocess.Popen(argv, stderr=words_write, preexec_fn=tie)
        os.close(words_write)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1):  # their ends are the program's alone now
            os.dup2(nowhere, descriptor)
        ends = [wake_read]
    left = hold(program, owner, ends, words)
    end(program, grace_s, has_group=has_pipe)
    if words is not None:
        pass_on(words, left)
    code = program.wait()
    return 128 - code if code < 0 else code


def hold(program: subprocess.Popen[bytes], owner: int, ends: Sequence[int], words: int | None) -> int:
    """Return when the program or its owner has ended, or one of ``ends`` has something to read; pass on ``words``.

    Returns:
        how many bytes of ``words`` may still pass.
    """
    poller = select.poll()
    handles = [handle for pid in (program.pid, owner) if (handle := handle_of(pid)) is not None]
    for descriptor in (*handles, *ends, *(() if words is None else (words,))):
        poller.register(descriptor, select.POLLIN)
    wait_ms = None if len(handles) == 2 else POLL_S * 1000
    left = MAX_STDERR_BYTES
    while os.getppid() == owner and program.poll() is None:
        ready = {descriptor for descriptor, _ in poller.poll(wait_ms)}
        if words is not None and words in ready:
            said = os.read(words, 65536)
            if not said:
                poller.unregister(words)
            elif left:
                os.write(2, said[:left])
                left -= len(said[:left])
        if ready - {words}:
            break
    return left


def pass_on(words: int, left: int) -> None:
    """What a program said last, when it has ended: at most ``left`` bytes."""
    os.set_blocking(words, False)
    with contextlib.suppress(BlockingIOError):
        while left and (said := os.read(words, min(left, 65536))):
            os.write(2, said)
            left -= len(said)


def handle_of(pid: int) -> int | None:
    """A descriptor that becomes readable when the process ends; None where there is none."""
    try:
        return os.pidfd_open(pid)
    except (OSError, AttributeError):
        return None


def end(program: subprocess.Popen[bytes], grace_s: float, *, has_group: bool) -> None:
    """Let a program that still runs end by itself, then kill what is left; an orphan is a child of this process."""
    until = time.monotonic() + grace_s
    if program.poll() is None:
        tell(program.pid, signal.SIGTERM, has_group=has_group)
        while time.monotonic() < until and (program.poll() is None or (has_group and descendants())):
            time.sleep(0.01)
    for _ in range(200):
        if has_group:
            tell(program.pid, signal.SIGKILL, has_group=True)
        left = descendants()
        for pid in left:
            tell(pid, signal.SIGKILL)
        program.poll()
        if not left:
            return
        time.sleep(0.005)


def tell(pid: int, number: int, *, has_group: bool = False) -> None:
    """Send a signal to a process or its group, if it is still there."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if has_group:
            os.killpg(pid, number)
        else:
            os.kill(pid, number)


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
