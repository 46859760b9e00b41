"""A context in which a sampled turn can be left behind: it stays stored, in a segment of its own, with mask 0."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from journeyman.tokens.context import Columns, Context, Source


class DiscardingContext(Context):
    """A ``Context`` that knows which of its turns were drawn again."""

    def __init__(self) -> None:
        super().__init__()
        self._discarded: set[int] = set()

    @property
    def discarded(self) -> frozenset[int]:
        """Values of the column ``turn`` whose sampled tokens were drawn again."""
        return frozenset(self._discarded)

    def discard(self, num_sampled: int) -> None:
        """Leave the last turn behind, whose sampled tokens are the last in the context, and go on from before it."""
        self._discarded.add(self.turns)
        self.open_segment(len(self) - num_sampled, "regenerated")

    def arrays(self) -> Columns:
        """See ``Context.arrays``. The mask of a discarded turn is 0; source and logprobs say that it was sampled."""
        columns = super().arrays()
        columns.mask[self._gone(columns.turn, columns.source)] = 0
        return columns

    def tail(self, start: int) -> tuple[bytes, ...]:
        """See ``Context.tail`` and ``arrays``."""
        ids, mask, logprob, source, version, turn = super().tail(start)
        if self._discarded:
            kept = np.frombuffer(mask, np.uint8).copy()
            kept[self._gone(np.frombuffer(turn, "<i4"), np.frombuffer(source, np.uint8))] = 0
            mask = kept.tobytes()
        return ids, mask, logprob, source, version, turn

    def _gone(self, turn: npt.NDArray[np.int32], source: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
        gone: npt.NDArray[np.bool_] = np.isin(turn, sorted(self._discarded)) & (source == int(Source.SAMPLED))
        return gone
