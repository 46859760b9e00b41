"""What a harness is: framing, tools and limits, as data; and what every running loop answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from journeyman.engines.protocol import TurnResult
from journeyman.tokens.context import Context
from journeyman.tokens.framing import FRAMINGS, Framing

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
"""Why a loop ended. Every ``limit.*`` is a budget or a rule that was declared to the policy: graded and trained."""


@dataclass(frozen=True)
class LoopSampling:
    """How the next turn may be sampled.

    Attributes:
        max_new_tokens: tokens at most, what is left of the trial's budget counted in.
        stop_ids: ids at which the turn ends.
    """

    max_new_tokens: int
    stop_ids: frozenset[int]


class TurnRecord(Protocol):
    """One model call as it is kept: JSON of what it did."""

    def record(self) -> dict[str, object]: ...


class Loop(Protocol):
    """The state of one running trial, driven by an executor: ids out, a sampled turn in, until ``respond`` gives None.

    Attributes:
        context: every token of the trial; it only grows.
        stop_reason: why it ended; None while it runs.
        answer: the final answer, None without one.
        epoch: contexts that were left behind (a turn drawn again, a compaction, a fresh start). While it stays the
            same, ids go to the engine as an append. When it grew, the ids are the whole context: the engine forgets
            what it held of the trial, or is asked under a new name.
    """

    context: Context
    stop_reason: StopReason | None
    answer: str | None
    epoch: int

    @property
    def turns(self) -> Sequence[TurnRecord]:
        """One entry per model call, those that were discarded included."""
        ...

    @property
    def sampling(self) -> LoopSampling:
        """Of the next turn."""
        ...

    def open(self, instruction: str, files: Sequence[str]) -> list[int]:
        """The ids of the prompt, appended to the context."""
        ...

    def respond(self, result: TurnResult) -> list[int] | None:
        """Take one sampled turn; the ids the engine needs before the next one, or None when the trial is over.

        Raises:
            SystemFault: a tool's machinery broke; the trial has no verdict then.
        """
        ...


@dataclass(frozen=True)
class Harness:
    """One way of letting a policy act.

    Attributes:
        name: key in ``HARNESSES``.
        framing: system text, frame of tool results, name and argument of the final call.
        tools: names of the tools offered (``tools.TOOLS``).
        max_new_tokens: sampled tokens per turn.
    """

    name: str
    framing: Framing
    tools: tuple[str, ...] = ("lookup", "calc", "read_file")
    max_new_tokens: int = 44

    @property
    def max_turns(self) -> int:
        """Model calls per trial."""
        return self.framing.max_turns

    def described(self) -> dict[str, object]:
        """The boundary facts a score must carry."""
        return {
            "harness": self.name,
            "tools": list(self.tools),
            "final_call": self.framing.final_verb,
            "max_turns": self.max_turns,
            "max_new_tokens": self.max_new_tokens,
        }


HARNESSES: dict[str, Harness] = {name: Harness(name, framing) for name, framing in FRAMINGS.items()}
"""The two framings of the quickstart. The harnesses for real models stand in ``registry.SPECS``."""
