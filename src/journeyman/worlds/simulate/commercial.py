"""Customers and what they were billed: subscriptions that grow, shrink and end, single orders, monthly invoices."""

from __future__ import annotations

from datetime import timedelta
from random import Random
from typing import Any

from journeyman.worlds.data import pack
from journeyman.worlds.draft import Draft
from journeyman.worlds.simulate.calendars import month_end, month_start

NUM_CUSTOMERS = 36
REGIONS = ("North", "South", "East", "West")
TAX_RATE = {"us": 0.0, "gb": 0.20, "eu": 0.19}
CHURN = 0.011
CHANGE = 0.03
ORDERS_PER_MONTH = 6


def simulate_commercial(draft: Draft) -> None:
    """Customers, subscriptions, orders, invoices; what was billed per month and line goes to the ledger."""
    rng, setting = draft.rng("commercial"), draft.setting
    start = month_start(setting.first_month)
    event = draft.event("billing system started", start, "Customer master data taken over into the billing system")
    customers = _customers(draft, rng, event)
    draft.notes["customers"] = customers
    subscriptions = [row for customer in customers for row in _subscriptions(draft, rng, customer)]
    draft.truth.add("subscription", subscriptions, event=event)
    _bill(draft, rng, customers, subscriptions)


def _customers(draft: Draft, rng: Random, event: str) -> list[dict[str, Any]]:
    """Some share the first words of their names with another, unrelated or related company."""
    firms, setting = pack("firms"), draft.setting
    stems = rng.sample(firms["customers"], NUM_CUSTOMERS - 4)
    twins = stems[:4]
    rows = []
    for number, stem in enumerate([*stems, *twins], start=1):
        words = firms["customer_words"]
        name = f"{stem} {words[number % len(words)]} {rng.choice(setting.locale['forms'])}"
        parent = f"CU{number - NUM_CUSTOMERS + 4:03d}" if number > NUM_CUSTOMERS - 2 else None
        rows.append({"id": f"CU{number:03d}", "name": name, "segment": setting.trade["segments"][number % 4],
                     "region": rng.choice(REGIONS), "entity_id": "G", "parent_id": parent})  # fmt: skip
    draft.truth.add("customer", rows, event=event, at=month_start(setting.first_month).isoformat())
    return rows


def _subscriptions(draft: Draft, rng: Random, customer: dict[str, Any]) -> list[dict[str, Any]]:
    """Spans of equal monthly fees; a change of the fee ends one span and begins the next."""
    setting = draft.setting
    rows: list[dict[str, Any]] = []
    months = setting.months
    begin = months[0] if rng.random() < 0.55 else rng.randrange(months[0] + 1, months[-1] - 6)
    line = setting.trade["lines"][rng.randrange(2)]
    fee = 100 * round(rng.lognormvariate(5.9, 0.55))
    for month in range(begin, months[-1] + 1):
        draw = rng.random()
        if month == begin or draw < CHURN + CHANGE:
            if rows:
                rows[-1]["end_month"] = setting.label(month)
            if month > begin and draw < CHURN and month > begin + 3:
                return rows
            factor = rng.choice((0.85, 1.08, 1.12, 1.2, 1.35)) if rows else 1
            fee = 100 * round(fee * factor / 100)
            at = month_start(month).isoformat()
            rows.append({"id": draft.next_id("SU", 4), "customer_id": customer["id"], "line": line, "monthly": fee,
                         "start_month": setting.label(month), "end_month": None, "valid_from": at,
                         "known_from": at})  # fmt: skip
    return rows


def _bill(
    draft: Draft, rng: Random, customers: list[dict[str, Any]], subscriptions: list[dict[str, Any]]
) -> None:  # fmt: skip
    setting, rate = draft.setting, TAX_RATE[draft.setting.place]
    billed: dict[tuple[int, str], int] = {}
    taxed: dict[int, int] = {}
    invoices, orders = [], []
    for month in setting.months:
        label, day = setting.label(month), month_start(month)
        event = draft.event("invoice run", month_end(month), f"Invoices of {label} issued")
        due = [
            (row["customer_id"], row["line"], row["monthly"], row["id"], day + timedelta(days=rng.randrange(1, 6)))
            for row in subscriptions
            if row["start_month"] <= label and (row["end_month"] or "9999") > label
        ]
        for _ in range(rng.randrange(ORDERS_PER_MONTH - 2, ORDERS_PER_MONTH + 3)):
            order = _order(draft, rng, customers, month)
            orders.append({**order, "source_event_id": event})
            due.append((order["customer_id"], order["line"], order["amount"], None, day + timedelta(days=25)))
        for customer, line, net, subscription, issued in due:
            tax = round(net * rate)
            at = issued.isoformat()
            invoices.append({
                "id": f"INV-{month // 12 % 100:02d}{month % 12 + 1:02d}-{draft.next_id('N', 4)[1:]}",
                "customer_id": customer, "line": line, "date": at, "net": net, "tax": tax, "gross": net + tax,
                "currency": setting.currency, "journal_id": f"J-G-{label}-sales", "subscription_id": subscription,
                "valid_from": at, "known_from": at, "source_event_id": event,
            })  # fmt: skip
            billed[month, line] = billed.get((month, line), 0) + net
            taxed[month] = taxed.get(month, 0) + tax
    draft.truth.add("invoice", invoices, event="")
    draft.truth.add("order", orders, event="")
    draft.notes |= {"billed": billed, "taxed": taxed}


def _order(draft: Draft, rng: Random, customers: list[dict[str, Any]], month: int) -> dict[str, Any]:
    quantity, price = rng.randrange(2, 60), 10 * rng.randrange(40, 420)
    at = (month_start(month) + timedelta(days=rng.randrange(0, 20))).isoformat()
    return {
        "id": draft.next_id("OR", 4), "customer_id": rng.choice(customers)["id"],
        "line": rng.choice(draft.setting.trade["lines"][2:]), "date": at, "quantity": quantity, "unit_price": price,
        "amount": quantity * price, "valid_from": at, "known_from": at,
    }  # fmt: skip
