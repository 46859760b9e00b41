"""What a harness is: framing, tools and limits, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from journeyman.tokens.framing import FRAMINGS, Framing

StopReason = Literal["answered", "limit.turns", "limit.context", "error"]


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
