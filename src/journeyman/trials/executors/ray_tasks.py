"""Executor ``ray``: every attempt is one Ray task in a fresh worker process, placed by the resources it asks for.

Ray never retries (``max_retries=0``) and never reuses a worker (``max_calls=1``): the error table decides. Attempts ask
for their turns over TCP, so the engine stays where its owner is; each shows a word that only its own task was given.
"""

from __future__ import annotations

import contextlib
import hmac
import pickle
import secrets
import socket
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from journeyman.errors import EnvironmentMissing
from journeyman.trials.executors.attempt import run_attempt
from journeyman.trials.executors.process import ProcessExecutor
from journeyman.trials.executors.protocol import Exit, Launcher, Ticket, WorkplaceRecipe
from journeyman.trials.executors.wire import LinkBroken

if TYPE_CHECKING:
    from journeyman.trials.record import TrialRequest

_GREETING_BYTES = 64
_GONE_S = 30.0


@dataclass(frozen=True)
class Placement:
    """What one attempt takes from the cluster.

    Attributes:
        cpus: cores; a fraction lets many attempts share one, they mostly wait for the model.
        memory_mb: memory, 0 to ask for none.
        resources: custom resources of nodes, e.g. ``{"sandbox": 1}``.
    """

    cpus: float = 0.1
    memory_mb: int = 0
    resources: Mapping[str, float] = field(default_factory=dict)

    def options(self) -> dict[str, Any]:
        """As a Ray task's ``options`` take them."""
        placed: dict[str, Any] = {"num_cpus": self.cpus}
        if self.memory_mb:
            placed["memory"] = self.memory_mb << 20
        if self.resources:
            placed["resources"] = dict(self.resources)
        return placed


@dataclass
class _Task:
    reference: Any
    word: str
    deadline_at: float
    why: str = "exit"


class RayLauncher:
    """Attempts as Ray tasks; implements ``Launcher``. Where the process has no Ray yet, one is started and ended again.

    Args:
        recipe: of the workplace, made anew in every worker.
        placement: of each attempt.
    """

    def __init__(self, recipe: WorkplaceRecipe, placement: Callable[[TrialRequest], Placement]) -> None:
        try:
            import ray
        except ImportError as error:
            raise EnvironmentMissing("executor ray needs Ray: pip install 'journeyman[scale]'") from error
        self._ray, self._recipe, self._placement = ray, recipe, placement
        self._is_own = not ray.is_initialized()
        if self._is_own:
            ray.init(include_dashboard=False, log_to_driver=False)
        self._listener = socket.create_server(("", 0), backlog=1024)
        self._listener.setblocking(False)
        self._address = (ray.util.get_node_ip_address(), self._listener.getsockname()[1])
        self._remote = ray.remote(max_retries=0, max_calls=1)(attempt_task)
        self._tasks: dict[int, _Task] = {}
        self._exited: deque[Exit] = deque()

    def start(self, number: int, ticket: Ticket) -> None:
        """See ``Launcher.start``."""
        word = secrets.token_hex(16)
        options = self._placement(ticket.request).options()
        told = pickle.dumps((number, word, self._address, ticket, self._recipe))
        reference = self._remote.options(**options).remote(told)
        self._tasks[number] = _Task(reference, word, time.monotonic() + ticket.whole_s)

    def kill(self, number: int) -> None:
        """See ``Launcher.kill``."""
        if number in self._tasks:
            self._cancel(self._tasks[number], "killed")

    def arrivals(self) -> list[tuple[int, socket.socket]]:
        """See ``Launcher.arrivals``. The wall clock of an attempt begins here, when Ray has found a place for it."""
        found: list[tuple[int, socket.socket]] = []
        while True:
            try:
                connection, _ = self._listener.accept()
            except (BlockingIOError, InterruptedError):
                return found
            number = self._greeted(connection)
            if number is None:
                connection.close()
            else:
                found.append((number, connection))

    def exits(self) -> list[Exit]:
        """See ``Launcher.exits``."""
        now = time.monotonic()
        for task in self._tasks.values():
            if now >= task.deadline_at and task.why == "exit":
                self._cancel(task, "deadline")
        references = {task.reference: number for number, task in self._tasks.items()}
        if references:
            done, _ = self._ray.wait(list(references), num_returns=len(references), timeout=0)
            for reference in done:
                number = references[reference]
                self._exited.append(Exit(number, self._tasks.pop(number).why, self._detail(reference)))
        found = list(self._exited)
        self._exited.clear()
        return found

    def wakers(self) -> list[socket.socket]:
        """See ``Launcher.wakers``."""
        return [self._listener]

    def close(self) -> None:
        """See ``Launcher.close``."""
        for task in self._tasks.values():
            self._cancel(task, "killed")
        references = [task.reference for task in self._tasks.values()]
        if references:
            self._ray.wait(references, num_returns=len(references), timeout=_GONE_S)
        self._tasks.clear()
        self._listener.close()
        if self._is_own:
            self._is_own = False
            self._ray.shutdown()

    def _greeted(self, connection: socket.socket) -> int | None:
        """Whose connection it is: the first bytes are number and word."""
        connection.settimeout(5.0)
        with contextlib.suppress(OSError, ValueError):
            greeting = connection.recv(_GREETING_BYTES, socket.MSG_WAITALL).decode()
            number, _, word = greeting.strip().partition(" ")
            task = self._tasks.get(int(number))
            if task is not None and hmac.compare_digest(word, task.word):
                return int(number)
        return None

    def _cancel(self, task: _Task, why: str) -> None:
        task.why = why
        self._ray.cancel(task.reference, force=True)

    def _detail(self, reference: Any) -> str:
        try:
            return f"status {self._ray.get(reference, timeout=5)}"
        except Exception as error:  # Ray's own types name what was lost: worker, node, memory, cancellation
            return type(error).__name__


def attempt_task(told: bytes) -> int:
    """One attempt in a Ray worker; returns its exit status."""
    number, word, address, ticket, recipe = pickle.loads(told)  # from the driver, through Ray
    workplace = recipe.make()
    connection = socket.create_connection(tuple(address), timeout=30.0)
    connection.sendall(f"{number} {word}".ljust(_GREETING_BYTES).encode())
    try:
        return run_attempt(connection, ticket, workplace)
    except LinkBroken:
        return 4
    finally:
        workplace.provider.reap(workplace.label)


class RayExecutor(ProcessExecutor):
    """``ProcessExecutor`` with attempts placed on a Ray cluster; a record's owner stays this process.

    Args:
        placement: what each attempt takes; the same for all by default.
        others: as ``ProcessExecutor``.
    """

    def __init__(
        self, *arguments: Any, placement: Callable[[TrialRequest], Placement] | None = None, **others: Any
    ) -> None:
        self._placement = placement or (lambda request: Placement())
        super().__init__(*arguments, **others)

    def _launcher(self, workplace: WorkplaceRecipe, supervisors: int, log: int | None) -> Launcher:
        return RayLauncher(workplace, self._placement)
