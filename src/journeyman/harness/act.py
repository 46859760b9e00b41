"""What one sampled turn comes to: the word between the part of a harness that acts and the loop that keeps tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from journeyman.harness.conversation import AttemptedCall
from journeyman.tokens.renderers.family import ToolSchema


@dataclass(frozen=True)
class Result:
    """What a tool answered, before it is cut.

    Attributes:
        text: all of it.
        name: the tool.
        spill: where its whole text lies in the sandbox already, or None.
    """

    text: str
    name: str = ""
    spill: str | None = None


@dataclass(frozen=True)
class Act:
    """What a turn did.

    Attributes:
        calls: every attempted call in order.
        malformed: class of each defect.
        results: what goes back as tool results, one per attempted call in order.
        user: what goes back as a user turn.
        answer: the final answer; the trial is over.
        status: how the policy itself says it ended ("completed", "blocked", "failed"), where it can.
        executed: calls that count against the budget.
        repaired: calls that were executed although something about them was malformed.
        again: nothing was executed; the turn is to be drawn again.
        ends: the policy for malformed calls ends the trial.
    """

    calls: tuple[AttemptedCall, ...] = ()
    malformed: tuple[str, ...] = ()
    results: tuple[Result, ...] = ()
    user: str | None = None
    answer: str | None = None
    status: str | None = None
    executed: int = 0
    repaired: int = 0
    again: bool = False
    ends: bool = False


@dataclass(frozen=True)
class AgentTurn:
    """One model call as it is kept; the first five fields mean what those of ``conversation.Turn`` mean.

    Attributes:
        number: its value in the column ``turn``.
        epoch: the context it was sampled in.
        discarded: it was drawn again; its tokens stay stored and must not be trained on as the policy's choice.
        is_summary: the turn that summed up before a compaction.
        repaired: calls executed after a repair.
        cut_results: results that were cut.
        nudged: the notice about the context went out after this turn.
        elapsed_s: seconds its tools took.
    """

    n_sampled: int
    finish: str
    calls: tuple[AttemptedCall, ...]
    malformed: tuple[str, ...]
    observation: str
    number: int
    epoch: int
    discarded: bool = False
    is_summary: bool = False
    repaired: int = 0
    cut_results: int = 0
    nudged: bool = False
    elapsed_s: float = 0.0

    def record(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)


class Actor(Protocol):
    """The part of a harness that knows what its turns mean. It holds the state of tools, never tokens."""

    def opening(self, instruction: str, files: Sequence[str]) -> tuple[list[Mapping[str, str]], list[ToolSchema]]:
        """The messages that open a context, and the tools offered in it."""
        ...

    def act(self, sampled: Sequence[int], *, cut: bool, redraws_left: int, calls_left: int | None) -> Act:
        """Read a turn and do what it says.

        Args:
            sampled: its ids.
            cut: sampling stopped before the turn was over.
            redraws_left: how often it may still be drawn again.
            calls_left: tool calls that the budget still allows, None for any number.

        Raises:
            SystemFault: a tool's machinery broke.
        """
        ...

    def begin_again(self) -> None:
        """A fresh context begins: forget what the policy can no longer know."""
        ...
