"""The experts that a trial's tokens were routed to: told turn by turn, stored as one array beside the tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from journeyman.engines.experts import Experts, unpacked


@dataclass(frozen=True)
class RoutedTurn:
    """What one turn told.

    Attributes:
        start: stored token that the first row belongs to.
        data: rows as ``engines.experts.packed`` made them.
    """

    start: int
    data: bytes


def assembled(turns: Sequence[RoutedTurn], n_tokens: int) -> Experts:
    """One row per stored token, ``[n_tokens, layers, k]``; 0 where nothing was told, as of a last token, never fed.

    Raises:
        ValueError: rows of different shapes, or of tokens that there are not.
    """
    parts = [(turn.start, unpacked(turn.data)) for turn in turns]
    shapes = {part.shape[1:] for _, part in parts}
    if len(shapes) != 1:
        raise ValueError(f"routed experts of shapes {sorted(shapes)} in one trial")
    whole = np.zeros((n_tokens, *shapes.pop()), dtype=np.result_type(*(part.dtype for _, part in parts)))
    for start, part in parts:
        if start < 0 or start + len(part) > n_tokens:
            raise ValueError(f"routed experts of tokens {start} to {start + len(part)} of {n_tokens}")
        whole[start : start + len(part)] = part
    return whole
