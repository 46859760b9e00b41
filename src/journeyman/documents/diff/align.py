"""Two sequences side by side: what stayed, what was edited in place, what moved, came or went.

Equal items are anchored where they occur once on each side (patience), so that blank and repeated items follow their
surroundings; what lies between anchors is paired by likeness. The longest order kept is what stayed; the rest moved.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

SMALL = 400
"""Stretches without a unique item are matched exactly up to this length, position by position beyond."""

LIKE = 0.5
"""Two items pair as an edit when at least this share of them is equal."""


class Alignment(NamedTuple):
    """Positions from 0.

    ``kept`` pairs, in order on both sides, equal or edited in place; ``moved`` pairs of equal items out of order;
    ``deleted`` positions of the first sequence, ``inserted`` of the second.
    """

    kept: tuple[tuple[int, int], ...]
    moved: tuple[tuple[int, int], ...]
    deleted: tuple[int, ...]
    inserted: tuple[int, ...]

    @property
    def is_plain(self) -> bool:
        """Nothing that was kept changed its position, nothing moved."""
        return not self.moved and all(a == b for a, b in self.kept)


def align(
    a: Sequence[Hashable],
    b: Sequence[Hashable],
    likeness: Callable[[int, int], float] | None = None,
    is_blank: Callable[[Hashable], bool] = lambda item: not item,
) -> Alignment:
    """Pair two sequences of signatures.

    Args:
        a: first sequence.
        b: second sequence.
        likeness: share (0..1) of two unequal items, by position, that is equal; None pairs by place only.
        is_blank: such items never count as moved.
    """
    equal = _equal_pairs(a, b, 0, len(a), 0, len(b))
    kept = _fill(equal, len(a), len(b), likeness)
    used_a, used_b = {i for i, _ in kept}, {j for _, j in kept}
    deleted = [i for i in range(len(a)) if i not in used_a]
    inserted = [j for j in range(len(b)) if j not in used_b]
    moved = _moves(a, b, deleted, inserted, is_blank)
    gone, come = {i for i, _ in moved}, {j for _, j in moved}
    return Alignment(
        tuple(kept),
        tuple(moved),
        tuple(i for i in deleted if i not in gone),
        tuple(j for j in inserted if j not in come),
    )


def _equal_pairs(
    a: Sequence[Hashable], b: Sequence[Hashable], a0: int, a1: int, b0: int, b1: int
) -> list[tuple[int, int]]:
    head: list[tuple[int, int]] = []
    while a0 < a1 and b0 < b1 and a[a0] == b[b0]:
        head.append((a0, b0))
        a0, b0 = a0 + 1, b0 + 1
    tail: list[tuple[int, int]] = []
    while a0 < a1 and b0 < b1 and a[a1 - 1] == b[b1 - 1]:
        a1, b1 = a1 - 1, b1 - 1
        tail.append((a1, b1))
    middle: list[tuple[int, int]] = []
    if a0 < a1 and b0 < b1:
        anchors = _anchors(a, b, a0, a1, b0, b1)
        if anchors:
            x, y = a0, b0
            for i, j in [*anchors, (a1, b1)]:
                middle += _equal_pairs(a, b, x, i, y, j)
                if i < a1:
                    middle.append((i, j))
                x, y = i + 1, j + 1
        elif max(a1 - a0, b1 - b0) <= SMALL:
            blocks = SequenceMatcher(None, a[a0:a1], b[b0:b1], autojunk=False).get_matching_blocks()
            middle = [(a0 + one.a + k, b0 + one.b + k) for one in blocks for k in range(one.size)]
        else:
            middle = [(a0 + k, b0 + k) for k in range(min(a1 - a0, b1 - b0)) if a[a0 + k] == b[b0 + k]]
    return head + middle + tail[::-1]


def _anchors(a: Sequence[Hashable], b: Sequence[Hashable], a0: int, a1: int, b0: int, b1: int) -> list[tuple[int, int]]:
    """Items unique on both sides, longest order kept."""
    count_a, count_b = Counter(a[a0:a1]), Counter(b[b0:b1])
    where = {b[j]: j for j in range(b0, b1) if count_b[b[j]] == 1}
    pairs = [(i, where[a[i]]) for i in range(a0, a1) if count_a[a[i]] == 1 and a[i] in where]
    return [pairs[k] for k in longest_increasing([j for _, j in pairs])]


def longest_increasing(numbers: Sequence[int]) -> list[int]:
    """Indices of a longest increasing subsequence."""
    tails: list[int] = []
    at: list[int] = []
    previous: list[int] = []
    for index, number in enumerate(numbers):
        place = bisect_left(tails, number)
        if place == len(tails):
            tails.append(number)
            at.append(index)
        else:
            tails[place], at[place] = number, index
        previous.append(at[place - 1] if place else -1)
    found = []
    index = at[-1] if at else -1
    while index >= 0:
        found.append(index)
        index = previous[index]
    return found[::-1]


def _fill(
    equal: list[tuple[int, int]], n: int, m: int, likeness: Callable[[int, int], float] | None
) -> list[tuple[int, int]]:
    """Add, between equal pairs, what was edited in place."""
    kept: list[tuple[int, int]] = []
    x = y = 0
    for i, j in [*equal, (n, m)]:
        left, right = i - x, j - y
        if left and left == right:
            kept += [(x + k, y + k) for k in range(left) if likeness is None or left == 1 or likeness(x + k, y + k) > 0]
        elif left and right and likeness is not None and left * right <= SMALL * 10:
            kept += _by_likeness(x, i, y, j, likeness)
        if i < n or j < m:
            kept.append((i, j))
        x, y = i + 1, j + 1
    return [(i, j) for i, j in kept if i < n and j < m]


def _by_likeness(x: int, i: int, y: int, j: int, likeness: Callable[[int, int], float]) -> list[tuple[int, int]]:
    """Pairs in order with the largest sum of likeness, each at least ``LIKE``."""
    rows, columns = i - x, j - y
    share = [[likeness(x + r, y + c) for c in range(columns)] for r in range(rows)]
    best = [[0.0] * (columns + 1) for _ in range(rows + 1)]
    for r in range(rows - 1, -1, -1):
        for c in range(columns - 1, -1, -1):
            both = share[r][c] + best[r + 1][c + 1] if share[r][c] >= LIKE else 0.0
            best[r][c] = max(best[r + 1][c], best[r][c + 1], both)
    found = []
    r = c = 0
    while r < rows and c < columns:
        if share[r][c] >= LIKE and best[r][c] == share[r][c] + best[r + 1][c + 1]:
            found.append((x + r, y + c))
            r, c = r + 1, c + 1
        elif best[r][c] == best[r + 1][c]:
            r += 1
        else:
            c += 1
    return found


def _moves(
    a: Sequence[Hashable],
    b: Sequence[Hashable],
    deleted: list[int],
    inserted: list[int],
    is_blank: Callable[[Hashable], bool],
) -> list[tuple[int, int]]:
    waiting: dict[Hashable, list[int]] = {}
    for j in inserted:
        waiting.setdefault(b[j], []).append(j)
    moved = []
    for i in deleted:
        if not is_blank(a[i]) and waiting.get(a[i]):
            moved.append((i, waiting[a[i]].pop(0)))
    return moved


def runs(positions: Sequence[int]) -> list[tuple[int, int]]:
    """Ascending positions as inclusive runs."""
    found: list[tuple[int, int]] = []
    for position in positions:
        if found and position == found[-1][1] + 1:
            found[-1] = found[-1][0], position
        else:
            found.append((position, position))
    return found


def pair_runs(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """Pairs as blocks (first of a, first of b, length) that moved together."""
    found: list[tuple[int, int, int]] = []
    for i, j in sorted(pairs):
        if found and (i, j) == (found[-1][0] + found[-1][2], found[-1][1] + found[-1][2]):
            found[-1] = (found[-1][0], found[-1][1], found[-1][2] + 1)
        else:
            found.append((i, j, 1))
    return found
