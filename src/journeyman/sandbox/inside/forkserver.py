"""Serve one Python function over frames, each call in its own child that nothing else can reach.

    python3 -I -S forkserver.py --path /opt/agent/lib module:function [--memory-mb N] [--deadline-s S] [--file-mb N]

The function maps bytes to bytes. It is imported once; for every frame a child is forked before the frame is read, so
neither the server nor a later child ever holds an earlier payload. The child gives up the descriptors of the protocol
before it works, and its answer comes back through a pipe of its own, so a child that was taken over can answer for
itself only. When it is done, everything it left running is killed.

Frames on standard input and output: 4-byte big-endian length, payload. An answer starts with a status byte:
0 the function's result; 1 it raised ("TypeName\\nmessage"); 2 it passed its deadline; 3 it was killed (signal, memory).
Standard library only.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import resource
import select
import signal
import struct
import sys
import time
from collections.abc import Callable

OK, RAISED, TIMED_OUT, KILLED = 0, 1, 2, 3
#: A child's first byte to the server: its frame was read to the end.
TAKEN = b"\x06"
#: Exit status of a child that found the end of the input instead of a frame.
END_OF_INPUT = 9
_CHUNK = 1 << 16
_PR_SET_DUMPABLE = 4
LARGE_PAGE, MADV_COLLAPSE = 1 << 21, 25

Function = Callable[[bytes], bytes]


def settle() -> None:
    """Before the first fork: make what exists now cheap to share with every child.

    Collections leave it alone, and where the kernel can (Linux 6.1) its memory is moved to large pages, of which a fork
    copies one entry in place of 512.
    """
    gc.collect()
    gc.freeze()
    with contextlib.suppress(ImportError, OSError, AttributeError):
        import ctypes

        advise = ctypes.CDLL(None).madvise
        with open("/proc/self/maps") as file:
            rows = [line.split() for line in file]
        for row in rows:
            if row[1] == "rw-p" and (len(row) == 5 or row[5] == "[heap]"):
                first, last = (int(bound, 16) for bound in row[0].split("-"))
                for start in range(-(-first // LARGE_PAGE) * LARGE_PAGE, last - LARGE_PAGE + 1, LARGE_PAGE):
                    advise(ctypes.c_void_p(start), ctypes.c_size_t(LARGE_PAGE), MADV_COLLAPSE)


def read_exactly(descriptor: int, size: int) -> bytes:
    """``size`` bytes, or fewer at the end of the stream."""
    parts = bytearray()
    while len(parts) < size:
        data = os.read(descriptor, min(size - len(parts), 1 << 20))
        if not data:
            break
        parts += data
    return bytes(parts)


def write_all(descriptor: int, data: bytes) -> None:
    """Write everything, however the descriptor takes it."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def forbid_inspection() -> None:
    """Make this process and its children unreadable through /proc: a child must not reach its parent's memory."""
    with contextlib.suppress(ImportError, OSError, AttributeError):
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def take_frame() -> bytes:
    """In the child: read one frame, then give up the protocol's descriptors."""
    header = read_exactly(0, 4)
    if len(header) < 4:
        os._exit(END_OF_INPUT)
    payload = read_exactly(0, struct.unpack(">I", header)[0])
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    os.close(nowhere)
    return payload


def limit_resources(memory_mb: int, file_mb: int | None) -> None:
    """In the child: bound its address space and the files it writes (MiB; 0 and None for no bound).

    When the sandbox's memory runs out, the kernel is to take this process and not the server.
    """
    with contextlib.suppress(OSError):
        score = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
        os.write(score, b"800")
        os.close(score)
    if memory_mb:
        resource.setrlimit(resource.RLIMIT_AS, (memory_mb << 20, memory_mb << 20))
    if file_mb is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (file_mb << 20, file_mb << 20))


def work(function: Function, answer_fd: int, memory_mb: int, file_mb: int | None) -> None:
    """The child: read a frame, call the function, write status and body to its own pipe, exit."""
    try:
        with contextlib.suppress(OSError):
            os.setsid()
        payload = take_frame()
        write_all(answer_fd, TAKEN)
        limit_resources(memory_mb, file_mb)
        try:
            body, status = function(payload), OK
            if not isinstance(body, bytes):
                raise TypeError(f"the function returned {type(body).__name__}, not bytes")
        except MemoryError:
            body, status = b"out of memory", KILLED
        except BaseException as error:  # whatever it is, it belongs to this call
            body, status = f"{type(error).__name__}\n{error}".encode(errors="replace"), RAISED
        write_all(answer_fd, bytes([status]) + body)
    finally:
        os._exit(0)


class OutOfStep(Exception):
    """A child ended before it had read its frame: what is left of it would be taken for the next one."""


def collect(child: int, answer_fd: int, deadline_s: float) -> bytes | None:
    """The server: the child's answer or what became of it; None when it found the end of the input.

    The child's end counts, not the pipe's: something it started may hold the pipe open.

    Raises:
        OutOfStep: see there; the server has to end.
    """
    ends_at = time.monotonic() + deadline_s if deadline_s else None
    os.set_blocking(answer_fd, False)
    end_fd = os.pidfd_open(child) if hasattr(os, "pidfd_open") else -1  # without it, the pipe's end has to do
    poller = select.poll()
    poller.register(answer_fd, select.POLLIN)
    if end_fd >= 0:
        poller.register(end_fd, select.POLLIN)
    answer = bytearray()
    timed_out = has_ended = False
    while not has_ended and not timed_out:
        ready = dict(poller.poll(None if ends_at is None else max(0.0, ends_at - time.monotonic()) * 1000))
        timed_out = not ready
        has_ended = end_fd in ready
        if answer_fd in ready and not take(answer_fd, answer):
            poller.unregister(answer_fd)
            has_ended = has_ended or end_fd < 0
    while take(answer_fd, answer):
        pass
    os.close(answer_fd)
    if end_fd >= 0:
        os.close(end_fd)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    if not answer and os.WEXITSTATUS(status) != END_OF_INPUT:
        raise OutOfStep("a call ended before its frame was read")
    del answer[: len(TAKEN)]
    if timed_out:
        return bytes([TIMED_OUT]) + b"deadline passed"
    if os.WIFSIGNALED(status):
        return bytes([KILLED]) + signal.Signals(os.WTERMSIG(status)).name.encode()
    if os.WEXITSTATUS(status) == END_OF_INPUT:
        return None
    return bytes(answer) or bytes([KILLED]) + b"it ended without an answer"


def take(answer_fd: int, answer: bytearray) -> bool:
    """Append what the pipe holds; False when it is empty or closed."""
    try:
        data = os.read(answer_fd, _CHUNK)
    except BlockingIOError:
        return False
    answer += data
    return bool(data)


def sweep() -> None:
    """Kill what the last child left behind: as pid 1 of a namespace, everything but this process is of that kind."""
    if os.getpid() == 1:
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, 0)[0]:
            pass


def main() -> None:
    """Import the function, then serve frames until the input ends."""
    import argparse  # here, since others import this file for its functions

    parser = argparse.ArgumentParser()
    parser.add_argument("function", help="module:function, bytes to bytes")
    parser.add_argument("--path", action="append", default=[], help="directory to import from; may be repeated")
    parser.add_argument("--memory-mb", type=int, default=0, help="address space of a call, 0 for no bound")
    parser.add_argument("--deadline-s", type=float, default=0.0, help="wall-clock of a call, 0 for no bound")
    parser.add_argument("--file-mb", type=int, default=None, help="largest file of a call; 0 forbids writing")
    options = parser.parse_args()
    sys.path[:0] = options.path
    module, _, name = options.function.partition(":")
    function: Function = getattr(importlib.import_module(module), name)
    settle()
    forbid_inspection()
    waiter = select.poll()
    waiter.register(0, select.POLLIN)
    while True:
        waiter.poll()
        answer_fd, write_fd = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(answer_fd)
            work(function, write_fd, options.memory_mb, options.file_mb)
        os.close(write_fd)
        try:
            answer = collect(child, answer_fd, options.deadline_s)
        except OutOfStep as error:
            sys.exit(str(error))
        if answer is None:
            return
        sweep()
        write_all(1, struct.pack(">I", len(answer)) + answer)


if __name__ == "__main__":
    main()
