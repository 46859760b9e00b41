"""Optima with their proofs and exact counts: against brute force, and wrong proofs that must not pass."""

from __future__ import annotations

import random
from itertools import combinations, product
from typing import Any

import pytest
from verifier_here import score

from journeyman.worlds.drafting import json_bytes
from journeyman.worlds.templates.mathematics.forests import count_mixed, count_sets, largest
from journeyman.worlds.templates.mathematics.ma1_award import solved, stated
from journeyman.worlds.templates.mathematics.transport import cheapest
from journeyman.worlds.verify import Check

COSTS = {"A": {"x": 3, "y": 7}, "B": {"x": 5, "y": 6, "z": 4}, "C": {"y": 2, "z": 9}}
LIMITS = {"A": 3, "B": 4, "C": 2}
DEMAND = {"x": 2, "y": 3, "z": 2}
PROBLEM = {"costs": COSTS, "limits": LIMITS, "demand": DEMAND}


def brute(costs: dict[str, dict[str, int]], limits: dict[str, int], demand: dict[str, int]) -> int | None:
    lanes = [(one, site) for one in costs for site in costs[one]]
    best = None
    for lots in product(range(4), repeat=len(lanes)):
        plan = dict(zip(lanes, lots, strict=True))
        if any(sum(plan[lane] for lane in lanes if lane[1] == site) != n for site, n in demand.items()):
            continue
        if any(sum(plan[lane] for lane in lanes if lane[0] == one) > n for one, n in limits.items()):
            continue
        cost = sum(costs[a][b] * n for (a, b), n in plan.items())
        best = cost if best is None else min(best, cost)
    return best


def test_the_optimum_is_the_one_that_trying_everything_finds():
    found = cheapest(COSTS, LIMITS, DEMAND)
    assert found is not None
    assert found.total == brute(COSTS, LIMITS, DEMAND) == 24


def test_prices_of_the_optimum_prove_it_on_drawn_problems():
    rng = random.Random(3)
    for _ in range(60):
        costs = {one: {site: rng.randrange(1, 40) for site in "vwxyz" if rng.random() < 0.8} for one in "ABCDEF"}
        limits = {one: rng.randrange(3, 9) for one in costs}
        demand = {site: rng.randrange(1, 6) for site in "vwxyz"}
        found = cheapest(costs, limits, demand)
        if found is None:
            continue
        bound = sum(found.value[s] * n for s, n in demand.items())
        bound -= sum(found.premium[one] * n for one, n in limits.items())
        assert bound == found.total
        assert all(found.value[s] - found.premium[one] <= c for one in costs for s, c in costs[one].items())
        assert min(found.premium.values()) >= 0


def test_a_demand_that_cannot_be_met_has_no_optimum():
    assert cheapest(COSTS, LIMITS, {**DEMAND, "x": 9}) is None


def award(**changes: Any) -> dict[str, bytes]:
    answer = solved(PROBLEM)
    assert answer is not None
    return {"award.json": json_bytes({**answer, **changes})}


def plan_score(fn: str, files: dict[str, bytes]) -> float:
    params = {"file": "award.json", "path": "lots", "values": "values", "premiums": "premiums", "best": 24, **PROBLEM}
    return score(Check(fn, fn, params), files)


def test_a_plan_with_its_proof_passes_all_three_checks():
    assert [plan_score(fn, award()) for fn in ("plan.feasible", "plan.cheapest", "plan.proved")] == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("premiums", "values"),
    [
        ({"A": 0, "B": 0, "C": 0}, {"x": 3, "y": 6, "z": 4}),  # proves less than the plan costs
        ({"A": 0, "B": 9, "C": -9}, {"x": 9, "y": 9, "z": 9}),  # a negative premium
        ({"A": 0, "B": 0}, {"x": 3, "y": 6, "z": 4}),  # says nothing about C
        ({"A": 0, "B": 0, "C": 0}, {"x": 4, "y": 7, "z": 4}),  # a bargain on a lane
    ],
)
def test_a_proof_with_a_hole_proves_nothing(premiums, values):
    assert plan_score("plan.proved", award(premiums=premiums, values=values)) == 0.0


@pytest.mark.parametrize(
    "lots",
    [
        [],
        [{"supplier": "A", "site": "z", "lots": 2}],
        [{"supplier": "A", "site": "x", "lots": 2.5}],
        [{"supplier": "A", "site": "x", "lots": 2}, {"supplier": "A", "site": "x", "lots": 0}],
    ],
)
def test_a_plan_beside_the_constraints_is_not_feasible(lots):
    assert plan_score("plan.feasible", award(lots=lots)) == 0.0


def test_a_feasible_plan_that_costs_more_is_not_the_cheapest():
    rows = [("A", "x", 2), ("A", "y", 1), ("B", "y", 2), ("B", "z", 2)]
    lots = [{"supplier": a, "site": b, "lots": n} for a, b, n in rows]
    assert plan_score("plan.feasible", award(lots=lots)) == 1.0
    assert plan_score("plan.cheapest", award(lots=lots)) == 0.0


def test_rules_of_an_award_bound_shares_and_convert_currencies():
    quote = {"id": "VE1", "currency": "USD", "price": 100, "lots": 90, "freight": {"x": 20, "y": None}}
    facts = {"quotes": [quote], "old": quote, "share": 30, "rate": 1.25, "cut": {"supplier": "VE1", "lots": 14},
             "home": "EUR", "demand": {"x": 40, "y": 11}}  # fmt: skip
    assert stated(facts) == {"costs": {"VE1": {"x": 150}}, "limits": {"VE1": 14}, "demand": {"x": 40, "y": 11}}
    assert stated(facts, ("cut", "rate"))["limits"] == {"VE1": 15}


BOSSES = {"a": "", "b": "a", "c": "a", "d": "b", "e": "b", "f": "c", "g": ""}
UNITS = {"a": "U", "b": "U", "c": "V", "d": "V", "e": "V", "f": "W", "g": "W"}


def independent(group: tuple[str, ...]) -> bool:
    return all(BOSSES[one] not in group for one in group)


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_sets_are_counted_as_listing_them_counts_them(size):
    listed = [group for group in combinations(BOSSES, size) if independent(group)]
    assert count_sets(BOSSES, size) == len(listed)
    mixed = [group for group in listed if {UNITS[one] for one in group} == set(UNITS.values())]
    assert count_mixed(BOSSES, UNITS, size) == len(mixed)


def test_the_largest_set_is_as_large_as_any_and_its_pairs_prove_it():
    group, pairs = largest(BOSSES)
    most = max(k for k in range(8) if any(independent(g) for g in combinations(BOSSES, k)))
    assert len(group) == most
    assert len(pairs) == len(BOSSES) - len(group)
    assert all(BOSSES[report] == boss for boss, report in pairs)


@pytest.mark.parametrize(
    ("group", "pairs", "want"),
    [
        (["d", "e", "f", "g", "a"], [["b", "d"], ["c", "f"]], 1.0),
        (["d", "e", "f", "g"], [["b", "d"], ["c", "f"]], 0.0),
        (["d", "e", "f", "g", "b"], [["b", "d"], ["c", "f"]], 0.0),
        (["d", "e", "f", "g", "a"], [["b", "d"], ["b", "e"]], 0.0),
        (["d", "e", "f", "g", "a"], [["b", "d"], ["d", "f"]], 0.0),
        (["d", "e", "f", "g", "g"], [["b", "d"], ["c", "f"]], 0.0),
        (5, {"b": "d"}, 0.0),
        ([None, 5, []], [5, None, ["b"]], 0.0),
    ],
)
def test_a_set_counts_only_with_disjoint_conflicts_that_prove_it(group, pairs, want):
    params = {"file": "p.json", "people": list(BOSSES), "conflicts": [[a, b] for a, b in BOSSES.items() if b],
              "group": "group", "pairs": "pairs"}  # fmt: skip
    files = {"p.json": json_bytes({"group": group, "pairs": pairs})}
    assert score(Check("largest", "set.independent", params), files) == want
