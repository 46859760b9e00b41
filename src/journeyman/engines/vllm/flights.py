"""Turns under way: what the engine knows of a trial and of its request, which server has it, and how it ends."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from typing import Literal

from journeyman.engines.errors import EngineError
from journeyman.engines.experts import packed
from journeyman.engines.protocol import TurnRequest, TurnResult, WeightSpan
from journeyman.engines.vllm import wire
from journeyman.engines.vllm.replica import Replica, Unreachable
from journeyman.engines.vllm.wire import Answer

TRIES = 3
"""How often one turn is sent, each time to a living server."""
_numbers = itertools.count(1)


@dataclass
class Trial:
    """One conversation, whose tokens live here: the server is asked for one turn at a time.

    Attributes:
        ids: the whole context.
        replica: the server that has its prefix cached.
        cached_version: version whose cache salt its last turn had; None before the first.
        cached: tokens of context that turn left in the server's cache.
        aborted: the last turn was cut, so that the next may append nothing.
        routed: tokens of context whose experts are known.
    """

    ids: list[int] = field(default_factory=list)
    replica: Replica | None = None
    cached_version: int | None = None
    cached: int = 0
    aborted: bool = False
    routed: int = 0


@dataclass
class Flight:
    """One turn under way or waiting for ``resume``.

    Attributes:
        request: as submitted.
        prompt: ids sent, a copy.
        experts_from: first token of the context whose experts are asked for.
        number: order of submission.
        version: of the weights when it was sent; the salt of ``fresh``.
        answer: ends with what the server sampled; None while it is held back.
    """

    request: TurnRequest
    prompt: list[int]
    experts_from: int = 0
    number: int = field(default_factory=lambda: next(_numbers))
    version: int = 0
    replica: Replica | None = None
    answer: Future[Answer] | None = None
    sent: int = 0

    @property
    def request_id(self) -> str:
        """Name of the present try on the server."""
        return f"{self.number}-{self.sent}"

    def lands_within(self, limit_s: float) -> bool:
        """Wait until the answer is there, whatever it is."""
        if self.answer is None:
            return False
        done, _ = wait([self.answer], limit_s)
        return bool(done)


class Balance:
    """Which server a trial's turn goes to: the one it was on while that lives, else the least loaded."""

    def __init__(self, replicas: Sequence[Replica]) -> None:
        self.replicas = list(replicas)
        self._trials: dict[str, Replica] = {}

    def choose(self, trial: str) -> Replica:
        """The trial's server.

        Raises:
            EngineError: none is left.
        """
        known = self._trials.get(trial)
        if known is not None and known.alive and known.served is not None:
            return known
        able = [replica for replica in self.replicas if replica.alive and replica.served is not None]
        if not able:
            raise EngineError("no vLLM server is left that answers and serves the present weights")
        held = list(self._trials.values())
        found = min(able, key=lambda replica: (held.count(replica), self.replicas.index(replica)))
        self._trials[trial] = found
        return found

    def forget(self, trial: str) -> None:
        self._trials.pop(trial, None)


async def fly(flight: Flight, balance: Balance, salt: str | None, turn_s: float) -> Answer:
    """Send a turn until a server answers it; a server that fails is asked for its health first.

    Raises:
        EngineError: refused, or not answered in TRIES tries.
    """
    request = flight.request
    seed = wire.seed_of(request.key, request.offset)
    last: EngineError | None = None
    for _ in range(TRIES):
        try:
            flight.replica = balance.choose(request.trial)
        except EngineError as error:
            raise EngineError(f"{error}; the last: {last}" if last else str(error)) from last
        flight.sent += 1
        try:
            return await flight.replica.turn(
                flight.prompt,
                request.sampling,
                seed,
                salt,
                flight.request_id,
                turn_s,
                flight.version,
                flight.experts_from,
            )
        except Unreachable as error:
            last = error
            await flight.replica.healthy()
    raise EngineError(f"a turn of trial {request.trial!r} failed {TRIES} times; the last: {last}") from last


def result_of(flight: Flight, answer: Answer) -> TurnResult:
    """The turn in the words of the protocol. Where the route reports no version, no push overlaps a turn.

    Raises:
        EngineError: the server's spans do not cover its ids, or go back.
    """
    trial, ids = flight.request.trial, answer.ids
    finish: Literal["stop", "length", "abort"] = answer.finish
    if finish == "stop" and (not ids or ids[-1] not in flight.request.sampling.stop_ids):
        raise EngineError(f"trial {trial!r}: the server stopped a turn without one of its stop ids")
    spans = _merged(answer.spans)
    last = spans[-1].version if spans else flight.version
    try:
        return TurnResult(
            trial,
            ids,
            answer.logprobs,
            finish,
            last,
            spans,
            top_logprobs=answer.top_logprobs,
            routed_experts=_experts(flight, answer),
        )
    except ValueError as error:
        raise EngineError(str(error)) from error


def _merged(spans: tuple[WeightSpan, ...]) -> tuple[WeightSpan, ...]:
    """Neighbours of one version become one."""
    merged: list[WeightSpan] = []
    for span in spans:
        if merged and merged[-1].version == span.version and merged[-1].end == span.start:
            merged[-1] = WeightSpan(span.version, merged[-1].start, span.end)
        else:
            merged.append(span)
    return tuple(merged)


def _experts(flight: Flight, answer: Answer) -> bytes | None:
    """One row for every token of the context from ``experts_from`` on but the last, which was not fed.

    Raises:
        ValueError: other rows came, or none although something was sampled.
    """
    if not flight.request.sampling.routed_experts or not answer.ids:
        return None
    fed = len(flight.prompt) + len(answer.ids) - 1 - flight.experts_from
    rows = answer.routed_experts
    if rows is None or len(rows) != fed:
        found = "none" if rows is None else str(len(rows))
        raise ValueError(f"trial {flight.request.trial!r}: experts of {fed} tokens were asked for, {found} came")
    return packed(rows)
