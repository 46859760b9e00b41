"""What the engine remembers of a trial outside the cache: every id of its context, and the turn under way."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from journeyman.engines.protocol import KeptSets, TopLogprobs, TurnRequest, TurnResult, WeightSpan


def _no_ids() -> npt.NDArray[np.int32]:
    return np.zeros(0, dtype=np.int32)


def _no_logprobs() -> npt.NDArray[np.float32]:
    return np.zeros(0, dtype=np.float32)


@dataclass(eq=False)
class Turn:
    """A turn under way.

    Attributes:
        request: what was asked.
        marks: (weight version, position in the turn from which it samples), rising.
        ids, logprobs: what was sampled before the turn lost its row; while it has one the row holds them.
        kept: per position the ids that a filter left to choose from; filled for filtered turns only.
        top_ids, top_logprobs: per position the most probable tokens, when asked for.
    """

    request: TurnRequest
    marks: list[tuple[int, int]]
    ids: npt.NDArray[np.int32] = field(default_factory=_no_ids)
    logprobs: npt.NDArray[np.float32] = field(default_factory=_no_logprobs)
    kept: list[npt.NDArray[np.int32]] = field(default_factory=list)
    top_ids: list[npt.NDArray[np.int32]] = field(default_factory=list)
    top_logprobs: list[npt.NDArray[np.float32]] = field(default_factory=list)

    @property
    def tells_more(self) -> bool:
        """A filter is on or alternatives were asked for."""
        sampling = self.request.sampling
        return sampling.top_logprobs > 0 or (sampling.is_filtered and sampling.temperature > 0)

    def mark(self, version: int, position: int) -> None:
        """From ``position`` on the weights of ``version`` sample."""
        if self.marks[-1][1] == position:
            self.marks.pop()
        if not self.marks or self.marks[-1][0] != version:
            self.marks.append((version, position))

    def result(self, finish: Literal["stop", "length", "abort"]) -> TurnResult:
        """The turn as it stands in ``ids`` and ``logprobs``."""
        count = len(self.ids)
        ends = [start for _, start in self.marks[1:]] + [count]
        spans = tuple(
            WeightSpan(version, start, end)
            for (version, start), end in zip(self.marks, ends, strict=True)
            if end > start
        )
        top = TopLogprobs(np.stack(self.top_ids), np.stack(self.top_logprobs)) if self.top_ids else None
        kept = None
        if self.kept:
            starts = np.concatenate([[0], np.cumsum([len(one) for one in self.kept])]).astype(np.int64)
            kept = KeptSets(np.concatenate(self.kept), starts)
        version = spans[-1].version if spans else self.marks[-1][0]
        trial = self.request.trial
        return TurnResult(trial, self.ids.tolist(), self.logprobs, finish, version, spans, top, kept)


@dataclass(eq=False)
class Trial:
    """A conversation.

    Attributes:
        name: as requested.
        context: every id before what the turn under way has sampled, whether the cache holds it or not.
        turn: the turn under way.
        was_aborted: the last turn was; only then may the next one append nothing.
        used_at: step in which its last turn ended; the trial that rests longest loses its row first.
    """

    name: str
    context: list[int] = field(default_factory=list)
    turn: Turn | None = None
    was_aborted: bool = False
    used_at: int = 0

    def begin(self, request: TurnRequest, version: int) -> None:
        """Take up a new turn."""
        self.context += request.append
        self.turn, self.was_aborted = Turn(request, [(version, 0)]), False

    def end(self, finish: Literal["stop", "length", "abort"], step: int) -> TurnResult:
        """Close the turn; what it sampled becomes context."""
        assert self.turn is not None
        result = self.turn.result(finish)
        self.context += result.ids
        self.turn, self.was_aborted, self.used_at = None, finish == "abort", step
        return result

    def known(self) -> list[int]:
        """Every id up to the next one to sample; for a trial whose turn holds no row."""
        return self.context if self.turn is None else self.context + self.turn.ids.tolist()
