"""Sets of people without anybody beside their own manager: how many there are of a size, and a largest one with proof.

Who reports to whom is a forest, so polynomials over subtrees count exactly: a coefficient of ``x**k`` is the number of
sets of ``k``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

Bosses = Mapping[str, str]
"""Person -> manager, empty where there is none among them."""


def within(bosses: Bosses, members: Iterable[str]) -> dict[str, str]:
    """The same for some of them; a manager who is not among them is none."""
    kept = set(members)
    return {one: bosses[one] if bosses[one] in kept else "" for one in bosses if one in kept}


def deepest_first(bosses: Bosses) -> list[str]:
    """Everybody, reports before their managers.

    Raises:
        ValueError: somebody is above and below somebody.
    """
    depth: dict[str, int] = {}
    for person in bosses:
        steps, at = 0, bosses[person]
        while at:
            steps, at = steps + 1, bosses[at]
            if steps > len(bosses):
                raise ValueError(f"{person} is above and below somebody")
        depth[person] = steps
    return sorted(bosses, key=lambda one: (-depth[one], one))


def _times(one: Sequence[int], other: Sequence[int], size: int) -> list[int]:
    made = [0] * (size + 1)
    for i, a in enumerate(one):
        for j, b in enumerate(other[: size + 1 - i]):
            made[i + j] += a * b
    return made


def count_sets(bosses: Bosses, size: int) -> int:
    """Number of sets of ``size`` people in which nobody is beside their own manager."""
    out: dict[str, list[int]] = {one: [1] + [0] * size for one in ("", *bosses)}
    inside: dict[str, list[int]] = {one: [0, 1] + [0] * (size - 1) for one in bosses}
    for one in deepest_first(bosses):
        boss = bosses[one]
        either = [a + b for a, b in zip(out[one], inside[one][: size + 1], strict=True)]
        out[boss] = _times(out[boss], either, size)
        if boss:
            inside[boss] = _times(inside[boss], out[one], size)
    return out[""][size]


def count_mixed(bosses: Bosses, units: Mapping[str, str], size: int) -> int:
    """The same, of sets with at least one member of each unit: inclusion and exclusion over units left out."""
    names = sorted(set(units.values()))
    total = 0
    for number in range(len(names)):
        for gone in combinations(names, number):
            kept = within(bosses, [one for one in bosses if units[one] not in gone])
            total += (-1) ** number * count_sets(kept, size)
    return total


def largest(bosses: Bosses) -> tuple[list[str], list[tuple[str, str]]]:
    """A largest such set, and as many disjoint (manager, report) pairs as there are people outside it."""
    chosen, pairs, blocked = [], [], set()
    for one in deepest_first(bosses):
        if one in blocked:
            continue
        chosen.append(one)
        boss = bosses[one]
        if boss and boss not in blocked:
            blocked.add(boss)
            pairs.append((boss, one))
    return sorted(chosen), sorted(pairs)
