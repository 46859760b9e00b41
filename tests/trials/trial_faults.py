"""Injected faults, seeded: a workplace, an engine and a grader that break on purpose, and rarely in the same way."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Sequence
from typing import Any, ClassVar

from journeyman.engines.errors import EngineError
from journeyman.engines.protocol import TurnRequest, TurnResult
from journeyman.engines.scripted import ScriptedEngine
from journeyman.errors import SystemFault
from journeyman.sandbox.errors import SandboxStartFailed
from journeyman.seeds import key64
from journeyman.tasks.errors import VerifierCrashed
from journeyman.tasks.grading import GradeItem
from journeyman.tasks.verdict import Verdict, verifier_error
from journeyman.tasks.verify import BatchVerifier
from journeyman.trials.executors.protocol import Desk, Ticket
from journeyman.trials.executors.workplaces import TaskPlace

FAULTS = ("start", "tool", "lost", "exit", "crash", "daemon", "hang", "engine")
"""What can be injected into an attempt; ``daemon`` leaves processes behind and breaks nothing."""
CAUSES = {
    "start": "sandbox_failed",
    "tool": "tool_host_failed",
    "lost": "sandbox_failed",
    "exit": "trial_lost",
    "crash": "unclassified",
    "daemon": "none",
    "hang": "deadline_passed",
    "engine": "engine_failed",
}


class ToolHostGone(SystemFault):
    """Injected."""

    cause: ClassVar[str] = "tool_host_failed"


def fault_of(seed: int, trial_id: str, attempt: int, rate: float, kinds: Sequence[str] = FAULTS) -> str | None:
    """The fault of an attempt, the same in every process."""
    rng = random.Random(key64(seed, "fault", trial_id, attempt))
    return rng.choice(list(kinds)) if rng.random() < rate else None


class FaultyPlace(TaskPlace):
    """``TaskPlace`` whose attempts break as ``fault_of`` says."""

    def __init__(self, *, fault_seed: int, rate: float, kinds: Sequence[str] = FAULTS, **arguments: Any) -> None:
        self._fault_seed, self._rate, self._kinds = fault_seed, rate, tuple(kinds)
        super().__init__(**arguments)

    def open(self, ticket: Ticket) -> Desk:
        fault = fault_of(self._fault_seed, ticket.request.trial_id, ticket.attempt, self._rate, self._kinds)
        if fault == "start":
            raise SandboxStartFailed(self.label, "injected")
        desk = super().open(ticket)
        if fault is not None:
            _break(desk, fault)
        return desk


def _break(desk: Desk, fault: str) -> None:
    respond = desk.loop.respond

    def broken(result: TurnResult) -> list[int] | None:
        sandbox = desk.sandbox
        if fault == "tool":
            raise ToolHostGone("injected")
        if fault == "crash":
            raise RuntimeError("injected")
        if fault == "exit":
            os._exit(9)
        if fault == "hang":
            time.sleep(3600)
        if fault == "lost" and sandbox is not None:
            sandbox.destroy()
        if fault == "daemon" and sandbox is not None:
            sandbox.exec("setsid sleep 1000 & setsid sh -c 'while :; do sleep 1; done' &", deadline_s=10)
        return respond(result)

    desk.loop.respond = broken  # type: ignore[method-assign]


class FaultyEngine(ScriptedEngine):
    """A scripted engine that refuses turns of attempts whose fault is ``engine``.

    An engine does not see attempts; they are counted by first turns, as a resumed owner counts them anew.
    """

    def __init__(self, scripts: Any, *, fault_seed: int, rate: float, kinds: Sequence[str] = FAULTS) -> None:
        super().__init__(scripts)
        self._fault_seed, self._rate, self._kinds = fault_seed, rate, tuple(kinds)
        self._opened: dict[str, int] = {}

    def submit(self, request: TurnRequest) -> None:
        if request.trial not in self._length:
            self._opened[request.trial] = self._opened.get(request.trial, 0) + 1
            attempt = self._opened[request.trial]
            if fault_of(self._fault_seed, request.trial, attempt, self._rate, self._kinds) == "engine":
                raise EngineError("injected")
        super().submit(request)


class FaultyGrader:
    """A batch verifier that breaks for a share of what it is asked, once per trial."""

    def __init__(self, inner: BatchVerifier, *, fault_seed: int, rate: float) -> None:
        self._inner, self._rng, self._rate = inner, random.Random(fault_seed), rate
        self._broken: set[str] = set()

    def grade(self, items: Sequence[GradeItem]) -> list[Verdict]:
        verdicts = self._inner.grade(items)
        return [self._maybe(item, verdict) for item, verdict in zip(items, verdicts, strict=True)]

    def _maybe(self, item: GradeItem, verdict: Verdict) -> Verdict:
        if item.trial_id in self._broken or self._rng.random() >= self._rate:
            return verdict
        self._broken.add(item.trial_id)
        return verifier_error(VerifierCrashed("injected"))


class AnsweringPlace(TaskPlace):
    """``TaskPlace`` whose attempts ask their sandbox's supervisor for a sign of life before they go on."""

    def open(self, ticket: Ticket) -> Desk:
        desk = super().open(ticket)
        respond = desk.loop.respond

        def asking(result: TurnResult) -> list[int] | None:
            assert desk.sandbox is not None
            if not desk.sandbox.alive(deadline_s=120):
                raise ToolHostGone("the supervisor of the sandbox does not answer")
            return respond(result)

        desk.loop.respond = asking  # type: ignore[method-assign]
        return desk
