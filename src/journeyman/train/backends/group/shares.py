"""Which rows go to which data-parallel rank: whole rows, equal numbers of micro-batches, nearly equal work."""

from __future__ import annotations

from collections.abc import Sequence

from journeyman.train.balancing import balance
from journeyman.train.packing import grouped_batches


def shares_of(lengths: Sequence[int], groups: Sequence[int], cap: int, ranks: int) -> list[list[list[int]]]:
    """Per rank, its micro-batches of row indices; an empty one is run with a row that weighs nothing.

    Args:
        lengths: tokens of each row, positive.
        groups: the prompt of each row; rows of one prompt stay side by side where it costs nothing.
        cap: tokens per micro-batch; only a single longer row exceeds it.
        ranks: data-parallel ranks.
    """
    if not lengths:
        return [[] for _ in range(ranks)]
    return balance(grouped_batches(lengths, groups, cap), ranks, lengths=lengths)
