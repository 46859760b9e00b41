"""The engine: trials live here, turns are sampled by vLLM servers, and weights reach all of them or none."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from journeyman.clock import Stopwatch
from journeyman.deadline import Deadline
from journeyman.engines import drive
from journeyman.engines.checks import check_open, check_request
from journeyman.engines.errors import EngineError
from journeyman.engines.protocol import KvMode, KvUsage, PauseMode, Respond, TurnRequest, TurnResult, WeightSource
from journeyman.engines.vllm.fleet import Fleet
from journeyman.engines.vllm.flights import Balance, Flight, Trial, fly, result_of
from journeyman.engines.vllm.ledger import Push, usage_of
from journeyman.engines.vllm.proof import TOLERANCE, Prove
from journeyman.engines.vllm.replica import CONTROL_S
from journeyman.errors import InputError

ABORT_AGAIN_S = 0.02
LATE_S = 1.0
"""Seconds after a pause(abort) in which aborted turns come back; one that does not had not reached the server yet."""
Prefix = Literal["fresh", "keep"]


class VllmEngine:
    """Any recent vLLM behind HTTP, one server or several.

    Args:
        urls: addresses of servers that serve the same model.
        push_dir: folder that this process and every server see, for pushed weights; None: a temporary one.
        version: of the weights that the servers were started with.
        prefix: whether a trial's next turn reuses keys and values computed by older weights: ``fresh`` never (each
            version has a cache of its own), ``keep`` always, which shows as a gap against a full forward.
        dtype: of the servers' weights, a torch name.
        prove: computes the trainer's logprobs of given ids under the weights pushed; with it every push is proved.
        tolerance: mean logprob difference allowed in that proof; None: by dtype.
        turn_s: seconds one turn may take, its wait in the server's queue included.
        connect_s: seconds in which every server must answer at the start.
        max_len: tokens of context of a trial; None: what the servers allow.
        api_key: sent as a bearer token.

    Raises:
        EnvironmentMissing: a server does not answer, or lacks what generation needs; says what to do.
    """

    def __init__(
        self,
        urls: Sequence[str],
        *,
        push_dir: Path | None = None,
        version: int = 0,
        prefix: Prefix = "fresh",
        dtype: str = "float32",
        prove: Prove | None = None,
        tolerance: float | None = None,
        turn_s: float = 600.0,
        connect_s: float = 30.0,
        max_len: int | None = None,
        api_key: str | None = None,
    ) -> None:
        if not urls:
            raise InputError("urls", "names no vLLM server")
        if dtype not in TOLERANCE:
            raise InputError("dtype", f"is {dtype!r}", allowed=", ".join(TOLERANCE))
        self._fleet = Fleet(urls, push_dir=push_dir, dtype=dtype, prove=prove, tolerance=tolerance, api_key=api_key)
        self._version, self._prefix, self._turn_s = version, prefix, turn_s
        self._balance = Balance(self._fleet.replicas)
        self._trials: dict[str, Trial] = {}
        self._flights: dict[str, Flight] = {}
        self._landed: queue.SimpleQueue[Flight] = queue.SimpleQueue()
        self._ended: deque[TurnResult] = deque()
        self._paused = self._closed = False
        try:
            self._fleet.connect(version, connect_s)
        except BaseException:
            self.close()
            raise
        self._max_len = min(self._fleet.max_len, max_len or self._fleet.max_len)

    @property
    def capabilities(self) -> frozenset[str]:
        return self._fleet.capabilities

    @property
    def pushes(self) -> list[Push]:
        """Every push so far: its seconds, its proof, and the context that it made turns compute again."""
        return list(self._fleet.ledger.pushes)

    @property
    def version(self) -> int:
        return self._version

    @property
    def max_len(self) -> int:
        return self._max_len

    @property
    def paused(self) -> bool:
        return self._paused

    def submit(self, request: TurnRequest) -> None:
        check_open(self._closed, "submit")
        trial = self._trials.get(request.trial) or Trial()
        check_request(
            request,
            context=len(trial.ids),
            max_len=self._max_len,
            under_way=request.trial in self._flights,
            resumable=trial.aborted,
            capabilities=self.capabilities,
        )
        trial.ids += request.append
        self._trials[request.trial] = trial
        flight = self._flights[request.trial] = Flight(request, list(trial.ids), trial.routed)
        if not self._paused:
            self._send(flight)

    def _send(self, flight: Flight) -> None:
        """Off it goes; ``fresh`` salts the server's prefix cache with the version."""
        flight.version = self._version
        salt = f"v{self._version}" if self._prefix == "fresh" else None
        flight.answer = self._fleet.loop.start(fly(flight, self._balance, salt, self._turn_s))
        flight.answer.add_done_callback(lambda _: self._landed.put(flight))

    def step(self, deadline_s: float = 60.0) -> list[TurnResult]:
        check_open(self._closed, "step")
        failure = self._collect(0.0 if self._paused or self._ended else deadline_s)
        if failure is not None:
            raise failure
        return self._take_ended()

    def _take_ended(self) -> list[TurnResult]:
        ended = list(self._ended)
        self._ended.clear()
        return ended

    def _collect(self, wait_s: float) -> EngineError | None:
        """Take in what has landed, in the order of submission; the first failure is returned, the rest is kept."""
        landed: list[Flight] = []
        until = time.monotonic() + wait_s
        try:
            while True:
                is_waiting = not landed and any(flight.answer for flight in self._flights.values())
                left_s = until - time.monotonic() if is_waiting else 0.0
                flight = self._landed.get(timeout=left_s) if left_s > 0 else self._landed.get_nowait()
                if self._flights.get(flight.request.trial) is flight:  # else it was cancelled or released meanwhile
                    landed.append(flight)
        except queue.Empty:
            pass
        failure: EngineError | None = None
        for flight in sorted(landed, key=lambda flight: flight.number):
            try:
                self._ended.append(self._settle(flight))
            except EngineError as error:
                failure = failure or error
        return failure

    def _settle(self, flight: Flight) -> TurnResult:
        """End a turn that has landed: its tokens become part of the trial."""
        name = flight.request.trial
        del self._flights[name]
        if flight.answer is None or flight.answer.cancelled():
            raise EngineError(f"the turn of trial {name!r} was cut off")
        answer = flight.answer.result()
        result = result_of(flight, answer)
        trial = self._trials[name]
        self._account(trial, flight, result, answer.cached)
        trial.ids += result.ids
        if result.routed_experts is not None:
            trial.routed = len(trial.ids) - 1
        trial.aborted = result.finish == "abort"
        return result

    def _account(self, trial: Trial, flight: Flight, result: TurnResult, cached: int | None) -> None:
        """What a push or a change of servers made the server compute again."""
        if result.spans and result.spans[0].version != flight.version:
            self._fleet.ledger.late()
        is_new_salt = self._prefix == "fresh" and trial.cached_version not in (None, flight.version)
        if is_new_salt or (trial.replica is not None and trial.replica is not flight.replica):
            self._fleet.ledger.reprefilled(max(0, trial.cached - (cached or 0)))
        trial.replica, trial.cached_version = flight.replica, flight.version
        trial.cached = len(flight.prompt) + len(result.ids)

    def cancel(self, trial: str) -> TurnResult | None:
        flight = self._flights.get(trial)
        if flight is None:
            return None
        if flight.answer is not None and not flight.answer.done():
            self._abort([flight], CONTROL_S)
        if flight.answer is None or flight.answer.cancelled():
            del self._flights[trial]
            self._trials[trial].aborted = True
            return TurnResult(trial, [], np.zeros(0, np.float32), "abort", self._version)
        return self._settle(flight)

    def _abort(self, flights: Sequence[Flight], deadline_s: float) -> None:
        """Ask the servers to end turns with what they have; those that do not are cut off."""

        async def abort(flight: Flight) -> None:
            while flight.answer is not None and not flight.answer.done():
                if flight.replica is not None:  # again and again: the first may overtake the turn it is meant for
                    await flight.replica.abort(flight.request_id, deadline_s)
                await asyncio.sleep(ABORT_AGAIN_S)

        deadline = Deadline.after(deadline_s, "ending turns")
        for flight, done in [(flight, self._fleet.loop.start(abort(flight))) for flight in flights]:
            try:
                done.result(deadline.remaining_s)
            except (TimeoutError, EngineError):
                done.cancel()
                if flight.answer is not None:
                    flight.answer.cancel()

    def pause(self, mode: PauseMode, *, deadline_s: float = 60.0) -> list[TurnResult]:
        if not self._paused or mode == "abort":
            self._pause(mode, "keep", Deadline.after(deadline_s, f"pause({mode})"))
        failure = self._collect(0.0)
        if failure is not None:
            raise failure
        return [] if mode == "keep" else self._take_ended()

    def _pause(self, mode: PauseMode, kv: KvMode, deadline: Deadline) -> None:
        """``wait`` lets turns end before the servers pause: one that reached a paused server would rest there."""
        self._fleet.check_updatable()
        in_the_air = [flight for flight in self._flights.values() if flight.answer is not None]
        if mode == "wait":
            late = [flight for flight in in_the_air if not flight.lands_within(deadline.remaining_s)]
            self._abort(late, max(0.1, deadline.remaining_s))
        self._fleet.pause("keep" if mode == "wait" else mode, kv, max(0.1, deadline.remaining_s))
        self._paused = True
        if mode != "abort":
            return
        for flight in in_the_air:
            if not flight.lands_within(min(LATE_S, deadline.remaining_s)):
                self._abort([flight], max(0.1, deadline.remaining_s))  # it reached the server after the pause

    def resume(self) -> None:
        if not self._paused:
            return
        self._go_on()
        self._fleet.look()

    def _go_on(self) -> None:
        self._fleet.resume()
        self._paused = False
        for flight in [flight for flight in self._flights.values() if flight.answer is None]:
            self._send(flight)

    def update_weights(
        self, source: WeightSource, version: int, *, kv: KvMode | None = None, deadline_s: float = 60.0
    ) -> None:
        if version < self._version:
            raise EngineError(f"version {version} is lower than {self._version}, which is serving")
        self._fleet.check_updatable()
        deadline = Deadline.after(deadline_s, f"the push of version {version}")
        file, write_s = self._fleet.write(source, version)
        was_paused, kv, watch = self._paused, kv or "keep", Stopwatch()
        if not was_paused:  # without spans no turn may see two versions
            self._pause("keep" if self._fleet.has_spans else "wait", kv, deadline)
        elif kv == "recompute":
            self._fleet.pause("keep", kv, max(0.1, deadline.remaining_s))
        try:
            load_s = self._fleet.load(source, file, deadline)
            self._version = version
        except BaseException:
            if not was_paused:
                self.resume()
            raise
        self._fleet.account(file, kv, write_s, load_s)
        if not was_paused:
            self._go_on()
            self._fleet.ledger.paused(watch.elapsed_s)
            self._fleet.look()

    def usage(self) -> KvUsage:
        """As the servers count; ``tokens`` is what trials left in their caches, as far as nothing displaced it."""
        held = sum(trial.cached for trial in self._trials.values())
        return usage_of(self._fleet.metrics(), held)

    def converse(self, requests: Sequence[TurnRequest], respond: Respond) -> None:
        drive.converse(self, requests, respond)

    def generate(self, requests: Sequence[TurnRequest]) -> list[TurnResult]:
        return drive.generate(self, requests)

    def release(self, trial: str) -> None:
        flight = self._flights.pop(trial, None)
        if flight is not None and flight.answer is not None:
            flight.answer.cancel()  # the connection closes, which ends the request on the server
        self._trials.pop(trial, None)
        self._balance.forget(trial)
        self._ended = deque(result for result in self._ended if result.trial != trial)

    def close(self) -> None:
        self._closed = True
        for flight in self._flights.values():
            if flight.answer is not None:
                flight.answer.cancel()
        self._flights.clear()
        self._trials.clear()
        self._ended.clear()
        if self._fleet.loop.is_running:
            if self._paused:
                with contextlib.suppress(EngineError):
                    self._fleet.resume()  # a server found paused counts as one whose push was broken off
            self._fleet.ledger.settle(self._fleet.metrics())
        self._fleet.close()
