"""Executor ``inline``: attempts as threads of this process, for tasks that are trusted and for looking at one closely.

The sandbox of an attempt is as closed as under any executor; the attempt itself is not apart from the engine's owner. A
thread cannot be killed: one whose attempt is over is left to the deadlines of what it waits for.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections import deque
from dataclasses import dataclass

from journeyman.trials.executors.attempt import run_attempt
from journeyman.trials.executors.process import ProcessExecutor
from journeyman.trials.executors.protocol import Exit, Launcher, Ticket, Workplace, WorkplaceRecipe
from journeyman.trials.executors.wire import LinkBroken

LEFT_S = 60.0
"""Beyond its wall clock, after which an attempt whose thread still waits counts as lost."""
CLOSE_S = 15.0


@dataclass
class _Running:
    connection: socket.socket
    thread: threading.Thread | None
    deadline_at: float
    why: str = "exit"


class ThreadLauncher:
    """Attempts as threads; implements ``Launcher``.

    Args:
        recipe: of the workplace, which all attempts share.

    Raises:
        InputError: the workplace cannot be made.
    """

    def __init__(self, recipe: WorkplaceRecipe) -> None:
        self._workplace: Workplace = recipe.make()
        self._arrived: deque[tuple[int, socket.socket]] = deque()
        self._ended: deque[tuple[int, str]] = deque()
        self._running: dict[int, _Running] = {}
        self._bell, self._rope = socket.socketpair()
        self._bell.setblocking(False)

    def start(self, number: int, ticket: Ticket) -> None:
        """See ``Launcher.start``."""
        ours, theirs = socket.socketpair()
        run = _Running(theirs, None, time.monotonic() + ticket.whole_s)
        run.thread = threading.Thread(target=self._live, args=(number, ticket, theirs), name="attempt", daemon=True)
        self._running[number] = run
        self._arrived.append((number, ours))
        run.thread.start()

    def kill(self, number: int) -> None:
        """See ``Launcher.kill``: its connection ends, and with it whatever it wanted to ask."""
        if number in self._running:
            self._hang_up(self._running[number], "killed")

    def arrivals(self) -> list[tuple[int, socket.socket]]:
        """See ``Launcher.arrivals``."""
        found = list(self._arrived)
        self._arrived.clear()
        return found

    def exits(self) -> list[Exit]:
        """See ``Launcher.exits``."""
        with contextlib.suppress(BlockingIOError):
            self._bell.recv(4096)
        found = []
        while self._ended:
            number, detail = self._ended.popleft()
            run = self._running.pop(number, None)
            if run is not None:
                found.append(Exit(number, run.why, detail))
        now = time.monotonic()
        for number, run in tuple(self._running.items()):
            if now >= run.deadline_at and run.why == "exit":
                self._hang_up(run, "deadline")
            if now >= run.deadline_at + LEFT_S:
                del self._running[number]
                found.append(Exit(number, run.why, "its thread still waits for something"))
        return found

    def wakers(self) -> list[socket.socket]:
        """See ``Launcher.wakers``."""
        return [self._bell]

    def close(self) -> None:
        """See ``Launcher.close``. What still waits then ends by its own deadline; its sandbox is reaped."""
        until = time.monotonic() + CLOSE_S
        for run in self._running.values():
            self._hang_up(run, "killed")
        for run in self._running.values():
            if run.thread is not None:
                run.thread.join(max(0.0, until - time.monotonic()))
        with contextlib.suppress(OSError):
            self._workplace.provider.reap(self._workplace.label)
        self._bell.close()
        self._rope.close()

    def _live(self, number: int, ticket: Ticket, connection: socket.socket) -> None:
        detail = "it was hung up on"
        try:
            detail = f"status {run_attempt(connection, ticket, self._workplace)}"
        except LinkBroken:
            pass
        except BaseException as error:  # the boundary of one attempt: it has no report, and its exit says why
            detail = f"{type(error).__name__}: {error}"
        finally:
            connection.close()
            self._ended.append((number, detail))
            with contextlib.suppress(OSError):
                self._rope.send(b".")

    def _hang_up(self, run: _Running, why: str) -> None:
        if run.why == "exit":
            run.why = why
        with contextlib.suppress(OSError):
            run.connection.shutdown(socket.SHUT_RDWR)


class ThreadExecutor(ProcessExecutor):
    """``ProcessExecutor`` whose attempts are threads of this process."""

    def _launcher(self, workplace: WorkplaceRecipe, supervisors: int, log: int | None) -> Launcher:
        return ThreadLauncher(workplace)
