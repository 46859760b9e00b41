"""The one error table: how a trial ended, and whether it is retried, graded and trained on.

Every trial ends as exactly one ``Outcome``: one class, one cause. Code decides by exception type, never by text. A
budget that was declared to the policy and runs out is the policy's business: graded and trained. Everything else that
ends a trial early (the supervisor's wall clock, deadlines of engine and tool host, a lost sandbox) is a system error:
never a reward, outside every denominator, counted and shown.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from journeyman.errors import DeadlinePassed, JourneymanError, StorageError, SystemFault
from journeyman.tasks.verdict import Verdict

OutcomeClass = Literal["solved", "failed", "malformed_deliverable", "system_error", "verifier_error", "cancelled"]

StopReason = Literal[
    "answered",
    "limit.turns",
    "limit.tokens",
    "limit.context",
    "limit.calls",
    "limit.time",
    "limit.cost",
    "limit.malformed",
    "error",
]
"""Why an agent's loop ended. ``limit.time`` is declared working time, not a supervisor's wall clock."""

STOP_REASONS: tuple[StopReason, ...] = get_args(StopReason)


@dataclass(frozen=True)
class ErrorPolicy:
    """One row of the table.

    Attributes:
        cause: key of the row.
        retry: whether a new attempt of the same trial may start, in a fresh sandbox.
        grade: whether the verifier is run on what exists.
        reward_valid: whether a reward counts in means and in training.
        meaning: what ends a trial this way.
    """

    cause: str
    retry: bool
    grade: bool
    reward_valid: bool
    meaning: str


OutcomeRow = ErrorPolicy


_ROWS = (
    # cause, retry, grade, reward valid, what ends a trial this way
    ErrorPolicy("none", False, True, True, "the policy ended its trial itself"),
    ErrorPolicy("agent_exhausted_budget", False, True, True, "a declared limit: turns, tokens, context, calls, time"),
    ErrorPolicy("agent_refused_task", False, True, True, "the policy declined the task"),
    ErrorPolicy("sandbox_failed", True, False, False, "a sandbox did not start, died or missed a deadline"),
    ErrorPolicy("tool_host_failed", True, False, False, "the machinery behind a tool broke or missed a deadline"),
    ErrorPolicy("trial_lost", True, False, False, "the process of a trial, or its supervisor, was killed"),
    ErrorPolicy("engine_failed", True, False, False, "the engine broke or missed a deadline"),
    ErrorPolicy("model_provider_failed", True, True, False, "a remote model failed for now: rate, network, server"),
    ErrorPolicy("model_request_refused", False, True, False, "a remote model refused the request, or money ran out"),
    ErrorPolicy("model_unavailable", False, False, False, "no such remote model, or no access to it"),
    ErrorPolicy("deadline_passed", True, False, False, "the supervisor's wall clock or another outer deadline"),
    ErrorPolicy("verifier_failed", False, True, False, "the verifier broke; it alone runs again, on saved artifacts"),
    ErrorPolicy("storage_failed", False, False, False, "a result could not be made durable, e.g. the disk is full"),
    ErrorPolicy("harness_failed", False, False, False, "our own set-up: configuration, input, a missing extra"),
    ErrorPolicy("cancelled", False, False, False, "the operator stopped the run"),
    ErrorPolicy("unclassified", True, True, False, "an error of unknown type; above 1 % of trials it alarms"),
)

OUTCOMES: dict[str, ErrorPolicy] = {row.cause: row for row in _ROWS}
"""All rows by cause. ``SystemFault`` types name theirs in their class attribute ``cause``."""


@dataclass(frozen=True)
class Outcome:
    """How a trial ended.

    Attributes:
        outcome_class: one of the six classes; only ``solved``, ``failed`` and ``malformed_deliverable`` enter a mean.
        cause: the row of ``OUTCOMES``.
        retry, grade, reward_valid: flags of that row; ``reward_valid`` is also False when there is no valid reward.
    """

    outcome_class: OutcomeClass
    cause: str
    retry: bool
    grade: bool
    reward_valid: bool


class BudgetExhausted(JourneymanError):
    """A budget declared to the policy ran out where the loop could not end by a stop reason. Graded and trained."""

    cause: ClassVar[str] = "agent_exhausted_budget"


class SupervisorDeadline(DeadlinePassed):
    """The supervisor ended a trial that passed its hard wall clock: a system error, however near the answer was."""

    cause = "deadline_passed"


class TrialLost(SystemFault):
    """The process of a trial ended without a result: it, its supervisor or its node was killed."""

    cause = "trial_lost"


class RemoteFault(SystemFault):
    """An error that escaped in another process, with the row that its type has in the table.

    Args:
        type_name: class name of the error.
        message: its text.
        cause: key of ``OUTCOMES``.
    """

    def __init__(self, type_name: str, message: str, cause: str) -> None:
        self.type_name, self.message = type_name, message
        self.row = OUTCOMES.get(cause, OUTCOMES["unclassified"])
        super().__init__(f"{type_name}: {message}")


def classify(error: BaseException) -> OutcomeRow:
    """The row of an error, by its type alone.

    Order: what another process found already; cancellation; the ``cause`` its type declares; a bare
    ``DeadlinePassed``; unwritable storage; other errors of our own, which are set-up faults; everything else is
    ``unclassified``, never the policy's failure.
    """
    if isinstance(error, RemoteFault):
        return error.row
    if isinstance(error, KeyboardInterrupt) or _is_cancellation(error):
        return OUTCOMES["cancelled"]
    if isinstance(error, SystemFault | BudgetExhausted) and error.cause != "unclassified":
        return OUTCOMES.get(error.cause, OUTCOMES["unclassified"])
    if isinstance(error, DeadlinePassed):
        return OUTCOMES["deadline_passed"]
    if isinstance(error, StorageError):
        return OUTCOMES["storage_failed"]
    if isinstance(error, JourneymanError) and not isinstance(error, SystemFault):
        return OUTCOMES["harness_failed"]
    return OUTCOMES["unclassified"]


def outcome_of(verdict: Verdict | None, stop_reason: str, error: BaseException | None) -> Outcome:
    """The one outcome of a trial.

    An error outranks a verdict: a trial that broke has no valid reward even if something was graded. A trial that ended
    well but was never graded, or whose verifier broke, is a ``verifier_error``.

    Args:
        verdict: how it was graded, or None when it was not.
        stop_reason: one of ``STOP_REASONS``.
        error: what escaped from the trial, or None.

    Raises:
        ValueError: ``stop_reason`` is not in the closed list.
    """
    if stop_reason not in STOP_REASONS:
        raise ValueError(f"unknown stop reason {stop_reason!r}; allowed: {', '.join(STOP_REASONS)}")
    if error is not None:
        row = classify(error)
    elif stop_reason == "error":
        row = OUTCOMES["unclassified"]
    elif stop_reason == "answered":
        row = OUTCOMES["none"]
    else:
        row = OUTCOMES["agent_exhausted_budget"]
    if row.cause == "cancelled":
        return _outcome("cancelled", row)
    if not row.reward_valid and row.cause != "verifier_failed":
        return _outcome("system_error", row)
    if row.cause == "verifier_failed" or verdict is None or verdict.kind == "verifier_error":
        return _outcome("verifier_error", OUTCOMES["verifier_failed"])
    if verdict.kind == "malformed_deliverable":
        return _outcome("malformed_deliverable", row)
    return _outcome("solved" if verdict.passed else "failed", row)


def error_table() -> str:
    """The table as Markdown, for the documentation."""
    words = {True: "yes", False: "no"}
    rows = [
        f"| {p.cause} | {words[p.retry]} | {words[p.grade]} | {words[p.reward_valid]} | {p.meaning} |"
        for p in OUTCOMES.values()
    ]
    return "\n".join(
        ["| cause | retry | grade | reward valid | what ends a trial this way |", "|---|---|---|---|---|", *rows]
    )


def _is_cancellation(error: BaseException) -> bool:
    """It is asyncio's; where asyncio was never loaded (some megabytes that every attempt would share), none is."""
    loaded = sys.modules.get("asyncio")
    return loaded is not None and isinstance(error, loaded.CancelledError)


def _outcome(outcome_class: OutcomeClass, row: ErrorPolicy) -> Outcome:
    return Outcome(outcome_class, row.cause, row.retry, row.grade, row.reward_valid)
