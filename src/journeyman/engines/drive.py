"""Whole conversations on top of ``submit`` and ``step``: the same two drivers for every engine."""

from __future__ import annotations

from collections.abc import Sequence

from journeyman.deadline import Deadline
from journeyman.engines.checks import check_asked_for, check_distinct, check_same_trial
from journeyman.engines.errors import EngineError
from journeyman.engines.protocol import Engine, Respond, TurnRequest, TurnResult

STEP_S = 60.0
"""What one step of a remote engine may wait for before the driver looks at its own deadline again."""


def converse(engine: Engine, requests: Sequence[TurnRequest], respond: Respond, *, idle_s: float = 600.0) -> None:
    """Drive trials to their ends; each is released when ``respond`` has no next request for it.

    Args:
        idle_s: seconds in which at least one turn must end.

    Raises:
        EngineError: a request or an answer makes no sense. DeadlinePassed: nothing ended for ``idle_s``. Whatever
            escapes, every trial of this call is released before.
    """
    check_distinct(requests)
    under_way = {request.trial for request in requests}
    try:
        for request in requests:
            engine.submit(request)
        deadline = Deadline.after(idle_s, "a turn of a conversation")
        while under_way:
            ended = _step(engine, deadline)
            for result in ended:
                check_asked_for(result, under_way)
                following = respond(result)
                if following is None:
                    under_way.discard(result.trial)
                    engine.release(result.trial)
                else:
                    check_same_trial(result, following)
                    engine.submit(following)
            if ended:
                deadline = Deadline.after(idle_s, "a turn of a conversation")
    except BaseException:
        release_all(engine, requests)
        raise


def generate(engine: Engine, requests: Sequence[TurnRequest], *, idle_s: float = 600.0) -> list[TurnResult]:
    """One turn for each request, in the order of the requests; the trials stay with the engine.

    Raises:
        As ``converse``.
    """
    check_distinct(requests)
    results: dict[str, TurnResult] = {}
    try:
        for request in requests:
            engine.submit(request)
        asked_for = {request.trial for request in requests}
        deadline = Deadline.after(idle_s, "a turn")
        while len(results) < len(requests):
            ended = _step(engine, deadline)
            for result in ended:
                check_asked_for(result, asked_for)
                results[result.trial] = result
            if ended:
                deadline = Deadline.after(idle_s, "a turn")
        return [results[request.trial] for request in requests]
    except BaseException:
        release_all(engine, requests)
        raise


def _step(engine: Engine, deadline: Deadline) -> list[TurnResult]:
    if engine.paused:
        raise EngineError("the engine is paused: resume it before it is asked for turns")
    deadline.check()
    return engine.step(min(STEP_S, max(deadline.remaining_s, 0.001)))


def release_all(engine: Engine, requests: Sequence[TurnRequest]) -> None:
    """Release the trial of every request."""
    for request in requests:
        engine.release(request.trial)
