"""Micro-batches under a token budget. Pure Python over lengths: no tensor, no model.

Every index is placed exactly once; a bin exceeds the cap only where a single length does, and then holds nothing else.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence

from journeyman.errors import InputError


def pack(lengths: Sequence[int], cap: int) -> list[list[int]]:
    """Put sequences into as few bins of at most ``cap`` tokens as best fit on sorted lengths finds.

    Each sequence, longest first, goes where the least room is left that still takes it; at most one
    bin above the lower bound on the reference lengths (training.md section 10).

    Args:
        lengths: tokens of each sequence, positive.
        cap: tokens per bin.

    Returns:
        Bins of indices into ``lengths``, deterministic.

    Raises:
        InputError: a length or the cap is not positive.
    """
    _check(lengths, cap)
    order = sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True)
    alone = [[i] for i in order if lengths[i] > cap]
    bins: list[list[int]] = []
    room: list[int] = []  # free tokens * width + bin, ascending: one integer sorts faster than a pair
    width = len(lengths)
    for i in order[len(alone) :]:
        at = bisect_left(room, lengths[i] * width)
        if at < len(room):
            free, b = divmod(room.pop(at), width)
            bins[b].append(i)
        else:
            free, b = cap, len(bins)
            bins.append([i])
        insort(room, (free - lengths[i]) * width + b)
    return alone + bins


def grouped_batches(lengths: Sequence[int], groups: Sequence[int], cap: int) -> list[list[int]]:
    """Cut rows into micro-batches of at most ``cap`` tokens, rows of one group side by side to share prefixes.

    Groups come by their longest row, the longest first: what does not fit in memory shows at once.

    Args:
        lengths: tokens of each row, positive.
        groups: the group of each row.
        cap: tokens per micro-batch, shared prefixes counted in each row.

    Returns, Raises: as ``pack``.
    """
    _check(lengths, cap)
    longest: dict[int, int] = {}
    for length, group in zip(lengths, groups, strict=True):
        longest[group] = max(length, longest.get(group, 0))
    batches: list[list[int]] = []
    load = cap
    for i in sorted(range(len(lengths)), key=lambda i: (-longest[groups[i]], groups[i], -lengths[i])):
        if load + lengths[i] > cap:
            batches.append([])
            load = 0
        batches[-1].append(i)
        load += lengths[i]
    return batches


def _check(lengths: Sequence[int], cap: int) -> None:
    if cap <= 0:
        raise InputError("cap", f"got {cap}", allowed="a positive number of tokens")
    shortest = min(lengths, default=1)
    if shortest <= 0:
        raise InputError(f"lengths[{list(lengths).index(shortest)}]", f"got {shortest}", allowed="positive lengths")
