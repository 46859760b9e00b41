"""A context in which a sampled turn can be left behind: it stays stored, in a segment of its own, with mask 0."""

from __future__ import annotations

import numpy as np

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
        gone = np.isin(columns.turn, sorted(self._discarded)) & (columns.source == int(Source.SAMPLED))
        columns.mask[gone] = 0
        return columns
