"""Data sets for two models: who pays late, and what load a building draws. Test parts stay in the truth."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any

from journeyman.worlds.content import Content, Delimited, Text
from journeyman.worlds.draft import Draft
from journeyman.worlds.truth.store import Row

PAYMENTS, LOAD = "it/models/late_payment", "it/models/building_load"
PARTS = {"train": 600, "valid": 200, "test": 300}
"""Rows of each part of the payment history."""

LOAD_PARTS = {"train": 280, "valid": 110, "test": 160}
COMFORT_LOW, COMFORT_HIGH = 15.0, 22.0
PAYMENT_COLUMNS = ("invoice", "segment", "system", "net", "terms", "prior_late", "reminder", "late")
LOAD_COLUMNS = ("row", "day", "hour", "outdoor", "occupancy", "solar", "load")


def payments_exported(draft: Draft, event: Row) -> None:
    """Invoices with what was known when they were written, and whether they were paid late."""
    rng = draft.rng("payment history")
    segments = list(draft.setting.trade["segments"])
    lean = dict(zip(segments, rng.sample((-1.2, -0.4, 0.4, 1.2), len(segments)), strict=True))
    late, size, slack = rng.uniform(0.6, 0.9), rng.uniform(1.1, 1.6), rng.uniform(-0.06, -0.03)
    rows = []
    for number in range(1, sum(PARTS.values()) + 1):
        segment, terms = rng.choice(segments), rng.choice((14, 30, 60))
        net = round(math.exp(rng.gauss(8.6, 1.0)), 2)
        prior = min(5, int(rng.expovariate(0.7)))
        is_known, is_old, reminded = rng.random() > 0.15, rng.random() < 0.4, int(rng.random() < 0.3)
        score = lean[segment] + late * (prior - 1.2) + size * (math.log(net) - 8.6) + slack * (terms - 35)
        score += -1.6 * reminded if terms == 14 else 0.5 * reminded
        is_late = int(rng.random() < 1 / (1 + math.exp(-1.4 * score)))
        rows.append([f"LP{number:04d}", segment, "legacy" if is_old else "current",
                     round(net / 1000, 4) if is_old else net, terms, prior if is_known else -1, reminded,
                     is_late])  # fmt: skip
    card = (
        "# Late payment: the data\n\nOne line an invoice. `late` is 1 where it was paid after its term; test.csv has no"
        " `late`.\n\n"
        "- `net`: amount. Lines of the system `legacy` hold it in thousands, those of `current` in units.\n"
        "- `terms`: days until it was due. `reminder`: 1 where a friendly reminder went out before that.\n"
        "- `prior_late`: invoices the customer paid late in the year before; -1 where nobody knows.\n"
    )
    _publish(draft, event, "payments", PAYMENTS, PAYMENT_COLUMNS, _parts(rows, PARTS), card)


def load_logged(draft: Draft, event: Row) -> None:
    """Load of a building by weather and use; its outdoor sensor was exchanged on the way."""
    rng, today = draft.rng("load"), draft.setting.today
    start = today - timedelta(days=420)
    changed = today - timedelta(days=rng.randrange(180, 240))
    base, heat, cool = rng.uniform(30, 50), rng.uniform(2.0, 3.2), rng.uniform(2.6, 4.0)
    use, sun, idle = rng.uniform(0.3, 0.5), rng.uniform(0.015, 0.03), rng.uniform(0.5, 0.7)
    rows = []
    for number in range(1, sum(LOAD_PARTS.values()) + 1):
        day = start + timedelta(days=rng.randrange(400))
        if number % 10 == 0:  # so that the day of the change matters to the day
            day = changed - timedelta(days=rng.randrange(2))
        hour = rng.choice((6, 9, 12, 15, 18, 21))
        season = -math.cos(2 * math.pi * (day.timetuple().tm_yday - 20) / 365)
        outdoor = round(13 + 11 * season + 3 * math.sin(math.pi * (hour - 8) / 12) + rng.gauss(0, 4), 1)
        is_free = day.weekday() >= 5
        people = 0 if is_free else rng.randrange(20, 120) if 9 <= hour <= 18 else rng.randrange(0, 15)
        solar = max(0, round(500 * math.sin(math.pi * (hour - 5) / 14) * (1 + 0.5 * season) * rng.uniform(0.4, 1)))
        climate = heat * max(0.0, COMFORT_LOW - outdoor) + cool * max(0.0, outdoor - COMFORT_HIGH)
        load = base + climate * (idle if is_free else 1) + use * people - sun * solar + rng.gauss(0, 1.6)
        shown = round(outdoor * 9 / 5 + 32, 1) if day >= changed else outdoor
        rows.append([f"BL{number:04d}", day.isoformat(), hour, shown, people, solar, round(load, 2)])
    card = (
        "# Load of the head office: the data\n\nOne line a measurement: `day`, `hour`, `outdoor` (temperature),"
        " `occupancy` (people), `solar` (W/m2) and `load` (kW), which a model is to predict from the others.\n\n"
        "- Below about 15 degrees Celsius the building is heated, above about 22 it is cooled; in between neither.\n"
        "- On Saturdays and Sundays heating and cooling run at reduced power.\n"
        f"- The outdoor sensor was exchanged: from {changed.isoformat()} on `outdoor` is in degrees Fahrenheit, before"
        " in degrees Celsius.\n"
    )
    _publish(draft, event, "load", LOAD, LOAD_COLUMNS, _parts(rows, LOAD_PARTS), card, {"changed": changed.isoformat()})


def _parts(rows: list[list[Any]], sizes: dict[str, int]) -> dict[str, list[list[Any]]]:
    """Rows in their parts, each in its place."""
    parts, first = {}, 0
    for name, count in sizes.items():
        parts[name], first = rows[first : first + count], first + count
    return parts


def _publish(
    draft: Draft, event: Row, name: str, folder: str, columns: tuple[str, ...], parts: dict[str, list[list[Any]]],
    card: str, facts: dict[str, Any] | None = None,
) -> None:  # fmt: skip
    """Visible parts as files, all of them as truth. The test part shows its inputs for payments, nothing for load."""
    row = {"id": f"dataset:{name}", "model": "dataset", "name": name,
           "value": {"columns": columns, "parts": parts, **(facts or {})}}  # fmt: skip
    draft.truth.add("assumption", row, event=event["id"], at=event["date"])
    _file(draft, event, f"{folder}/card.md", f"{name}_card", Text(card))
    for part in ("train", "valid"):
        lines = (columns, *(tuple(map(str, line)) for line in parts[part]))
        _file(draft, event, f"{folder}/{part}.csv", f"{name}_{part}", Delimited(lines))
    if name == "payments":
        lines = (columns[:-1], *(tuple(map(str, line[:-1])) for line in parts["test"]))
        _file(draft, event, f"{folder}/test.csv", f"{name}_test", Delimited(lines))


def _file(draft: Draft, event: Row, path: str, kind: str, content: Content) -> None:
    draft.document(path, kind, content, event["id"], day=event["date"], author=draft.roles["data"]["name"])
