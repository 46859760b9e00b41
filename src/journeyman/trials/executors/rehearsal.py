"""Attempts at no task, lived before the first fork, so that real ones find what they do in memory and already quick.

A forked process pays for each page that it is the first to write, and Python writes into its code while it learns how
that is used. What was learned before the fork is shared by every attempt.
"""

from __future__ import annotations

import pickle
import socket
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from journeyman.engines.protocol import TurnResult
from journeyman.errors import JourneymanError
from journeyman.harness.protocol import HARNESSES, LoopSampling, StopReason, TurnRecord
from journeyman.sandbox.protocol import Provider, Sandbox, SandboxSpec
from journeyman.tasks.task import Task, TaskDraft, load_task, write_task
from journeyman.tokens.context import Context
from journeyman.trials.executors.attempt import run_attempt
from journeyman.trials.executors.kept import bare, whole
from journeyman.trials.executors.protocol import Desk, Ticket
from journeyman.trials.executors.wire import Link, packed
from journeyman.trials.limits import Limits
from journeyman.trials.record import TrialRequest

TIMES = 10
"""Python adapts a function after some eight calls."""
CHEAP = frozenset({"bwrap"})
"""Providers whose sandboxes start within milliseconds."""
_LIMIT_S = 5.0
_LIMITS = Limits(**dict.fromkeys(("start_s", "setup_s", "agent_s", "model_s", "quiesce_s", "collect_s"), _LIMIT_S))
_STOP = 2


class _Loop:
    """Two turns: a command, then another one that leaves a file."""

    answer: str | None

    def __init__(self, sandbox: Sandbox, logs: str) -> None:
        self.context, self.answer, self.epoch = Context(), None, 0
        self.stop_reason: StopReason | None = None
        self.turns: list[TurnRecord] = []
        self.sampling = LoopSampling(8, frozenset({_STOP}))
        self._commands = ["echo one", f"echo >{logs}/none"]
        self._sandbox = sandbox

    def open(self, instruction: str, files: Sequence[str]) -> list[int]:
        ids = [1, 3, 4]
        self.context.append_prompt(ids)
        return ids

    def respond(self, result: TurnResult) -> list[int] | None:
        self.context.append_sampled(result.ids, result.logprobs, result.version)
        self._sandbox.exec(self._commands.pop(0), deadline_s=_LIMIT_S)
        if not self._commands:
            self.stop_reason, self.answer = "answered", "none"
            return None
        self.context.append_observation([6, 7])
        return [6, 7]


class Stage:
    """A workplace whose desks are real and whose loop is a script.

    Args:
        provider: of the attempts' sandboxes.
        label: owner of every sandbox.
        logs: directory above deliverables.
        spec_of: what a task's sandbox is.
    """

    def __init__(self, provider: Provider, label: str, logs: str, spec_of: Callable[[Task], SandboxSpec]) -> None:
        self.provider, self.label = provider, label
        self._logs, self._spec_of = logs, spec_of

    def open(self, ticket: Ticket) -> Desk:
        """See ``Workplace.open``."""
        sandbox = self.provider.create(self._spec_of(ticket.request.task), deadline_s=ticket.limits.start_s)
        return Desk(_Loop(sandbox, self._logs), sandbox, provider=self.provider, logs=self._logs)


def rehearse(stage: Stage) -> None:
    """Live a few attempts in this process. What fails here is left to the real ones, which say so."""
    if stage.provider.name not in CHEAP:
        return
    try:
        with tempfile.TemporaryDirectory(prefix="journeyman-rehearsal-") as room:
            names = ("environment/Dockerfile", "environment/world/file", "solution/solve.sh", "tests/test.sh")
            files = dict.fromkeys(names, b"")
            draft = TaskDraft("nothing\n", {}, files)
            task = load_task(write_task(draft, Path(room) / "task"))
            ticket = Ticket(TrialRequest(task, HARNESSES["react"], ("rehearsal",), 0), 1, _LIMITS)
            for _ in range(TIMES):
                _live(stage, ticket)
    except (JourneymanError, OSError):
        return


def _live(stage: Stage, ticket: Ticket) -> None:
    """One attempt, whose owner has answered before it asks."""
    here, there = socket.socketpair()
    with here, there:
        turn = TurnResult("rehearsal", [9, _STOP], np.zeros(2, dtype=np.float32), "stop", 0)
        there.sendall(packed({}, [pickle.dumps(bare(ticket), protocol=5)]))
        message = Link(here).receive(_LIMIT_S)
        told: Ticket = pickle.loads(message.blobs[0]) if message is not None else bare(ticket)
        answer = packed({"kind": "turn"}, [pickle.dumps(turn, protocol=5)])
        there.sendall(2 * answer)
        run_attempt(here, whole(told, (ticket.request.task, ticket.request.harness, ticket.limits)), stage)
