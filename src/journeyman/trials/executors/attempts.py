"""The attempts that run now, as the owner keeps them: tokens told so far, what was reported, how each one ended."""

from __future__ import annotations

import socket
from dataclasses import dataclass, field, replace
from dataclasses import fields as fields_of
from pathlib import Path
from typing import Any

from journeyman.engines.experts import packed, unpacked
from journeyman.engines.protocol import TurnResult
from journeyman.harness import Turn
from journeyman.harness.conversation import AttemptedCall
from journeyman.tokens.context import Columns
from journeyman.tokens.segments import as_json, of_json
from journeyman.trials.executors.protocol import Exit, Ticket
from journeyman.trials.executors.wire import LinkBroken, Message, Parser, columns_of_blobs
from journeyman.trials.outcome import OUTCOMES, STOP_REASONS, RemoteFault, SupervisorDeadline, TrialLost, classify
from journeyman.trials.record import Trial
from journeyman.trials.store.columns import calls_of, has_turn, joined
from journeyman.trials.store.hot import HotTrial


@dataclass(frozen=True)
class TurnRecord:
    """A turn of another harness than ``Conversation``'s, as its record says."""

    facts: dict[str, Any]

    def record(self) -> dict[str, Any]:
        return self.facts


@dataclass
class Attempt:
    """One attempt under way.

    Attributes:
        number: names it towards the launcher.
        ticket: what it was told.
        connection: to its process; None before it arrived and after it closed.
        hot: its open trial in the store, or None.
        turns_asked: model calls so far.
        report: its ``ended`` message, or None.
        error: what ended it from outside; outranks the report.
        routed: stored tokens whose experts the engine has told; those of a context that was edited are told anew.
        segments: of its context, once that was edited; as ``tokens.segments.as_json`` writes them.
    """

    number: int
    ticket: Ticket
    hot: HotTrial | None = None
    connection: socket.socket | None = None
    parser: Parser = field(default_factory=Parser)
    turns_asked: int = 0
    report: Message | None = None
    error: Exception | None = None
    columns: list[Columns] = field(default_factory=list)
    pending: list[Columns] = field(default_factory=list)
    routed: int = 0
    segments: tuple[dict[str, Any], ...] = ()

    @property
    def trial_id(self) -> str:
        return self.ticket.request.trial_id

    def tell(self, blobs: list[bytes], segments: Any = None) -> None:
        """Take tokens in; whole model calls are acknowledged by the store at once. Raises LinkBroken, StorageError."""
        news = columns_of_blobs(blobs[:6])
        self.columns.append(news)
        if self.hot is not None:
            self.pending.append(news)
            calls = calls_of(joined(self.pending) if len(self.pending) > 1 else news)
            self.pending = [calls.pop()] if calls and not has_turn(calls[-1]) else []
            for call in calls:
                self.hot.append_call(call)
        if segments:
            self._edited(segments)

    def keep_experts(self, result: TurnResult) -> TurnResult:
        """Take what a turn tells of its experts to the store; the turn without it, as its process needs it."""
        if result.routed_experts is None:
            return result
        rows = unpacked(result.routed_experts)
        end = sum(len(columns.ids) for columns in self.columns) + len(result.ids) - 1
        start = max(self.routed, end - len(rows))
        if self.hot is not None and start < end:
            self.hot.add_experts(start, packed(rows[len(rows) - (end - start) :]))
        self.routed = end
        return replace(result, routed_experts=None)

    def begin_anew(self) -> None:
        """The context was edited: the token sampled last, whose experts nobody knows, is followed by others."""
        self.routed += self.routed > 0

    def _edited(self, told: Any) -> None:
        """Keep the segments of an edited context; acknowledged at once, since a killed attempt tells no more."""
        try:
            self.segments = tuple(as_json(of_json(told)))
        except ValueError as error:
            raise LinkBroken(f"segments that are none: {error}") from error
        if self.hot is not None:
            self.hot.event("segments", segments=list(self.segments))

    def flush(self) -> None:
        """Store what no turn followed."""
        if self.hot is not None and self.pending:
            rest = joined(self.pending)
            self.pending = []
            if len(rest.ids):
                self.hot.append_call(rest)

    def trial(self, exit_: Exit) -> Trial:
        """The attempt as it ended; its outcome follows once it is graded."""
        error = self.error or self._error(exit_)
        head: dict[str, Any] = self.report.head if self.report is not None else {}
        stop = str(head.get("stop_reason", "error"))
        row = classify(error) if error is not None else OUTCOMES["none"]
        return Trial(
            self.ticket.request,
            [turn_of(record) for record in head.get("turns", ())],
            joined(self.columns),
            "error" if error is not None or stop not in STOP_REASONS else stop,
            self.artifacts() if row.grade else None,
            self.ticket.attempt,
            _named(error) if error is not None else None,
            retry=self.ticket.retry.record() if self.ticket.retry is not None else None,
            segments=self.segments,
        )

    def fault(self, exit_: Exit) -> Exception | None:
        """What broke, or None."""
        return self.error or self._error(exit_)

    def artifacts(self) -> dict[str, bytes] | None:
        """Deliverables that were reported."""
        names = self.report.head.get("artifacts") if self.report is not None else None
        if names is None or self.report is None:
            return None
        return dict(zip((str(name) for name in names), self.report.blobs[6:], strict=True))

    def _error(self, exit_: Exit) -> Exception | None:
        if self.report is not None:
            told = self.report.head.get("error")
            return RemoteFault(str(told[0]), str(told[1]), str(told[2])) if told else None
        if exit_.why == "deadline":
            return SupervisorDeadline(f"attempt {self.ticket.attempt} of {self.trial_id}", self.ticket.whole_s)
        return TrialLost(f"attempt {self.ticket.attempt} of {self.trial_id} ended without a report: {exit_.detail}")


def open_hot(root: Path | None, ticket: Ticket) -> HotTrial | None:
    """The attempt's place in the store of a run; None where nothing is stored."""
    if root is None:
        return None
    request = ticket.request
    hot = HotTrial(root, request.trial_id, ticket.attempt)
    hot.event(
        "started",
        task_id=request.task.id,
        world_id=request.task.world_id,
        family=request.task.family,
        split=request.task.split,
        harness=request.harness.name,
        sample=request.sample,
        temperature=request.temperature,
        **({"retry": ticket.retry.record()} if ticket.retry is not None else {}),
    )
    return hot


def turn_of(record: dict[str, Any]) -> Turn:
    """A turn from its record."""
    if set(record) != {f.name for f in fields_of(Turn)}:
        return TurnRecord(record)  # type: ignore[return-value]
    calls = tuple(AttemptedCall(**call) for call in record["calls"])
    return Turn(**{**record, "calls": calls, "malformed": tuple(record["malformed"])})


def _named(error: Exception) -> tuple[str, str]:
    if isinstance(error, RemoteFault):
        return error.type_name, error.message
    return type(error).__name__, str(error)
