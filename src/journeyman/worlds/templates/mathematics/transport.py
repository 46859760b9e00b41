"""Cheapest shipments from suppliers with limits to sites with demands, and prices that prove that none are cheaper.

Minimum-cost flow by successive shortest paths (Ford and Fulkerson; potentials by Bellman and Ford). All whole numbers,
so everything is exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

Costs = Mapping[str, Mapping[str, int]]
"""Supplier -> site -> cost of a lot; lanes that do not exist are left out."""

SOURCE = ""


@dataclass(frozen=True)
class Optimum:
    """``lots`` by (supplier, site), all positive; ``total``; values of sites and premiums of suppliers prove it:
    ``value[site] - premium[supplier] <= cost`` on every lane, premiums are not negative, and
    ``sum(value * demand) - sum(premium * limit)`` is ``total``."""

    lots: dict[tuple[str, str], int]
    total: int
    value: dict[str, int]
    premium: dict[str, int]


def cheapest(costs: Costs, limits: Mapping[str, int], demand: Mapping[str, int]) -> Optimum | None:
    """The optimum, None where the demand cannot be met."""
    lots: dict[tuple[str, str], int] = {}
    used = dict.fromkeys(limits, 0)
    need = dict(demand)
    while any(need.values()):
        path = _cheapest_path(costs, limits, used, lots, need)
        if path is None:
            return None
        supplier, site = path[0], path[-1]
        pairs = list(pairwise(path))
        room = min([limits[supplier] - used[supplier], need[site],
                    *(lots[b, a] for a, b in pairs if a not in costs)])  # fmt: skip
        for a, b in pairs:
            lane, sign = ((a, b), 1) if a in costs else ((b, a), -1)
            lots[lane] = lots.get(lane, 0) + sign * room
        used[supplier] += room
        need[site] -= room
    lots = {lane: count for lane, count in sorted(lots.items()) if count}
    level, _ = _levels(costs, limits, used, lots, {SOURCE: 0, **dict.fromkeys(limits, 0), **dict.fromkeys(demand, 0)})
    base = level[SOURCE]
    total = sum(costs[a][b] * count for (a, b), count in lots.items())
    return Optimum(lots, total, {site: int(level[site] - base) for site in demand},
                   {one: max(0, int(level[one] - base)) for one in limits})  # fmt: skip


def _cheapest_path(
    costs: Costs, limits: Mapping[str, int], used: Mapping[str, int], lots: Mapping[tuple[str, str], int],
    need: Mapping[str, int],
) -> list[str] | None:  # fmt: skip
    """Supplier, site, supplier, ..., site: where one more lot costs least."""
    level, before = _levels(costs, limits, used, lots, {SOURCE: 0})
    open_sites = [site for site, count in need.items() if count and site in level]
    if not open_sites:
        return None
    at = min(open_sites, key=lambda site: (level[site], site))
    path = [at]
    while before[path[0]] != SOURCE:
        path.insert(0, before[path[0]])
    return path


def _levels(
    costs: Costs, limits: Mapping[str, int], used: Mapping[str, int], lots: Mapping[tuple[str, str], int],
    start: Mapping[str, int],
) -> tuple[dict[str, int], dict[str, str]]:  # fmt: skip
    """Least cost of reaching each node of the residual graph from those of ``start``, and from where."""
    arcs = [(SOURCE, one, 0) for one in sorted(limits) if used[one] < limits[one]]
    arcs += [(one, SOURCE, 0) for one in sorted(limits) if used[one]]
    arcs += [(one, site, cost) for one in sorted(costs) for site, cost in sorted(costs[one].items())]
    arcs += [(site, one, -costs[one][site]) for (one, site), count in sorted(lots.items()) if count]
    level, before = dict(start), {}
    for _ in range(len(limits) + len({site for one in costs.values() for site in one}) + 1):
        has_moved = False
        for a, b, cost in arcs:
            if a in level and level[a] + cost < level.get(b, level[a] + cost + 1):
                level[b], before[b], has_moved = level[a] + cost, a, True
        if not has_moved:
            break
    return level, before
