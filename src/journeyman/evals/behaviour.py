"""How a policy behaves, from the records of its Trials: every metric a ratio whose parts can be added up again.

Trials that broke outside the policy, or were cancelled, are in no denominator. 0/0 is None, never 0 or 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from journeyman.evals.score import Ratio
from journeyman.evals.tally import GRADED
from journeyman.trials.outcome import STOP_REASONS, OutcomeClass, StopReason

CallStatus = Literal["ok", "tool_error", "unparsable", "unknown_tool", "schema_violation"]
_WELL_FORMED: frozenset[str] = frozenset({"ok", "tool_error"})

LIMITS: tuple[StopReason, ...] = tuple(reason for reason in STOP_REASONS if reason.startswith("limit."))
"""Stop reasons that are declared budgets; a Trial that ends in one is graded as it stands."""


@dataclass(frozen=True)
class CallRecord:
    """One attempted tool call.

    Attributes:
        tool: its name as written, empty when it could not be parsed.
        arguments_sha256: digest of the arguments, empty when they could not be parsed.
        status: what became of it.
        state_sha256: digest of the state it acted on; equal while nothing was changed.
    """

    tool: str
    arguments_sha256: str
    status: CallStatus
    state_sha256: str = ""


@dataclass(frozen=True)
class TrialRecord:
    """What the behaviour metrics need of one Trial; a turn is one model call."""

    outcome: OutcomeClass
    stop_reason: StopReason
    n_turns: int
    n_sampled_tokens: int
    calls: tuple[CallRecord, ...] = ()


@dataclass(frozen=True)
class Metric:
    """One behaviour metric: ``parts`` gives numerator and denominator of one Trial."""

    meaning: str
    parts: Callable[[TrialRecord], tuple[float, float]]
    unit: str = ""


def _well_formed(trial: TrialRecord) -> int:
    return sum(call.status in _WELL_FORMED for call in trial.calls)


def _repeated(trial: TrialRecord) -> int:
    seen: set[tuple[str, str, str]] = set()
    repeats = 0
    for call in trial.calls:
        key = (call.tool, call.arguments_sha256, call.state_sha256)
        if call.status in _WELL_FORMED:
            repeats += key in seen
            seen.add(key)
    return repeats


METRICS: dict[str, Metric] = {
    "turns": Metric("model calls per trial", lambda t: (t.n_turns, 1)),
    "calls_per_turn": Metric("attempted tool calls per turn", lambda t: (len(t.calls), t.n_turns)),
    "tokens_per_turn": Metric("sampled tokens per turn", lambda t: (t.n_sampled_tokens, t.n_turns), "tokens"),
    "invalid_call_rate": Metric(
        "unparsable, unknown tool or schema violation, of attempted calls",
        lambda t: (len(t.calls) - _well_formed(t), len(t.calls)),
    ),
    "execution_error_rate": Metric(
        "tool returned an error, of well-formed calls",
        lambda t: (sum(call.status == "tool_error" for call in t.calls), _well_formed(t)),
    ),
    "repeated_call_rate": Metric(
        "same tool and arguments in an unchanged state, of attempted calls",
        lambda t: (_repeated(t), len(t.calls)),
    ),
    "context_exhaustion_rate": Metric(
        "stopped by the context limit, of trials", lambda t: (t.stop_reason == "limit.context", 1)
    ),
}
"""Every metric by name (evaluation reference, 6)."""


def behaviour_of(trials: Sequence[TrialRecord]) -> dict[str, Ratio]:
    """Every metric of ``METRICS`` over the graded Trials."""
    graded = [trial for trial in trials if trial.outcome in GRADED]
    return {name: _total(metric, graded) for name, metric in METRICS.items()}


def stopped_by(trials: Sequence[TrialRecord]) -> dict[str, Ratio]:
    """Share of graded Trials that each limit stopped, zeros included."""
    graded = [trial for trial in trials if trial.outcome in GRADED]
    return {limit: Ratio.of(sum(trial.stop_reason == limit for trial in graded), len(graded)) for limit in LIMITS}


def _total(metric: Metric, trials: Sequence[TrialRecord]) -> Ratio:
    parts = [metric.parts(trial) for trial in trials]
    return Ratio.of(sum(top for top, _ in parts), sum(bottom for _, bottom in parts))
