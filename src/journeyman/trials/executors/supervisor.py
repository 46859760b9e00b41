"""The supervisor: a small process without torch that forks one process per attempt and outlives none of them.

It has one thread, so forking is safe; it enforces each attempt's hard wall clock from outside, kills whole trees,
reaps what a killed attempt left, and ends everything when its owner is gone. Started as
``python -m journeyman.trials.executors.supervisor FD``; the first packet says how to make the workplace.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import pickle
import select
import signal
import socket
import sys
import threading
import time
from dataclasses import dataclass
from typing import Any

from journeyman.redact import process_redactor
from journeyman.sandbox import proctree
from journeyman.sandbox.inside.forkserver import settle
from journeyman.sandbox.launcher import start_here
from journeyman.trials.executors.attempt import run_attempt
from journeyman.trials.executors.kept import taken, whole
from journeyman.trials.executors.protocol import Rehearsing, Ticket, Workplace, WorkplaceRecipe
from journeyman.trials.executors.rehearsal import TIMES
from journeyman.trials.executors.wire import Link, LinkBroken

PACKET = 1 << 16
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass
class _Child:
    number: int
    pid: int
    handle: int
    limit_s: float
    deadline_at: float
    why: str = "exit"


class Supervisor:
    """The event loop: packets of the owner, ends of children, deadlines."""

    def __init__(self, control: socket.socket, workplace: Workplace) -> None:
        self._control, self._workplace = control, workplace
        self._children: dict[int, _Child] = {}  # by handle
        self._kept: dict[int, Any] = {}
        self._poller = select.poll()
        self._poller.register(control.fileno(), select.POLLIN)

    def serve(self) -> None:
        """Until the owner says ``quit`` or is gone; every attempt is dead then."""
        while self._step():
            pass
        for child in tuple(self._children.values()):
            self._kill(child, "killed")
        while self._children:
            for child in tuple(self._children.values()):
                self._ended(child, is_told=False)
        self._sweep(is_abnormal=True)

    def _step(self) -> bool:
        nearest = min((child.deadline_at for child in self._children.values()), default=None)
        wait_ms = None if nearest is None else max(0.0, nearest - time.monotonic()) * 1000 + 1
        for descriptor, _ in self._poller.poll(wait_ms):
            if descriptor in self._children:
                self._ended(self._children[descriptor])
            elif not self._packet():
                return False
        now = time.monotonic()
        for child in self._children.values():
            if now >= child.deadline_at:
                self._kill(child, "deadline")
        return True

    def _packet(self) -> bool:
        data, descriptors, _, _ = socket.recv_fds(self._control, PACKET, 2)
        if not data:
            return False
        order = json.loads(data)
        if order["op"] == "start":
            self._keep(order, descriptors[1:])
            self._start(order["number"], order["limit_s"], descriptors[0], order["kept"])
        elif order["op"] == "kill":
            for child in self._children.values():
                if child.number == order["number"]:
                    self._kill(child, "killed")
        elif order["op"] == "ping":
            self._tell({"op": "pong", "running": sorted(child.number for child in self._children.values())})
        return bool(order["op"] != "quit")

    def _keep(self, order: dict[str, Any], descriptors: list[int]) -> None:
        """Take what attempts share; one that cannot be taken fails the attempts that need it."""
        for key in order.get("forget", ()):
            self._kept.pop(key, None)
        for descriptor in descriptors:
            try:
                self._kept[order["kept"]] = taken(descriptor)
                if isinstance(self._workplace, Rehearsing):
                    self._workplace.prepare(self._kept[order["kept"]][0])
            except Exception as error:
                _say(f"task: {type(error).__name__}: {error}")

    def _start(self, number: int, limit_s: float, descriptor: int, kept: int) -> None:
        me = os.getpid()
        pid = os.fork()
        if pid == 0:
            _child(me, descriptor, self._control, self._workplace, self._kept.get(kept))
        os.close(descriptor)
        handle = os.pidfd_open(pid)
        self._children[handle] = _Child(number, pid, handle, limit_s, time.monotonic() + limit_s)
        self._poller.register(handle, select.POLLIN)

    def _kill(self, child: _Child, why: str) -> None:
        """The tree below, then the process: what it started in other sessions has no chance to outlive it."""
        if child.why == "exit":
            child.why = why
        child.deadline_at = time.monotonic() + 3600.0
        below = proctree.descendants(child.pid)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
        for pid in (child.pid, *below):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)

    def _ended(self, child: _Child, *, is_told: bool = True) -> None:
        _, status = os.waitpid(child.pid, 0)
        self._poller.unregister(child.handle)
        os.close(child.handle)
        del self._children[child.handle]
        self._sweep(is_abnormal=status != 0)
        if is_told:
            detail = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"status {os.WEXITSTATUS(status)}"
            self._tell({"op": "exited", "number": child.number, "why": child.why, "detail": detail})

    def _sweep(self, *, is_abnormal: bool) -> None:
        """Kill what an attempt left to this process, its subreaper; after a kill, remove what its sandbox left."""
        known = {child.pid for child in self._children.values()}
        for pid in proctree.children(os.getpid()):
            if pid not in known:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, 0)
        if is_abnormal:
            with contextlib.suppress(OSError):
                self._workplace.provider.reap(self._workplace.label)

    def _tell(self, packet: dict[str, Any]) -> None:
        with contextlib.suppress(OSError):  # the owner is gone: the next packet says so
            self._control.send(json.dumps(packet).encode())


def _child(parent: int, descriptor: int, control: socket.socket, workplace: Workplace, shared: Any) -> None:
    """The forked process; never returns."""
    status = 4
    try:
        control.close()
        os.setsid()
        die_with(parent)
        start_here()
        link = Link(socket.socket(fileno=descriptor))
        message = link.receive(60.0)
        if message is not None:
            ticket: Ticket = pickle.loads(message.blobs[0])  # from the owner, over a socket pair it made
            status = run_attempt(link.connection, whole(ticket, shared), workplace)
    except LinkBroken:
        pass
    except BaseException as error:
        _say(f"attempt: {type(error).__name__}: {error}")
    finally:
        os._exit(status)


def _say(text: str) -> None:
    with contextlib.suppress(Exception):
        print(process_redactor()(text), file=sys.stderr, flush=True)  # noqa: T201


def die_with(parent: int) -> None:
    """Be killed when the parent process ends, however it ends."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(4)


def _rehearse_birth() -> None:
    """Do a child's first steps as far as they change nothing in a process of one thread; see ``rehearsal``."""
    if threading.active_count() > 1:
        return
    for _ in range(TIMES):
        _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        with contextlib.suppress(Exception):  # a name of the standard library that is not promised
            threading._after_fork()  # type: ignore[attr-defined]


def main(words: list[str]) -> int:
    """Serve one owner over the inherited socket; returns 0."""
    control = socket.socket(fileno=int(words[1]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the owner decides, not the terminal
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    data = control.recv(PACKET)
    if not data:
        return 0
    try:
        recipe = json.loads(data)
        workplace = WorkplaceRecipe(recipe["factory"], recipe["arguments"]).make()
    except Exception as error:
        control.send(json.dumps({"op": "failed", "type": type(error).__name__, "message": str(error)}).encode())
        return 1
    _ = workplace.provider.supports  # looked up once here, not in every forked process
    start_here()
    if isinstance(workplace, Rehearsing):
        workplace.rehearse()
        _rehearse_birth()
    settle()  # what exists now stays shared with every forked process
    with contextlib.suppress(OSError):  # the owner is gone: the first packet says so
        control.send(b'{"op": "ready"}')
    Supervisor(control, workplace).serve()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
