"""Micro-batches to ranks: pack first, distribute second. Pure Python over lengths: no tensor, no process group.

Every rank gets as many micro-batches as any other, so that no collective waits for one that never comes. Bins are only
ever split, never merged, so no cap that held before is passed; every index stays placed exactly once.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Sequence

from journeyman.errors import InputError

LINEAR_TOKENS = 24576.0
"""Length at which attention costs as much as everything else: 6 x hidden, here for a hidden size of 4,096."""

MAX_SWAPS = 256
"""Exchanges between ranks at most; each is linear in the bins of a rank, and most plans need a few dozen."""

Bins = list[list[int]]


def cost_of(lengths: Sequence[int], bin_: Sequence[int], linear: float = LINEAR_TOKENS) -> float:
    """Work of one bin in squared tokens: ``sum(linear L + L^2)``, proportional to a decoder's operations."""
    return sum(lengths[i] * (linear + lengths[i]) for i in bin_)


def balance(
    bins: Sequence[Sequence[int]], ranks: int, *, lengths: Sequence[int], linear: float = LINEAR_TOKENS
) -> list[Bins]:
    """Give bins to ranks: as many to each, and as nearly the same work as swapping finds.

    Args:
        bins: of ``pack``: indices into ``lengths``.
        ranks: data-parallel ranks.
        lengths: tokens of each sequence.
        linear: tokens at which a sequence's quadratic cost equals its linear cost.

    Returns:
        Per rank, its bins, the dearest first, so that ranks that wait for each other after each micro-batch wait for
        ones of like cost. Where there are fewer sequences than places, the last bins are empty: a rank then runs
        a forward and backward of weight 0.

    Raises:
        InputError: ``ranks`` is not positive, or there is no bin.
    """
    if ranks <= 0:
        raise InputError("ranks", f"got {ranks}", allowed="a positive number")
    if not bins:
        raise InputError("bins", "none given", allowed="at least one")
    work = split_to([list(b) for b in bins], -(-len(bins) // ranks) * ranks, lengths, linear)
    costs = [cost_of(lengths, b, linear) for b in work]
    plan = _dealt(costs, ranks)
    _swap(plan, costs)
    return [[work[b] for b in sorted(rank, key=lambda b: (-costs[b], b))] for rank in plan]


def split_to(bins: Bins, count: int, lengths: Sequence[int], linear: float = LINEAR_TOKENS) -> Bins:
    """``count`` bins out of fewer: the dearest bin of more than one sequence is halved, again and again.

    Bins stay empty where no bin of more than one sequence is left.
    """
    heap = [(-cost_of(lengths, b, linear), i) for i, b in enumerate(bins) if len(b) > 1]
    heapq.heapify(heap)
    bins = [list(b) for b in bins]
    while len(bins) < count and heap:
        _, i = heapq.heappop(heap)
        halves: tuple[list[int], list[int]] = ([], [])
        work = [0.0, 0.0]
        for k in sorted(bins[i], key=lambda k: (-lengths[k], k)):
            lighter = int(work[1] < work[0])
            halves[lighter].append(k)
            work[lighter] += cost_of(lengths, [k], linear)
        bins[i] = halves[0]
        bins.append(halves[1])
        for place in (i, len(bins) - 1):
            if len(bins[place]) > 1:
                heapq.heappush(heap, (-cost_of(lengths, bins[place], linear), place))
    return bins + [[] for _ in range(count - len(bins))]


def _dealt(costs: Sequence[float], ranks: int) -> list[list[int]]:
    """Round by round, the dearest bins left to the ranks with the least so far."""
    order = sorted(range(len(costs)), key=lambda b: (-costs[b], b))
    plan: list[list[int]] = [[] for _ in range(ranks)]
    load = [0.0] * ranks
    for start in range(0, len(order), ranks):
        waiting = sorted(range(ranks), key=lambda r: (load[r], r))
        for rank, b in zip(waiting, order[start : start + ranks], strict=True):
            plan[rank].append(b)
            load[rank] += costs[b]
    return plan


def _swap(plan: list[list[int]], costs: Sequence[float]) -> None:
    """Exchange single bins of the heaviest rank with others' as long as the heavier of the two gets lighter."""
    load = [sum(costs[b] for b in rank) for rank in plan]
    for bins in plan:
        bins.sort(key=costs.__getitem__)
    for _ in range(MAX_SWAPS):
        heaviest = max(range(len(plan)), key=load.__getitem__)
        for partner in sorted(range(len(plan)), key=load.__getitem__):
            gap = load[heaviest] - load[partner]
            found = _exchange(plan[heaviest], plan[partner], costs, gap) if gap > 0 else None
            if found is not None:
                break
        else:
            return
        mine, theirs = plan[heaviest].pop(found[0]), plan[partner].pop(found[1])
        for rank, b in ((heaviest, theirs), (partner, mine)):
            plan[rank].insert(bisect_left(plan[rank], costs[b], key=costs.__getitem__), b)
        load[heaviest] -= costs[mine] - costs[theirs]
        load[partner] += costs[mine] - costs[theirs]


def _exchange(heavy: list[int], light: list[int], costs: Sequence[float], gap: float) -> tuple[int, int] | None:
    """Places of the two bins, each list ascending by cost, whose exchange comes nearest to moving half the gap."""
    best, where = gap / 2 * (1 - 1e-9), None
    for i, b in enumerate(heavy):
        at = bisect_left(light, costs[b] - gap / 2, key=costs.__getitem__)
        for j in (at - 1, at):
            if 0 <= j < len(light) and abs(costs[b] - costs[light[j]] - gap / 2) < best:
                best, where = abs(costs[b] - costs[light[j]] - gap / 2), (i, j)
    return where
