"""Load of a building from weather and use, by weights that were fitted elsewhere.

The module is its own deliverable: ``program`` gives its text with weights. It needs the standard library only.
"""

import csv
import sys
from datetime import date
from typing import Any

MODEL: dict[str, Any] = {}
"""``weights`` by name, ``changed`` (day from which the sensor is in degrees Fahrenheit), and what is cared for."""

LOW, HIGH = 15.0, 22.0
"""Degrees Celsius between which the building is neither heated nor cooled."""

Row = dict[str, str]


def inputs(row: Row, model: dict[str, Any]) -> dict[str, float]:
    """What the weights multiply, by name."""
    outdoor = float(row["outdoor"])
    if model["converts"] and row["day"] >= model["changed"]:
        outdoor = (outdoor - 32) * 5 / 9
    made = {"constant": 1.0, "occupancy": float(row["occupancy"]), "solar": float(row["solar"]) / 100}
    if not model["hinges"]:
        return {**made, "outdoor": outdoor}
    made["heating"], made["cooling"] = max(0.0, LOW - outdoor), max(0.0, outdoor - HIGH)
    if model["weekends"]:
        is_free = date.fromisoformat(row["day"]).weekday() >= 5
        made["heating_free"], made["cooling_free"] = (made[name] * is_free for name in ("heating", "cooling"))
    return made


def load_of(row: Row, model: dict[str, Any]) -> float:
    """Predicted load in kW."""
    weights = model["weights"]
    return sum((weights.get(name) or 0.0) * value for name, value in inputs(row, model).items())


def main(path: str) -> None:
    """A prediction a line, in the order of the rows."""
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            sys.stdout.write(f"{load_of(row, MODEL):.6f}\n")


def program(model: dict[str, Any]) -> str:
    """The text of a program with this model."""
    from pathlib import Path

    head, _, _ = Path(__file__).read_text().partition("def program(")
    head = head.replace("MODEL: dict[str, Any] = {}", f"MODEL: dict[str, Any] = {model!r}").partition('"""\n\n')[2]
    return f'"""Predict the load of a building."""\n\n{head.rstrip()}\n\n\nmain(sys.argv[1])\n'
