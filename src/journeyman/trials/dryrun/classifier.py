"""The classifier: one finding for each trial that did not do what its policy should, by rules in a fixed order.

How the trial ended (its row of the error table) comes first, then what programs said of missing parts, then what tools
answered, then limits that left no room, then what the verifier said of itself. What no rule explains is the model's.
A policy without a model never gets the class ``model`` for the task's own solution: then the verifier, or what the
solution needs, is at fault.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from journeyman.trials.dryrun.classes import FailureClass, Finding, Policy
from journeyman.trials.dryrun.symptoms import missing_dependency, quoted, stumbled_check, worthless_answer

SOLUTION = "solution"
"""Name under which the task's own solution is recorded as a call."""

CODE_TOOLS = frozenset({"bash", "code_exec", "terminal", SOLUTION})
"""Calls that run what the policy wrote: their output is the policy's own, silence and tracebacks included."""

CROWDED_SHARE = 0.5
"""A prompt, or one tool result, above this share of the context leaves too little room to act in."""

_CAUSES: dict[str, FailureClass] = {
    "sandbox_failed": "environment",
    "tool_host_failed": "tool",
    "trial_lost": "harness",
    "engine_failed": "harness",
    "model_provider_failed": "environment",
    "model_request_refused": "environment",
    "model_unavailable": "environment",
    "deadline_passed": "harness",
    "verifier_failed": "verifier",
    "storage_failed": "environment",
    "harness_failed": "harness",
    "unclassified": "harness",
}
"""Row of the error table -> class, for trials that ended without a valid reward."""


LACKS = frozenset({"EnvironmentMissing", "LimitUnenforceable", "ModuleNotFoundError"})
"""Types of errors that say what the machine or the sandbox lacks, whatever row they ended in."""


@dataclass(frozen=True)
class ContextUse:
    """How a full context was filled, in tokens: the prompt, the largest tool result, and all of it."""

    prompt: int
    largest_result: int
    limit: int


_Rule = tuple[FailureClass, str, str, str, str]
"""Class, rule, subject, evidence, where."""


def classify_trial(
    record: Mapping[str, Any], policy: Policy, context: Callable[[], ContextUse | None] = lambda: None
) -> Finding | None:
    """Whose fault a trial was.

    Args:
        record: of the attempt that counts, as ``trials.store`` gives it.
        policy: who acted.
        context: how its context was filled; asked only when the context ran out. None where nobody knows.

    Returns:
        None when nothing failed: it passed, a no-op was refused as it should be, or the operator cancelled it.
    """
    if record.get("outcome") == "cancelled":
        return None
    found = _first(record, policy, context)
    if found is None:
        return None
    failure, rule, subject, evidence, where = found
    return Finding(
        str(record["trial_id"]),
        int(record.get("attempt", 1)),
        str(record.get("task_id", "")),
        failure,
        rule,
        subject,
        evidence,
        where,
    )


def _first(record: Mapping[str, Any], policy: Policy, context: Callable[[], ContextUse | None]) -> _Rule | None:
    if record.get("outcome") in ("system_error", "verifier_error"):
        return _broken(record)
    passed = bool(record.get("passed"))
    if policy in ("noop", "random"):
        if passed:
            explain = (
                f"reward {record.get('reward')} for {'no action at all' if policy == 'noop' else 'random actions'}"
            )
            return "verifier", "accepts what did no work", "", explain, "verdict"
        if policy == "noop":
            return None
    elif passed:
        return None
    rules = _oracle_rules(record) if policy == "oracle" else _agent_rules(record, context)
    for found in rules:
        return found
    return "model", "did not solve it", str(record.get("stop_reason", "")), _why_refused(record), "verdict"


def _broken(record: Mapping[str, Any]) -> _Rule:
    cause = str(record.get("cause") or "unclassified")
    verdict = record.get("verdict") or {}
    if record.get("outcome") == "verifier_error":
        error = str(verdict.get("error") or "VerifierFault")
        return "verifier", "the verifier broke", error, _line(str(verdict.get("explain", ""))), "verdict.explain"
    name, message = (*(record.get("error") or ()), "", "")[:2]
    missing = missing_dependency(str(message), invented=False)
    if missing is not None:
        return "environment", "a dependency is missing", missing.subject, missing.evidence, "error"
    failure = "environment" if name in LACKS else _CAUSES.get(cause, "harness")
    return failure, f"ended as {cause}", str(name), _line(f"{name}: {message}"), "error"


def _oracle_rules(record: Mapping[str, Any]) -> Iterator[_Rule]:
    """The task's own solution failed; nothing of it is a model's fault."""
    stop = str(record.get("stop_reason", ""))
    for where, call, text in _answers(record):
        missing = missing_dependency(text, invented=False)
        if missing is not None:
            yield "environment", "a dependency is missing", missing.subject, missing.evidence, where
        if stop.startswith("limit."):
            yield "harness", "a limit ended the task's own solution", stop, _line(text or stop), where
        status = int(call.get("arguments", {}).get("status", 0) or 0)
        if status in (137, -9):
            yield "harness", "a limit ended the task's own solution", "memory", _line(text or "killed"), where
        if status:
            evidence = _line(text.strip().rpartition("\n")[2] or "no output")
            yield "environment", "the task's own solution cannot run", f"status {status}", evidence, where
    yield "verifier", "refuses the task's own solution", _first_bad_check(record), _why_refused(record), "verdict"


def _agent_rules(record: Mapping[str, Any], context: Callable[[], ContextUse | None]) -> Iterator[_Rule]:
    for where, call, text in _answers(record):
        missing = missing_dependency(text, invented=True)
        if missing is not None:
            yield "environment", "a dependency is missing", missing.subject, missing.evidence, where
        if call.get("tool") in CODE_TOOLS or call.get("status") not in ("ok", "tool_error"):
            continue
        worthless = worthless_answer(text)
        if worthless is not None:
            rule = f"answers with {worthless.subject}"
            yield "tool", rule, str(call.get("tool", "")), worthless.evidence, where
    if record.get("stop_reason") == "limit.context":
        yield from _crowded(context())
    checks = (record.get("verdict") or {}).get("checks") or ()
    stumbled = stumbled_check((str(c.get("id", "")), str(c.get("explain", ""))) for c in checks)
    if stumbled is not None:
        yield "verifier", "a check tells of its own error", stumbled.subject, stumbled.evidence, "verdict.checks"


def _crowded(use: ContextUse | None) -> Iterator[_Rule]:
    if use is None or use.limit <= 0:
        return
    for what, tokens in (("the prompt", use.prompt), ("one tool result", use.largest_result)):
        if tokens >= CROWDED_SHARE * use.limit:
            evidence = f"{what} has {tokens} of {use.limit} tokens"
            yield "harness", f"{what} fills the context", "limit.context", evidence, "context"


def _answers(record: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any], str]]:
    """Where, which call, and the text that came back. The last turn of an answered trial has no answer to read."""
    turns = list(record.get("turns") or ())
    for number, turn in enumerate(turns, start=1):
        calls = list(turn.get("calls") or ())
        text = str(turn.get("observation", ""))
        if not calls or (number == len(turns) and not text and record.get("stop_reason") == "answered"):
            continue
        for call in calls:
            yield f"turn {number}, {call.get('tool') or 'unreadable call'}", call, text


def _first_bad_check(record: Mapping[str, Any]) -> str:
    verdict = record.get("verdict") or {}
    bad = [str(c.get("id", "")) for c in verdict.get("checks") or () if float(c.get("score") or 0) < 1]
    return f"check {bad[0]}" if bad else str(verdict.get("kind", "no verdict"))


def _why_refused(record: Mapping[str, Any]) -> str:
    """The reason of the verdict in a line: the first check that was not met, or what was wrong with the deliverable."""
    verdict = record.get("verdict") or {}
    for check in verdict.get("checks") or ():
        if float(check.get("score") or 0) < 1:
            return _line(f"{check.get('id')}: {check.get('explain')}")
    return _line(str(verdict.get("explain") or f"reward {record.get('reward')}"))


def _line(text: str) -> str:
    return quoted(text, 0)
