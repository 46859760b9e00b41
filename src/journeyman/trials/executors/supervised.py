"""The owner's side of supervisors: starts them, hands attempts over, notices when one is killed or falls silent."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import select
import socket
import subprocess
import sys
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from journeyman.errors import SystemFault
from journeyman.trials.executors.kept import Part, Sent, bare
from journeyman.trials.executors.protocol import Exit, Ticket, WorkplaceRecipe
from journeyman.trials.executors.supervisor import PACKET
from journeyman.trials.executors.wire import packed

READY_S = 120.0
"""Until a supervisor has imported what attempts need and made the workplace."""

FAILED_STARTS = 3
"""Supervisors in a row that may end before they are ready; with one more, it is the workplace that cannot be made."""

SEND_S = 30.0
"""A supervisor takes an order within this, or is silent."""

SILENCE_S = 30.0
"""Beyond an attempt's wall clock: a supervisor that has not ended it by then is itself ended."""

_ENV = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


class SupervisorFailed(SystemFault):
    """A supervisor could not make the workplace, or died while it did."""

    cause = "tool_host_failed"


@dataclass
class _Supervisor:
    process: subprocess.Popen[bytes]
    control: socket.socket
    running: dict[int, float] = field(default_factory=dict)  # number -> instant by which its end is known
    sent: Sent = field(default_factory=Sent)
    is_ready: bool = False


class SupervisedLauncher:
    """Attempts as forked processes below ``count`` supervisors; implements ``Launcher``.

    Args:
        recipe: of the workplace.
        count: supervisors; each attempt goes to the one with the fewest.
        log: descriptor for what supervisors and attempts say on stderr; None inherits.

    Raises:
        SupervisorFailed: the first supervisor did not come up.
    """

    def __init__(self, recipe: WorkplaceRecipe, *, count: int = 1, log: int | None = None) -> None:
        self._recipe, self._log = recipe, log
        self._arrived: deque[tuple[int, socket.socket]] = deque()
        self._exited: deque[Exit] = deque()
        self._failed_starts, self._said = 0, ""
        self._all = [self._spawn() for _ in range(count)]
        try:
            self._await_one()
        except BaseException:
            self.close()
            raise

    @property
    def pids(self) -> list[int]:
        """Of the supervisors."""
        return [supervisor.process.pid for supervisor in self._all]

    def start(self, number: int, ticket: Ticket) -> None:
        """See ``Launcher.start``."""
        self._await_one()
        supervisor = min((s for s in self._all if s.is_ready), key=lambda s: len(s.running))
        ours, theirs = socket.socketpair()
        part: Part | None = None
        try:
            part = supervisor.sent.part(ticket)
            order = {"op": "start", "number": number, "limit_s": ticket.whole_s, "kept": part.key}
            order |= {"forget": part.forget} if part.forget else {}
            descriptors = [theirs.fileno(), *([part.descriptor] if part.descriptor is not None else [])]
            supervisor.control.settimeout(SEND_S)  # it may be forking the attempts before this one
            socket.send_fds(supervisor.control, [json.dumps(order).encode()], descriptors)
            ours.settimeout(10.0)
            ours.sendall(packed({"kind": "ticket"}, [pickle.dumps(bare(ticket))]))
        except OSError as error:
            ours.close()
            self._lost(supervisor)
            raise SupervisorFailed(f"an attempt could not be handed over: {error}") from error
        finally:
            theirs.close()
            if part is not None and part.descriptor is not None:
                os.close(part.descriptor)
        supervisor.running[number] = time.monotonic() + ticket.whole_s + SILENCE_S
        self._arrived.append((number, ours))

    def kill(self, number: int) -> None:
        """See ``Launcher.kill``."""
        for supervisor in self._all:
            if number in supervisor.running:
                supervisor.running[number] = min(supervisor.running[number], time.monotonic() + SILENCE_S)
                with contextlib.suppress(OSError):
                    supervisor.control.settimeout(SEND_S)
                    supervisor.control.send(json.dumps({"op": "kill", "number": number}).encode())

    def arrivals(self) -> list[tuple[int, socket.socket]]:
        """See ``Launcher.arrivals``."""
        found = list(self._arrived)
        self._arrived.clear()
        return found

    def exits(self) -> list[Exit]:
        """See ``Launcher.exits``."""
        for supervisor in tuple(self._all):
            self._listen(supervisor)
        found = list(self._exited)
        self._exited.clear()
        return found

    def wakers(self) -> list[socket.socket]:
        """See ``Launcher.wakers``."""
        return [supervisor.control for supervisor in self._all]

    def answers(self, limit_s: float = 10.0) -> list[list[int]]:
        """The numbers each supervisor says it runs. Raises SupervisorFailed when one does not answer in time."""
        found = []
        for supervisor in [s for s in self._all if s.is_ready]:
            supervisor.control.settimeout(limit_s)
            supervisor.control.send(b'{"op": "ping"}')
            until = time.monotonic() + limit_s
            while (packet := self._receive(supervisor, max(until - time.monotonic(), 0.001))) is not None:
                if packet["op"] == "pong":
                    break
                self._take(supervisor, packet)
            if packet is None:
                raise SupervisorFailed(f"a supervisor did not answer within {limit_s:g} s")
            found.append(packet["running"])
        return found

    def close(self) -> None:
        """See ``Launcher.close``."""
        for supervisor in self._all:
            with contextlib.suppress(OSError):
                supervisor.control.settimeout(SEND_S)
                supervisor.control.send(b'{"op": "quit"}')
            supervisor.control.close()
        for supervisor in self._all:
            try:
                supervisor.process.wait(timeout=15.0)
            except subprocess.TimeoutExpired:
                supervisor.process.kill()
                supervisor.process.wait(timeout=15.0)
        self._all = []

    def _spawn(self) -> _Supervisor:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        path = os.pathsep.join(word for word in sys.path if word)
        process = subprocess.Popen(
            [sys.executable, "-m", "journeyman.trials.executors.supervisor", str(theirs.fileno())],
            pass_fds=(theirs.fileno(),),
            stdin=subprocess.DEVNULL,
            stderr=self._log,
            env={**os.environ, **_ENV, "PYTHONPATH": path},
            start_new_session=True,
        )
        theirs.close()
        recipe = {"factory": self._recipe.factory, "arguments": dict(self._recipe.arguments)}
        ours.send(json.dumps(recipe).encode())
        return _Supervisor(process, ours)

    def _await_one(self) -> None:
        """Until one of them can take attempts. Raises SupervisorFailed."""
        until = time.monotonic() + READY_S
        while not any(supervisor.is_ready for supervisor in self._all):
            if time.monotonic() > until:
                raise SupervisorFailed(f"no supervisor was ready within {READY_S:g} s")
            select.select([supervisor.control for supervisor in self._all], [], [], 0.5)
            for supervisor in tuple(self._all):
                self._listen(supervisor)

    def _listen(self, supervisor: _Supervisor) -> None:
        while (packet := self._receive(supervisor, 0.0)) is not None:
            if packet["op"] == "end":
                self._lost(supervisor)
                return
            self._take(supervisor, packet)
        if any(time.monotonic() > at for at in supervisor.running.values()):
            self._lost(supervisor)

    def _take(self, supervisor: _Supervisor, packet: dict[str, Any]) -> None:
        if packet["op"] == "ready":
            supervisor.is_ready, self._failed_starts = True, 0
        elif packet["op"] == "failed":
            self._said = f"{packet['type']}: {packet['message']}"
        elif packet["op"] == "exited" and supervisor.running.pop(packet["number"], None) is not None:
            self._exited.append(Exit(packet["number"], packet["why"], packet["detail"]))

    def _receive(self, supervisor: _Supervisor, limit_s: float) -> dict[str, Any] | None:
        supervisor.control.settimeout(limit_s)
        try:
            data = supervisor.control.recv(PACKET)
        except (TimeoutError, BlockingIOError):
            return None
        except OSError:
            data = b""
        packet: dict[str, Any] = json.loads(data) if data else {"op": "end"}
        return packet

    def _lost(self, supervisor: _Supervisor) -> None:
        """A supervisor is gone or silent: its attempts die with it, another takes its place."""
        if supervisor not in self._all:
            return
        supervisor.process.kill()
        supervisor.process.wait(timeout=15.0)
        supervisor.control.close()
        detail = f"its supervisor ended with status {supervisor.process.returncode}"
        self._exited.extend(Exit(number, "lost", detail) for number in supervisor.running)
        self._failed_starts += not supervisor.is_ready
        if self._failed_starts > FAILED_STARTS:
            why = self._said or detail
            raise SupervisorFailed(f"{self._failed_starts} supervisors in a row did not come up: {why}")
        self._all[self._all.index(supervisor)] = self._spawn()
