"""The words of executors: what one attempt is told, what it works with, what it reports, and who starts it."""

from __future__ import annotations

import copyreg
import importlib
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol, runtime_checkable

from journeyman.errors import InputError
from journeyman.harness.protocol import Loop
from journeyman.sandbox.protocol import Provider, Sandbox
from journeyman.tasks.artifacts import Artifacts
from journeyman.tasks.grading import Grader
from journeyman.tasks.task import Task
from journeyman.tools.counterparts import journal_of
from journeyman.tools.toolset import ToolSet
from journeyman.trials.limits import Limits
from journeyman.trials.record import Trial, TrialRequest
from journeyman.trials.retrying import Retry


@dataclass
class Desk:
    """What one attempt works with, made fresh for it.

    Attributes:
        loop: the harness at work.
        sandbox: where its actions run; None for trials whose tools are pure.
        serves_frames: the sandbox has an entry program.
        provider: that made the sandbox.
        logs: where deliverables lie inside; "" when the sandbox holds none.
        tools: what the loop was offered; closed with the trial.
        notes: what is to be said of the tools in the record, asked once the loop is over.
    """

    loop: Loop
    sandbox: Sandbox | None = None
    serves_frames: bool = False
    provider: Provider | None = None
    logs: str = ""
    tools: ToolSet | None = None
    notes: Callable[[], dict[str, Any]] = dict

    def collect(self, ticket: Ticket) -> dict[str, bytes]:
        """Deliverables that lie elsewhere than in the sandbox's logs. Called after QUIESCE."""
        return journal_of(self.tools)


@dataclass(frozen=True)
class Ticket:
    """One attempt, as its process is told.

    Attributes:
        request: what to attempt.
        attempt: 1 for the first.
        limits: how long its parts may take.
        retry: why it follows another attempt, None for a first one.
    """

    request: TrialRequest
    attempt: int
    limits: Limits
    retry: Retry | None = None

    @property
    def whole_s(self) -> float:
        """Hard wall clock, enforced from outside."""
        return self.limits.whole(self.request.task.agent_timeout_s)


def _proxy(values: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    return MappingProxyType(values)


copyreg.pickle(MappingProxyType, lambda proxy: (_proxy, (dict(proxy),)))  # harness specs hold some


class Workplace(Protocol):
    """What the trials of one run share; made once in the process that starts them, before it forks.

    Attributes:
        label: owner of every sandbox.
        provider: makes them.
    """

    label: str
    provider: Provider

    def open(self, ticket: Ticket) -> Desk:
        """A fresh desk. Raises SandboxFault and other system faults."""
        ...


@runtime_checkable
class Rehearsing(Protocol):
    """A workplace that knows what its attempts do."""

    def rehearse(self) -> None:
        """Do some of it before the first fork, so that attempts share what was learned. Raises nothing."""
        ...

    def prepare(self, task: Task) -> None:
        """Do what all attempts at a task have in common, before the first of them is forked. Raises nothing."""
        ...


@dataclass(frozen=True)
class WorkplaceRecipe:
    """How to make the workplace in another process: a function by name, and plain arguments.

    Attributes:
        factory: ``module:function``; the module must not load torch.
        arguments: JSON values.
    """

    factory: str
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def make(self) -> Workplace:
        """Import and call it. Raises InputError when there is no such function."""
        module, _, name = self.factory.partition(":")
        try:
            function = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError) as error:
            raise InputError("workplace", f"{self.factory!r} cannot be imported: {error}") from error
        workplace: Workplace = function(**self.arguments)
        return workplace


@dataclass(frozen=True)
class Ended:
    """What an attempt reports of itself.

    Attributes:
        stop_reason: one of ``outcome.STOP_REASONS``.
        answer: the final answer, or None.
        artifacts: deliverables by name, or None when nothing was delivered.
        turns: records of the loop's turns.
        error: class name, text and cause of what escaped, or None.
        facts: seconds of each phase, processes killed by QUIESCE, what was injected into its tools.
    """

    stop_reason: str
    answer: str | None
    artifacts: Artifacts | None
    turns: list[dict[str, Any]]
    error: tuple[str, str, str] | None
    facts: dict[str, Any]


@dataclass(frozen=True)
class Exit:
    """How the process of an attempt ended, as its supervisor saw it.

    Attributes:
        number: which attempt.
        why: ``exit`` (by itself, also when killed by a stranger), ``deadline``, ``killed`` (asked for), ``lost``.
        detail: status or signal in words.
    """

    number: int
    why: str
    detail: str


class Launcher(Protocol):
    """Starts the processes of attempts, enforces their wall clock, and says how they ended. It never retries."""

    def start(self, number: int, ticket: Ticket) -> None:
        """Begin an attempt. Raises SystemFault when it cannot be started."""
        ...

    def kill(self, number: int) -> None:
        """End an attempt and its whole tree; its ``Exit`` follows."""
        ...

    def arrivals(self) -> list[tuple[int, socket.socket]]:
        """Connections of attempts that are new since the last question."""
        ...

    def exits(self) -> list[Exit]:
        """Attempts that ended since the last question."""
        ...

    def wakers(self) -> list[socket.socket]:
        """Sockets that become readable when there is something to ask for."""
        ...

    def close(self) -> None:
        """End everything."""
        ...


class Executor(Protocol):
    """Runs batches of trials."""

    def run(self, requests: Sequence[TrialRequest], grader: Grader) -> list[Trial]:
        """Run, retry and grade; every attempt of every request, those of one request in order of attempt."""
        ...
