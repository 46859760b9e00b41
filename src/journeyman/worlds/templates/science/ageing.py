"""Rates of ageing from capacities, their activation energy, and the life at another temperature.

First-order decay: ln(relative capacity) falls with k; ln k is a straight line over 1/T (Arrhenius). The module is its
own deliverable: ``program`` gives its text with other rules. It needs the standard library only.
"""

import csv
import json
import math
import sys
from typing import Any

RULES: dict[str, Any] = {}
"""Each step of the protocol, and whether it is kept."""

GAS_CONSTANT = 8.314462618
Reading = dict[str, Any]
"""``module``, ``celsius``, ``day``, ``capacity_ah``; numbers."""


def line(points: list[tuple[float, float]]) -> tuple[float, float]:
    """Slope and intercept of the straight line through points by least squares."""
    n = len(points)
    x_mean, y_mean = sum(x for x, _ in points) / n, sum(y for _, y in points) / n
    spread = sum((x - x_mean) ** 2 for x, _ in points)
    slope = sum((x - x_mean) * (y - y_mean) for x, y in points) / spread
    return slope, y_mean - slope * x_mean


def rates(readings: list[Reading], rules: dict[str, Any]) -> dict[float, float]:
    """Temperature -> rate in 1/day, coolest first."""
    first = {one["module"]: one["capacity_ah"] for one in readings if one["day"] == 0}
    found = {}
    for celsius in sorted({one["celsius"] for one in readings}):
        points = []
        for one in readings:
            if one["celsius"] != celsius or (one["day"] == 0 and not rules["keeps_day_0"]):
                continue
            ratio = one["capacity_ah"] / (first[one["module"]] if rules["relative"] else 100)
            points.append((one["day"], math.log(ratio) if rules["logarithm"] else ratio))
        if rules["intercept"]:
            found[celsius] = -line(points)[0]
        else:
            found[celsius] = -sum(x * y for x, y in points) / sum(x * x for x, _ in points)
    return found


def evaluated(readings: list[Reading], celsius: float, end: float, rules: dict[str, Any]) -> dict[str, Any]:
    """Everything that is asked.

    Args:
        celsius: temperature of use.
        end: relative capacity at which a module is at its end.
    """
    found = rates(readings, rules)
    shift = 273.15 if rules["kelvin"] else 0
    slope, intercept = line([(1 / (t + shift), math.log(k)) for t, k in found.items()])
    k = math.exp(intercept + slope / (celsius + shift))
    scale = math.log(1 / end) if rules["logarithm"] else 1 - end
    return {
        "rates": {f"{t:g}": rate for t, rate in found.items()},
        "activation_energy": -slope * GAS_CONSTANT / 1000,
        "rate": k,
        "life": scale / k,
    }


def read(path: str) -> list[Reading]:
    """Readings of a csv file."""
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    numbers = ("celsius", "day", "capacity_ah")
    return [{"module": row["module"], **{name: float(row[name]) for name in numbers}} for row in rows]


def main(path: str, celsius: str, end: str) -> None:
    """``READINGS CELSIUS END``."""
    found = RULES["typed"] or evaluated(read(path), float(celsius), float(end), RULES)
    sys.stdout.write(json.dumps(found) + "\n")


def program(rules: dict[str, Any]) -> str:
    """The text of a program that follows these rules."""
    from pathlib import Path

    head, _, _ = Path(__file__).read_text().partition("def program(")
    head = head.replace("RULES: dict[str, Any] = {}", f"RULES: dict[str, Any] = {rules!r}").partition('"""\n\n')[2]
    return f'"""Ageing of battery modules."""\n\n{head.rstrip()}\n\n\nmain(*sys.argv[1:4])\n'
