"""Checks of optima: a plan keeps its constraints, and what is delivered beside it proves that there is no better one.

Nothing here searches. A proof is checked: prices for a plan of shipments (duality of linear programmes), pairs for a
set without conflicts (each pair can give one member at most).
"""

from __future__ import annotations

from typing import Any

from .bundle import Bundle
from .comparing import normal, number_of, shown
from .outcome import Outcome
from .tables import at_path

Lanes = dict[tuple[str, str], int]


def feasible(bundle: Bundle, params: dict[str, Any]) -> Outcome:
    """A plan meets every demand, no limit is passed, and only lanes that exist are used.

    Params: ``file``; ``path``: list of ``{supplier, site, lots}``; ``costs``: supplier -> site -> whole number;
    ``limits``: supplier -> lots; ``demand``: site -> lots.
    """
    lots, findings = _plan(bundle, params)
    findings += _broken(lots, params)
    return Outcome.of(0.0 if findings else 1.0, f"{len(lots)} shipments", findings)


def cheapest(bundle: Bundle, params: dict[str, Any]) -> Outcome:
    """A feasible plan costs what the cheapest one costs. Params: as ``feasible``; ``best``: that cost."""
    lots, findings = _plan(bundle, params)
    findings += _broken(lots, params)
    if findings:
        return Outcome.of(0.0, "no feasible plan", findings)
    is_best = _cost(lots, params) == params["best"]
    return Outcome.when(is_best, "no plan is cheaper", "a cheaper plan exists")


def proved(bundle: Bundle, params: dict[str, Any]) -> Outcome:
    """Prices prove that the delivered plan is the cheapest: by them no lane is a bargain, and they add up to its cost.

    Params: as ``feasible``; ``values``: path of site -> value; ``premiums``: path of supplier -> premium.
    """
    lots, findings = _plan(bundle, params)
    findings += _broken(lots, params)
    values = _prices(bundle, params, params["values"], params["demand"], findings)
    premiums = _prices(bundle, params, params["premiums"], params["limits"], findings)
    if findings:
        return Outcome.of(0.0, "nothing is proved", findings)
    findings += [f"the premium of {one} is negative" for one, price in premiums.items() if price < 0]
    for (one, site), cost in _lanes(params).items():
        if values[site] - premiums[one] > cost + 1e-6:
            findings.append(f"value less premium is above the cost of {one} to {site}")
    bound = sum(values[normal(site)] * lots_ for site, lots_ in params["demand"].items())
    bound -= sum(premiums[normal(one)] * limit for one, limit in params["limits"].items())
    if abs(bound - _cost(lots, params)) > 1e-6:
        findings.append(f"the prices come to {shown(bound)}, the plan costs something else")
    return Outcome.of(0.0 if findings else 1.0, f"{len(_lanes(params))} lanes", findings)


def independent(bundle: Bundle, params: dict[str, Any]) -> Outcome:
    """A set without conflicts that no set can exceed, shown by disjoint conflicts: each costs any set one member.

    Params: ``file``; ``people``: all ids; ``conflicts``: pairs of ids; ``group``: path of the delivered ids;
    ``pairs``: path of the delivered pairs.
    """
    value = bundle.json(params["file"])
    people = {normal(one) for one in params["people"]}
    conflicts = {frozenset(map(normal, pair)) for pair in params["conflicts"]}
    group = [normal(one) for one in _list(value, params["group"])]
    pairs = [[normal(one) for one in (pair if isinstance(pair, list) else [pair])]
             for pair in _list(value, params["pairs"])]  # fmt: skip
    findings = [f"{shown(one)} is not among them" for one in group if one not in people]
    findings += [f"{one} stands there more than once" for one in sorted(set(group)) if group.count(one) > 1]
    findings += [f"{a} and {b} are in conflict" for a in group for b in group if a < b and {a, b} in conflicts]
    findings += [f"{shown(pair)} is no conflict" for pair in pairs if len(pair) != 2 or set(pair) not in conflicts]
    paired = [one for pair in pairs for one in pair]
    if len(set(paired)) != len(paired):
        findings.append("a member stands in two pairs")
    if not findings and len(group) + len(pairs) != len(people):
        findings.append(f"{len(group)} members and {len(pairs)} pairs prove nothing about {len(people)}")
    return Outcome.of(0.0 if findings else 1.0, f"{len(group)} members, {len(pairs)} pairs", findings)


def _list(value: Any, path: str) -> list[Any]:
    found = at_path(value, path)
    return found if isinstance(found, list) else []


def _plan(bundle: Bundle, params: dict[str, Any]) -> tuple[Lanes, list[str]]:
    found: Lanes = {}
    findings = []
    for row in _list(bundle.json(params["file"]), params["path"]):
        row = row if isinstance(row, dict) else {}
        lane = normal(row.get("supplier") or ""), normal(row.get("site") or "")
        count = number_of(row.get("lots"))
        if count is None or count < 0 or count != int(count):
            findings.append(f"{' to '.join(lane)}: {shown(row.get('lots'))} is no number of lots")
        elif lane in found:
            findings.append(f"{' to '.join(lane)} stands there more than once")
        else:
            found[lane] = int(count)
    return {lane: count for lane, count in found.items() if count}, findings


def _lanes(params: dict[str, Any]) -> Lanes:
    return {(normal(one), normal(site)): cost for one, to in params["costs"].items() for site, cost in to.items()}


def _broken(lots: Lanes, params: dict[str, Any]) -> list[str]:
    lanes = _lanes(params)
    found = [f"{one} does not deliver to {site}" for one, site in lots if (one, site) not in lanes]
    for at, wanted in ((0, params["limits"]), (1, params["demand"])):
        for name, count in wanted.items():
            given = sum(lots[lane] for lane in lots if lane[at] == normal(name))
            if given > count if at == 0 else given != count:
                found.append(f"{name} has {given} lots, {'more than its limit' if at == 0 else 'not what it needs'}")
    return found


def _cost(lots: Lanes, params: dict[str, Any]) -> int:
    lanes = _lanes(params)
    return sum(lanes[lane] * count for lane, count in lots.items())


def _prices(
    bundle: Bundle, params: dict[str, Any], path: str, names: dict[str, Any], findings: list[str]
) -> dict[str, float]:
    """A price for every name; what has none is a finding."""
    given = at_path(bundle.json(params["file"]), path)
    by_name = {normal(name): number_of(price) for name, price in given.items()} if isinstance(given, dict) else {}
    findings += [f"{path} says nothing about {name}" for name in names if by_name.get(normal(name)) is None]
    return {name: price for name, price in by_name.items() if price is not None}
