"""A harness as data: loop, system text, limits and policies, and the boundary facts that a score must carry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import date
from types import MappingProxyType
from typing import Any, Literal

from journeyman.errors import InputError
from journeyman.harness.budget import Budget
from journeyman.tokens.malformed import DEFAULT_POLICY, MALFORMED_KINDS, MalformedKind

CallPolicy = Literal["execute", "error_result", "regenerate", "end"]
"""execute: run a call that could be repaired; error_result: answer with the defect; regenerate: keep the turn as a
segment of its own and draw it again; end: stop the trial (``limit.malformed``)."""

AtLimit = Literal["stop", "compact", "clear-and-retry"]
"""What happens when the context or ``calls_per_context`` is used up."""

MAX_FRESH_CONTEXTS = 5


@dataclass(frozen=True)
class HarnessSpec:
    """One way of letting a policy act, for any model family.

    Attributes:
        name: how reports call it.
        loop: key of ``registry.LOOPS``.
        system: text of the system turn.
        budget: limits of a trial.
        malformed: what to do about each class of malformed call.
        max_regenerations: how often one turn may be drawn again.
        at_limit: what happens when a context is used up.
        max_fresh_contexts: contexts after the first, at most 5.
        nudge: put a notice into the last tool result once ``nudge_share`` of the context is used. For training only.
        nudge_share: share of ``budget.context_tokens``.
        max_result_tokens: a longer tool result is cut.
        summary_tokens: sampled tokens of the summary turn of ``compact``.
        tool_deadline_s: wall-clock of one tool call; ``tool_deadlines_s`` has those that differ.
        spill_directory: where the whole text of a cut result lies inside the sandbox.
        today: the trial's date, for families that state one.
        options: what only this kind of loop knows; see its folder.
    """

    name: str
    loop: str
    system: str
    budget: Budget = field(default_factory=Budget)
    malformed: Mapping[MalformedKind, CallPolicy] = field(default_factory=lambda: dict(DEFAULT_POLICY))
    max_regenerations: int = 2
    at_limit: AtLimit = "stop"
    max_fresh_contexts: int = MAX_FRESH_CONTEXTS
    nudge: bool = False
    nudge_share: float = 0.8
    max_result_tokens: int = 8_000
    summary_tokens: int = 1_024
    tool_deadline_s: float = 60.0
    tool_deadlines_s: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({"code_exec": 300.0}))
    spill_directory: str = "/tmp/outputs"
    today: date | None = None
    options: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))

    def __post_init__(self) -> None:
        missing = [kind for kind in MALFORMED_KINDS if kind not in self.malformed]
        if missing:
            raise InputError("harness.malformed", f"says nothing about {', '.join(missing)}")
        if not 0 < self.nudge_share < 1:
            raise InputError("harness.nudge_share", f"is {self.nudge_share}", allowed="above 0, below 1")
        if not 0 <= self.max_fresh_contexts <= MAX_FRESH_CONTEXTS:
            problem = f"is {self.max_fresh_contexts}"
            raise InputError("harness.max_fresh_contexts", problem, allowed=f"0 to {MAX_FRESH_CONTEXTS}")
        if self.at_limit == "compact" and 2 * self.summary_tokens >= self.budget.context_tokens:
            raise InputError("harness.summary_tokens", "is half the context or more", hint="ask for a shorter summary")

    @property
    def max_turns(self) -> int:
        """Model calls per trial."""
        return self.budget.max_turns

    @property
    def max_new_tokens(self) -> int:
        """Sampled tokens per turn."""
        return self.budget.max_new_tokens

    @property
    def score_kind(self) -> str:
        """The only kind under which trials of this harness may be scored: fresh contexts are attempts, never pass@1."""
        return f"retry@{1 + self.max_fresh_contexts}" if self.at_limit == "clear-and-retry" else "pass@1"

    def deadline_s(self, tool: str) -> float:
        """Wall-clock of one call of a tool."""
        return self.tool_deadlines_s.get(tool, self.tool_deadline_s)

    def described(self) -> dict[str, Any]:
        """The boundary facts a score must carry, as JSON."""
        limits = {name: value for name, value in asdict(self.budget).items() if value is not None}
        return {
            "harness": self.name,
            "loop": self.loop,
            "budget": limits,
            "malformed": dict(self.malformed),
            "max_regenerations": self.max_regenerations,
            "at_limit": self.at_limit,
            "max_fresh_contexts": self.max_fresh_contexts if self.at_limit != "stop" else 0,
            "score_kind": self.score_kind,
            "nudge": self.nudge_share if self.nudge else None,
            "max_result_tokens": self.max_result_tokens,
            "tool_deadline_s": self.tool_deadline_s,
            "tool_deadlines_s": dict(self.tool_deadlines_s),
            "options": dict(self.options),
        }
