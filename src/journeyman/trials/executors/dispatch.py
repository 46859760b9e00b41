"""The owner's loop, the same for every launcher: start attempts, serve turns, note ends, retry by the table.

It runs in the thread that owns the engine. A slot is free again when the process of its attempt is gone, and an attempt
counts once: by its report, or by what its supervisor saw.
"""

from __future__ import annotations

import pickle
import selectors
import socket
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from journeyman.engines.protocol import Engine, Sampling, TurnRequest, TurnResult
from journeyman.errors import SystemFault
from journeyman.seeds import key64
from journeyman.tasks.grading import PORTION
from journeyman.trials.executors.attempts import Attempt, open_hot
from journeyman.trials.executors.closing import Closer, Closing
from journeyman.trials.executors.protocol import Exit, Launcher, Ticket
from journeyman.trials.executors.turns import Failed, Turns
from journeyman.trials.executors.wire import LinkBroken, Message, packed
from journeyman.trials.limits import Limits
from journeyman.trials.outcome import classify
from journeyman.trials.record import Trial, TrialRequest
from journeyman.trials.retrying import Retry, next_retry

TICK_S = 0.2
"""Longest wait for a message; what has no socket of its own (deadlines, a cancel) is looked at that often."""


SEND_S = 10.0
"""An attempt takes its turn within this, or its connection ends."""

BURST = 8
"""Attempts started before messages are looked at again."""


@dataclass
class Job:
    """One request and what became of it.

    Attributes:
        request: what to attempt.
        first: number of its next attempt; above 1 when a run is resumed.
        tries: attempts it may still have.
        ended: its attempts of this run, in order.
        retry: why its next attempt follows another one, or None; ``ready_at`` is the instant before which that does not
            start, on ``time.monotonic``.
        since: instant at which its first attempt had its row.
    """

    request: TrialRequest
    first: int = 1
    tries: int = 2
    ended: list[Trial] = field(default_factory=list)
    retry: Retry | None = None
    ready_at: float = 0.0
    since: float = 0.0


class Dispatch:
    """One batch of requests on one engine and one launcher.

    Args:
        engine: decodes all turns together.
        launcher: starts attempts.
        closer: grades and stores them.
        seed: root of the sampling noise.
        limits: of every attempt.
        concurrency: attempts alive at once.
        root: the run directory; None stores nothing.
        is_cancelled: asked often; once true, running attempts are killed and nothing new starts.
        on_closed: told every attempt that has its row.
    """

    def __init__(
        self,
        engine: Engine,
        launcher: Launcher,
        closer: Closer,
        *,
        seed: int,
        limits: Limits,
        concurrency: int,
        root: Path | None = None,
        is_cancelled: Callable[[], bool] = lambda: False,
        on_closed: Callable[[Trial], None] = lambda trial: None,
    ) -> None:
        self._turns = Turns(engine, limits.model_s)
        self._launcher, self._closer = launcher, closer
        self._seed, self._limits, self._concurrency, self._root = seed, limits, concurrency, root
        self._is_cancelled, self._on_closed = is_cancelled, on_closed
        self._running: dict[int, Attempt] = {}
        self._by_trial: dict[str, Attempt] = {}
        self._jobs: dict[str, Job] = {}
        self._waiting: deque[Job] = deque()
        self._resting: list[Job] = []  # their next attempt is not to start yet
        self._selector = selectors.DefaultSelector()
        self._selector.register(closer.bell, selectors.EVENT_READ, None)
        self._wakers: set[socket.socket] = set()
        self._numbers = 0
        self._is_rung = True  # something other than an attempt's message may have come
        self._looked_at = 0.0

    def run(self, jobs: Sequence[Job]) -> None:
        """Until every job has ended; each gets its attempts in ``Job.ended``."""
        self._jobs = {job.request.trial_id: job for job in jobs}
        self._waiting = deque(job for job in jobs if job.tries > 0)
        try:
            while self._running or not self._closer.is_idle or (self._has_jobs() and not self._is_cancelled()):
                self._round()
        finally:
            for attempt in tuple(self._running.values()):
                self._hang_up(attempt)
            self._selector.close()

    def _round(self) -> None:
        cancelled = self._is_cancelled()
        if cancelled:
            for attempt in self._running.values():
                self._end(attempt, KeyboardInterrupt("the operator stopped the run"))
        if self._resting:
            self._wake()
        has_started = False
        for _ in range(BURST):
            if self._waiting and not cancelled and self._has_room():
                self._start(self._waiting.popleft())
                has_started = True  # to hand it over, the launcher may have heard of ends
        if self._is_rung or has_started:
            self._greet()
        self._is_rung = cancelled or has_started
        for key, _ in self._selector.select(self._patience_s(cancelled)):
            if key.data is not None:
                self._hear(key.data)
            else:
                self._is_rung = True
        if self._turns.any:
            for ended in self._turns.step():
                self._answer(ended)
        self._look()

    def _look(self) -> None:
        """At the ends of attempts and at closed records: when a bell rang, and once in a tick."""
        now = time.monotonic()
        if self._is_rung or now >= self._looked_at + TICK_S:
            self._looked_at, self._is_rung = now, True
            for exit_ in self._launcher.exits():
                self._exited(exit_)
        if self._is_rung or self._closer.is_due:
            for trial in self._closer.take():
                self._closed(trial)

    def _patience_s(self, cancelled: bool) -> float:
        """How long to wait for a message: not at all while there is something else to do."""
        if self._turns.any or (self._waiting and self._has_room() and not cancelled):
            return 0.0
        return min([TICK_S, *(max(0.0, job.ready_at - time.monotonic()) for job in self._resting)])

    def _has_jobs(self) -> bool:
        return bool(self._waiting or self._resting)

    def _wake(self) -> None:
        """Jobs whose wait is over may start."""
        now = time.monotonic()
        for job in [job for job in self._resting if job.ready_at <= now]:
            self._resting.remove(job)
            self._waiting.append(job)

    def _has_room(self) -> bool:
        """A slot is free, and grading keeps up: what is not closed is lost when this process is killed."""
        return len(self._running) < self._concurrency and self._closer.backlog < 2 * PORTION

    def _start(self, job: Job) -> None:
        self._numbers += 1
        number = self._numbers
        ticket = Ticket(job.request, job.first + len(job.ended), self._limits, job.retry)
        attempt = Attempt(number, ticket, open_hot(self._root, ticket))
        self._running[number] = self._by_trial[attempt.trial_id] = attempt
        try:
            self._launcher.start(number, ticket)
        except SystemFault as error:
            attempt.error = error
            self._exited(Exit(number, "lost", "it was never started"))

    def _greet(self) -> None:
        """Listen to attempts that arrived, and to whatever wakes the launcher."""
        for number, connection in self._launcher.arrivals():
            attempt = self._running.get(number)
            if attempt is None:
                connection.close()
                continue
            connection.setblocking(False)
            attempt.connection = connection
            self._selector.register(connection, selectors.EVENT_READ, attempt)
        wakers = set(self._launcher.wakers())
        for old in self._wakers - wakers:
            self._selector.unregister(old)
        for new in wakers - self._wakers:
            self._selector.register(new, selectors.EVENT_READ, None)
        self._wakers = wakers

    def _hear(self, attempt: Attempt) -> None:
        connection = attempt.connection
        if connection is None:
            return
        try:
            data = connection.recv(1 << 20)
            if not data:
                self._hang_up(attempt)
                return
            for message in attempt.parser.feed(data):
                self._obey(attempt, message)
        except BlockingIOError:
            return
        except OSError:
            self._hang_up(attempt)
        except Exception as error:  # what one attempt says, or its own record, ends this attempt alone
            self._end(attempt, error)

    def _obey(self, attempt: Attempt, message: Message) -> None:
        kind = message.head.get("kind")
        if kind == "turn":
            attempt.tell(message.blobs, message.head.get("segments"))
            if message.head.get("anew"):
                self._turns.release(attempt.trial_id)  # its context was edited: the ids are all of it
                attempt.begin_anew()
            failed = self._turns.submit(self._turn_request(attempt, message.head))
            if failed is not None:
                self._answer(failed)
        elif kind == "abandon":
            cut = self._turns.abandon(attempt.trial_id)
            self._send(attempt, {"kind": "nothing"} if cut is None else {"kind": "turn"}, cut)
        elif kind == "ended":
            attempt.tell(message.blobs, message.head.get("segments"))
            attempt.report = message
            self._turns.release(attempt.trial_id)
        else:
            raise LinkBroken(f"a message of kind {kind!r}")

    def _turn_request(self, attempt: Attempt, head: dict[str, Any]) -> TurnRequest:
        request, ticket = attempt.ticket.request, attempt.ticket
        key = key64(self._seed, *request.stream, ticket.attempt, attempt.turns_asked)
        attempt.turns_asked += 1
        stop = frozenset(int(token) for token in head["stop_ids"])
        routed = "routed_experts" in self._turns.engine.capabilities
        sampling = Sampling(int(head["max_new_tokens"]), request.temperature, stop, routed_experts=routed)
        return TurnRequest(attempt.trial_id, [int(token) for token in head["append"]], key, sampling)

    def _answer(self, ended: TurnResult | Failed) -> None:
        attempt = self._by_trial.get(ended.trial)
        if attempt is None:
            return
        if isinstance(ended, TurnResult):
            self._send(attempt, {"kind": "turn"}, ended)
            return
        cause = classify(ended.error).cause
        fault = {"kind": "fault", "type": type(ended.error).__name__, "message": str(ended.error), "cause": cause}
        self._send(attempt, fault, None)

    def _send(self, attempt: Attempt, head: dict[str, Any], result: TurnResult | None) -> None:
        if attempt.connection is None:
            return
        try:
            kept = [pickle.dumps(attempt.keep_experts(result), 5)] if result is not None else []
            _send_all(attempt.connection, packed(head, kept))
        except OSError:
            self._hang_up(attempt)

    def _end(self, attempt: Attempt, error: BaseException) -> None:
        """Kill an attempt for a reason of the owner's; its exit follows."""
        if attempt.error is None and attempt.report is None:
            attempt.error = error  # type: ignore[assignment]
            self._turns.release(attempt.trial_id)
            self._launcher.kill(attempt.number)
            self._hang_up(attempt)

    def _hang_up(self, attempt: Attempt) -> None:
        if attempt.connection is not None:
            self._selector.unregister(attempt.connection)
            attempt.connection.close()
            attempt.connection = None

    def _exited(self, exit_: Exit) -> None:
        attempt = self._running.get(exit_.number)
        if attempt is None:
            return
        while attempt.connection is not None and attempt.report is None and attempt.error is None:
            self._hear(attempt)  # what it said before it ended is still to be read
            if attempt.connection is not None and not _readable(attempt.connection):
                break
        del self._running[exit_.number]
        del self._by_trial[attempt.trial_id]
        self._turns.release(attempt.trial_id)
        self._hang_up(attempt)
        attempt.flush()
        facts = dict(attempt.report.head.get("facts") or {}) if attempt.report is not None else {}
        facts["exit"] = f"{exit_.why}: {exit_.detail}"
        self._closer.add(Closing(attempt.trial(exit_), attempt.fault(exit_), attempt.hot, facts))

    def _closed(self, trial: Trial) -> None:
        job = self._jobs[trial.request.trial_id]
        now = time.monotonic()
        job.since = job.since if job.ended else now
        job.ended.append(trial)
        job.tries -= 1
        self._on_closed(trial)
        if job.tries > 0 and not self._is_cancelled():
            job.retry = next_retry(trial, self._seed, now - job.since, self._limits.retry_s)
            if job.retry is not None:
                job.ready_at = now + job.retry.wait_s
                self._resting.append(job)


def _send_all(connection: socket.socket, data: bytes) -> None:
    """Write to a socket that does not block; what it has no room for now waits up to ``SEND_S``. Raises OSError."""
    try:
        sent = connection.send(data)
    except BlockingIOError:
        sent = 0
    if sent < len(data):
        connection.settimeout(SEND_S)
        connection.sendall(memoryview(data)[sent:])
        connection.setblocking(False)


def _readable(connection: socket.socket) -> bool:
    with selectors.DefaultSelector() as one:
        one.register(connection, selectors.EVENT_READ)
        return bool(one.select(0))
