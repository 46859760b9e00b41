"""The life of one attempt, in its own process: start, act, QUIESCE, collect, report, stop.

Whatever escapes ends this attempt alone, in the row that its type has in the error table. Deliverables are read only
after every process of the agent is dead; grading happens elsewhere, in a sandbox that no agent ever was in.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Protocol

from journeyman.engines.protocol import TurnResult
from journeyman.errors import DeadlinePassed
from journeyman.harness.protocol import Loop
from journeyman.tasks.artifacts import Artifacts
from journeyman.tokens.context import Context
from journeyman.trials.answer import DELIVERABLE, answer_file
from journeyman.trials.collect import collect_files
from journeyman.trials.executors.protocol import Desk, Ended, Ticket, Workplace
from journeyman.trials.outcome import classify
from journeyman.trials.quiesce import quiesce

TIME = "limit.time"


class Model(Protocol):
    """Who samples the turns of one attempt."""

    def ask(self, append: Sequence[int], loop: Loop, limit_s: float) -> TurnResult | None:
        """The loop's next turn; None when none came within ``limit_s``, the working time that is left."""
        ...

    def abandon(self) -> TurnResult | None:
        """End the turn under way; what was sampled of it by then."""
        ...


class SetupDeadline(DeadlinePassed):
    """Tools and loop were not ready in time."""

    cause = "tool_host_failed"


class Life:
    """One attempt from its first phase to its report; ``close`` afterwards ends the sandbox.

    Args:
        workplace: makes the desk.
        ticket: which attempt.
        model: samples its turns.
    """

    def __init__(self, workplace: Workplace, ticket: Ticket, model: Model) -> None:
        self._workplace, self._ticket, self._model = workplace, ticket, model
        self._desk: Desk | None = None
        self._facts: dict[str, Any] = {"phases_s": {}}

    @property
    def context(self) -> Context | None:
        """The loop's context, None before there is a loop."""
        return self._desk.loop.context if self._desk is not None else None

    def run(self) -> Ended:
        """All phases up to the report; nothing is raised for what ends an attempt."""
        stop_reason, error, artifacts = "error", None, None
        try:
            with self._phase("start"):
                self._desk = self._workplace.open(self._ticket)
            with self._phase("act"):
                stop_reason = self._act(self._desk)
        except Exception as escaped:  # the boundary of one attempt: whatever escapes is attributed to it alone
            error = escaped
        try:
            artifacts = self._deliverables(error)
        except Exception as escaped:
            error = error or escaped
        desk = self._desk
        told = None if error is None else (type(error).__name__, str(error), classify(error).cause)
        self._facts |= desk.notes() if desk is not None else {}
        return Ended(
            "error" if error is not None else stop_reason,
            desk.loop.answer if desk is not None else None,
            artifacts,
            [turn.record() for turn in desk.loop.turns] if desk is not None else [],
            told,
            self._facts,
        )

    def close(self) -> str:
        """End tools and sandbox, bounded; what could not be removed, in words, for the supervisor to reap.

        Never raises.
        """
        if self._desk is None:
            return ""
        left = ""
        try:
            if self._desk.tools is not None:
                self._desk.tools.close()
        except Exception as error:
            left = str(error)
        try:
            if self._desk.sandbox is not None:
                self._desk.sandbox.destroy(deadline_s=self._ticket.limits.stop_s)
        except Exception as error:
            left = str(error)
        return left

    def _act(self, desk: Desk) -> str:
        task, limits, loop = self._ticket.request.task, self._ticket.limits, desk.loop
        started = time.monotonic()
        append: list[int] | None = loop.open(task.instruction, task.inputs)
        if loop.stop_reason is None and time.monotonic() - started > limits.setup_s:  # else it acted: a solution, say
            raise SetupDeadline("set-up of a trial", limits.setup_s)
        budget_s = limits.agent(task.agent_timeout_s)
        while append is not None and loop.stop_reason is None:
            left = budget_s - (time.monotonic() - started)
            if left <= 0:
                return TIME
            result = self._model.ask(append, loop, left)
            if result is None:
                cut = self._model.abandon()
                if cut is not None and cut.ids:
                    loop.context.append_sampled(cut.ids, cut.logprobs, cut.version)
                return TIME
            append = loop.respond(result)
        return str(loop.stop_reason or "error")

    def _deliverables(self, error: Exception | None) -> Artifacts | None:
        """QUIESCE, then what was delivered; nothing where the table says that nothing is graded."""
        desk, limits = self._desk, self._ticket.limits
        if desk is None or (error is not None and not classify(error).grade):
            return None
        found: dict[str, bytes] = {}
        if desk.sandbox is not None:
            with self._phase("quiesce"):
                self._facts["quiesce_killed"] = quiesce(
                    desk.sandbox, limits.quiesce_s, provider=desk.provider, serves_frames=desk.serves_frames
                )
            if desk.logs and not desk.serves_frames:
                with self._phase("collect"):
                    found |= collect_files(desk.sandbox, desk.logs, limits.collect_s, limits.transfer_s)
        found |= desk.collect(self._ticket)
        if desk.loop.answer is not None:
            found[DELIVERABLE] = answer_file(desk.loop.answer)
        return found or None

    def _phase(self, name: str) -> _Phase:
        return _Phase(name, self._facts["phases_s"])


class _Phase:
    """Notes how long its block took."""

    def __init__(self, name: str, into: dict[str, float]) -> None:
        self._name, self._into = name, into

    def __enter__(self) -> None:
        self._started = time.monotonic()

    def __exit__(self, *about: object) -> None:
        self._into[self._name] = round(time.monotonic() - self._started, 4)
