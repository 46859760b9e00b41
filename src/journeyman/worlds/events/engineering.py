"""What engineers work on: a repository whose report is wrong, a specification, raw exports to be cleaned."""

from __future__ import annotations

from datetime import timedelta
from random import Random

from journeyman.worlds.content import Delimited, Text
from journeyman.worlds.data import pack
from journeyman.worlds.draft import Draft
from journeyman.worlds.simulate.calendars import month_start
from journeyman.worlds.simulate.commercial import REGIONS
from journeyman.worlds.truth.store import Row

REPO = "it/monthly_report"
NUM_BOOKINGS, NUM_ORDERS = 160, 110


def script_broken(draft: Draft, event: Row) -> None:
    """The repository with one bug in it, its data, the specification of another tool; complaints in chat."""
    rng, library = draft.rng("repository"), pack("reporting_repo")
    bug = rng.choice(sorted(library["bugs"]))
    known = library["bugs"][bug]
    draft.truth.add(
        "defect",
        {"id": "DF-repo", "document": REPO, "kind": bug, "term": known["file"], "place": known["wrong"]},
        event=event["id"],
        at=event["date"],
    )
    author = draft.roles["data"]["name"]
    for name, text in library["files"].items():
        if name == known["file"]:
            assert known["right"] in text
            text = text.replace(known["right"], known["wrong"])
        draft.document(
            f"{REPO}/{name}",
            "repository",
            Text(text.lstrip("\n")),
            event["id"],
            day=event["date"],
            author=author,
            subject="repo:report",
        )
    _bookings(draft, rng, event)
    _specification(draft, rng, event)
    when = draft.setting.instant(event["date"], rng)
    first = draft.say(
        event["id"],
        when,
        "technology",
        draft.roles["fpa"],
        "The monthly report does not agree with our ledger since last week. Did anyone touch it?",
    )
    draft.say(
        event["id"],
        when + timedelta(minutes=12),
        "technology",
        draft.roles["data"],
        "We tidied up the code. The rules are in the README, the report should follow them; I have not found it yet.",
        first,
    )


def _bookings(draft: Draft, rng: Random, event: Row) -> None:
    rows = [("booking", "booked_on", "region", "kind", "status", "gross", "tax")]
    for number in range(1, NUM_BOOKINGS + 1):
        net = 10 * rng.randrange(20, 900)
        tax = round(net * 0.19)
        day = month_start(rng.choice(draft.setting.months[-6:])) + timedelta(days=rng.randrange(28))
        status = rng.choice(("booked", "booked", "booked", "cancelled", "Cancelled "))
        kind = "credit note" if rng.random() < 0.12 else "sale"
        rows.append(
            (f"BK{number:04d}", day.isoformat(), rng.choice(REGIONS[:3]), kind, status, str(net + tax), str(tax))
        )
    draft.document(
        f"{REPO}/data/bookings.csv",
        "bookings",
        Delimited(tuple(rows)),
        event["id"],
        day=event["date"],
        author=draft.roles["data"]["name"],
        subject="repo:report",
    )
    draft.notes["bookings"] = rows


def _specification(draft: Draft, rng: Random, event: Row) -> None:
    library = pack("reporting_repo")
    window = rng.choice((3, 5, 7, 10))
    draft.truth.add(
        "assumption",
        {"id": "spec:window", "model": "spec", "name": "window", "value": window},
        event=event["id"],
        at=event["date"],
    )
    draft.document(
        "it/specs/reconcile.md",
        "specification",
        Text(
            library["spec"]["text"]
            .lstrip("\n")
            .replace("{window}", draft.fact("spec:window", str(window), window, "days"))
        ),
        event["id"],
        day=event["date"],
        author=draft.roles["data"]["name"],
    )


def orders_exported(draft: Draft, event: Row) -> None:
    """Orders of two shop systems with duplicates, other units and other ways to write numbers and dates."""
    rng, setting = draft.rng("orders"), draft.setting
    clean, raw = [], []
    for number in range(1, NUM_ORDERS + 1):
        day = month_start(setting.months[-1]) + timedelta(days=rng.randrange(28))
        quantity, cents = rng.randrange(1, 40), 100 * rng.randrange(50, 9000) + rng.choice((0, 50, 95, 99))
        row = (f"W{number:05d}", rng.choice(draft.notes["customers"])["id"], day.isoformat(), quantity, cents)
        clean.append(row)
        raw.append(_written(draft, row, rng.randrange(4)))
        if rng.random() < 0.12:
            raw.append(_written(draft, row, rng.randrange(4)))
    rng.shuffle(raw)
    draft.truth.add(
        "assumption",
        [{"id": f"order:{row[0]}", "model": "clean orders", "name": row[0], "value": list(row)} for row in clean],
        event=event["id"],
        at=event["date"],
    )
    head = ("order_no", "customer", "date", "quantity", "amount", "amount_unit", "system")
    draft.document(
        "it/etl/orders_raw.csv",
        "orders_raw",
        Delimited((head, *raw), ";"),
        event["id"],
        day=event["date"],
        author=draft.roles["data"]["name"],
        subject="etl:orders",
    )
    text = (
        "# Orders: target\n\nOne line an order: `order_no,customer,date,quantity,amount_cents` by order_no.\n\n"
        "- System A writes amounts in units with two decimals, system B in cents; `amount_unit` says which.\n"
        "- Dates are ISO in system A and day.month.year in system B.\n- Order numbers are upper case without blanks.\n"
        "- An order that was exported twice counts once; the two lines agree but for their way of writing.\n"
    )
    draft.document(
        "it/etl/target.md",
        "etl_target",
        Text(text),
        event["id"],
        day=event["date"],
        author=draft.roles["data"]["name"],
        subject="etl:orders",
    )


def _written(draft: Draft, row: tuple[str, str, str, int, int], style: int) -> tuple[str, ...]:
    number, customer, day, quantity, cents = row
    fact = f"order:{number}:cents"
    if style % 2:
        year, month, date = day.split("-")
        amount = draft.fact(fact, str(cents), cents, "count", subject=f"order:{number}")
        return f" {number.lower()}", customer, f"{date}.{month}.{year}", str(quantity), amount, "cents", "B"
    amount = draft.fact(fact, f"{cents // 100}.{cents % 100:02d}", cents, "count", subject=f"order:{number}")
    return number, customer, day, str(quantity), amount, "units", "A"
