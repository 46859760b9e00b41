"""A loop without a model: the task's own solution, or nothing at all."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from journeyman.engines.protocol import TurnResult
from journeyman.harness.protocol import LoopSampling, StopReason, TurnRecord
from journeyman.tokens.context import Context


class Scripted:
    """Acts once, when it is opened. Its context stays empty.

    Args:
        act: what is done.
    """

    def __init__(self, act: Callable[[], None]) -> None:
        self.context, self.answer, self.epoch = Context(), None, 0
        self.turns: list[TurnRecord] = []
        self.stop_reason: StopReason | None = None
        self.sampling = LoopSampling(1, frozenset())
        self._act = act

    context: Context
    answer: str | None

    def open(self, instruction: str, files: Sequence[str]) -> list[int]:
        """Act at once; the loop is over then."""
        self._act()
        self.stop_reason = "answered"
        return []

    def respond(self, result: TurnResult) -> list[int] | None:
        return None
