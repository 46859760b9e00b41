"""The books: monthly journals of the parent and two foreign subsidiaries, exchange rates, candidates for add-backs.

Amounts are whole units of each entity's currency, so that every total ties exactly.
"""

from __future__ import annotations

from random import Random
from typing import Any

from journeyman.worlds.draft import Draft
from journeyman.worlds.simulate.calendars import month_end, month_start

ACCOUNTS: tuple[tuple[str, str, str], ...] = (
    ("1000", "Cash at bank", "asset"), ("1100", "Trade receivables", "asset"), ("1200", "Inventories", "asset"),
    ("1300", "Prepaid expenses", "asset"), ("1500", "Property, plant and equipment", "asset"),
    ("1590", "Accumulated depreciation", "asset"), ("1600", "Intangible assets", "asset"),
    ("2000", "Trade payables", "liability"), ("2100", "Accrued expenses", "liability"),
    ("2150", "Deferred income", "liability"), ("2200", "Sales tax payable", "liability"),
    ("2300", "Income tax payable", "liability"), ("2500", "Term loan", "debt"), ("2510", "Revolving facility", "debt"),
    ("2520", "Lease liabilities", "debt"), ("3000", "Share capital", "equity"), ("3100", "Retained earnings", "equity"),
    ("4010", "Revenue line 1", "revenue"), ("4020", "Revenue line 2", "revenue"), ("4030", "Revenue line 3", "revenue"),
    ("4040", "Revenue line 4", "revenue"), ("5000", "Cost of sales", "cogs"), ("5100", "Freight and handling", "cogs"),
    ("6000", "Payroll", "opex"), ("6100", "Rent and utilities", "opex"), ("6200", "Marketing", "opex"),
    ("6300", "Professional fees", "opex"), ("6400", "Travel", "opex"), ("6500", "IT and telephony", "opex"),
    ("6600", "Insurance", "opex"), ("6900", "Other operating expenses", "opex"), ("7000", "Depreciation", "da"),
    ("7010", "Amortisation", "da"), ("7500", "Exceptional items", "exceptional"),
    ("8000", "Interest expense", "finance"), ("9000", "Income tax", "tax"),
)  # fmt: skip
RATES = {"USD": 1.0, "EUR": 1.09, "GBP": 1.27, "CHF": 1.12, "SEK": 0.096}
"""Dollars per unit, where the walks begin."""
OVERHEADS = {"6100": 0.035, "6200": 0.030, "6300": 0.012, "6400": 0.008, "6500": 0.022, "6600": 0.006, "6900": 0.010}
ENTITIES = ("G", "S1", "S2")
PAYROLL, FULL_MARGIN = 0.34, 0.55
"""Payroll as a share of gross profit; the gross margin at which overheads reach their full share of revenue."""


def simulate_ledger(draft: Draft) -> None:
    """Accounts, exchange rates, opening balances, and eight kinds of journals for each entity and month."""
    rng, setting = draft.rng("ledger"), draft.setting
    opened = draft.event("books opened", month_start(setting.first_month), "Opening balances carried forward")
    lines = setting.trade["lines"]
    rows = [
        {"id": code, "name": lines[int(code[2]) - 1] if kind == "revenue" else name, "kind": kind, "sort": number}
        for number, (code, name, kind) in enumerate(ACCOUNTS)
    ]
    draft.truth.add("account", rows, event=opened, at="2000-01-01")
    _rates(draft, opened)
    currency = dict(zip(ENTITIES, (setting.currency, *setting.foreign), strict=True))
    for entity in ENTITIES:
        _books(draft, rng, entity, currency[entity], opened)


def _rates(draft: Draft, event: str) -> None:
    """Monthly averages and closing rates of four currencies; the average lies between two closings, never at one."""
    rng, group = draft.rng("rates"), draft.setting.currency
    dollars = dict(RATES)
    rows = []
    for month in draft.setting.months:
        before = dict(dollars)
        for code in dollars:
            if code != "USD":
                dollars[code] *= 1 + rng.gauss(0, 0.017)
        day = month_end(month).isoformat()
        for code in (code for code in RATES if code != group):
            close = round(dollars[code] / dollars[group], 4)
            average = round(
                (0.45 * before[code] + 0.55 * dollars[code]) / (0.5 * before[group] + 0.5 * dollars[group]), 4
            )
            average = average if average != close else round(average + 0.0013, 4)
            for kind, rate in (("avg", average), ("close", close), ("spot", close)):
                rows.append({"id": f"{code}{group}-{month}-{kind}", "pair": f"{code}/{group}", "date": day,
                             "kind": kind, "rate": rate, "valid_from": day, "known_from": day})  # fmt: skip
    draft.truth.add("fx_rate", rows, event=event)


class _Books:
    """Journals of one entity while they are written."""

    def __init__(self, entity: str, currency: str) -> None:
        self.entity, self.currency = entity, currency
        self.journals: list[dict[str, Any]] = []
        self.lines: list[dict[str, Any]] = []
        self.balance: dict[str, int] = {}

    def post(self, kind: str, month: int, day: str, memo: str, event: str, pairs: list[tuple[str, int, str]]) -> str:
        """Add a journal; positive amounts are debits. Returns its id."""
        journal = f"J-{self.entity}-{month // 12}-{month % 12 + 1:02d}-{kind}"
        common = {"valid_from": day, "known_from": day, "source_event_id": event}
        self.journals.append({"id": journal, "entity_id": self.entity, "date": day, "memo": memo,
                              "currency": self.currency, "kind": kind, **common})  # fmt: skip
        for number, (account, amount, text) in enumerate((p for p in pairs if p[1]), start=1):
            self.balance[account] = self.balance.get(account, 0) + amount
            self.lines.append({"id": f"{journal}/{number}", "journal_id": journal, "account_id": account,
                               "dr": max(amount, 0), "cr": max(-amount, 0), "text": text,
                               "currency": self.currency, **common})  # fmt: skip
        return journal


def _books(draft: Draft, rng: Random, entity: str, currency: str, opened: str) -> None:
    books, setting, months = _Books(entity, currency), draft.setting, draft.setting.months
    scale = _monthly_scale(draft, rng, entity)
    _open(books, rng, months[0], scale[months[0]], opened, setting.trade["gross_margin"])
    addbacks = _addback_months(draft, rng) if entity == "G" else {}
    for month in months:
        day = month_end(month).isoformat()
        event = draft.event("month closed", day, f"{entity} {setting.label(month)} closed", entity=entity)
        _trade(draft, books, rng, month, day, event, scale[month])
        _overheads(draft, books, rng, month, day, event, scale[month])
        _money(books, rng, month, day, event)
        for number, (text, amount, account) in enumerate(addbacks.get(month, ()), start=1):
            journal = books.post(
                f"one{number}", month, day, text, event, [(account, amount, text), ("2100", -amount, text)]
            )
            draft.notes.setdefault("one_offs", []).append((journal, amount, text, day))
    draft.truth.add("journal", books.journals, event="")
    draft.truth.add("journal_line", books.lines, event="")


def _monthly_scale(draft: Draft, rng: Random, entity: str) -> dict[int, float]:
    """Revenue of each month: billed for the parent, a share of it with growth and season for a subsidiary."""
    billed: dict[tuple[int, str], int] = draft.notes["billed"]
    total = {month: sum(v for (m, _), v in billed.items() if m == month) for month in draft.setting.months}
    if entity == "G":
        return {month: float(value) for month, value in total.items()}
    share, growth, peak = rng.uniform(0.18, 0.45), draft.setting.trade["growth"], rng.randrange(12)
    base = sum(total.values()) / len(total) * share
    return {
        month: base * (1 + growth) ** (number / 12) * (1.08 if month % 12 in (peak, (peak + 1) % 12) else 0.99)
        * rng.uniform(0.96, 1.04)
        for number, month in enumerate(draft.setting.months)
    }  # fmt: skip


def _open(books: _Books, rng: Random, month: int, scale: float, event: str, margin: float) -> None:
    """Debt is a multiple of what the entity can be expected to earn in a year."""
    k = round(scale)
    earned = 12 * scale * (margin * (1 - PAYROLL) - sum(OVERHEADS.values()) * min(1.0, margin / FULL_MARGIN))
    pairs = [("1000", round(1.6 * k)), ("1100", round(1.6 * k)), ("1200", round(0.9 * k)), ("1300", round(0.2 * k)),
             ("1500", 9 * k), ("1590", -3 * k), ("1600", 4 * k), ("2000", -round(1.1 * k)), ("2100", -round(0.5 * k)),
             ("2150", -round(0.6 * k)), ("2500", -round(rng.uniform(2.6, 4.4) * earned)),
             ("2510", -round(0.3 * earned)),
             ("2520", -round(0.4 * earned)), ("3000", -round(1.5 * k))]  # fmt: skip
    rest = -sum(amount for _, amount in pairs)
    day = month_start(month).isoformat()
    books.post(
        "open", month, day, "Opening balances", event, [(a, v, "Opening balance") for a, v in [*pairs, ("3100", rest)]]
    )


def _trade(draft: Draft, books: _Books, rng: Random, month: int, day: str, event: str, scale: float) -> None:
    label, margin = draft.setting.label(month), draft.setting.trade["gross_margin"]
    names = draft.setting.trade["lines"]
    if books.entity == "G":
        amounts = [draft.notes["billed"].get((month, name), 0) for name in names]
        tax = draft.notes["taxed"].get(month, 0)
    else:
        shares = [rng.uniform(0.8, 1.2) * w for w in (0.45, 0.3, 0.15, 0.1)]
        amounts = [round(scale * share) for share in shares]
        tax = round(0.1 * sum(amounts))
    sales = [
        (f"40{n}0", -amount, f"{name} {label}") for n, (name, amount) in enumerate(zip(names, amounts, strict=True), 1)
    ]
    books.post("sales", month, day, f"Sales {label}", event,
               [("1100", sum(amounts) + tax, f"Invoices {label}"), *sales,
                ("2200", -tax, f"Sales tax {label}")])  # fmt: skip
    cost = round(sum(amounts) * (1 - margin) * rng.uniform(0.95, 1.05))
    freight = round(cost * rng.uniform(0.05, 0.09))
    supply = rng.choice(draft.setting.trade["supplies"])
    books.post("cost", month, day, f"Cost of sales {label}", event,
               [("5000", cost - freight, f"Cost of sales {label}"), ("5100", freight, f"Freight {label}"),
                ("1200", -round(0.6 * cost), f"Inventory issued {label}"),
                ("2000", -(cost - round(0.6 * cost)), f"Subcontracted: {supply}")])  # fmt: skip
    stock = round(0.6 * cost * rng.uniform(0.97, 1.04))
    books.post("stock", month, day, f"Goods received {label}", event,
               [("1200", stock, f"Goods received: {supply}"),
                ("2000", -stock, f"Goods received: {supply}")])  # fmt: skip


def _overheads(draft: Draft, books: _Books, rng: Random, month: int, day: str, event: str, scale: float) -> None:
    label, margin = draft.setting.label(month), draft.setting.trade["gross_margin"]
    pay = round(scale * (margin * PAYROLL) * rng.uniform(0.97, 1.03))
    books.post("pay", month, day, f"Payroll {label}", event,
               [("6000", pay, f"Payroll {label}"), ("1000", -round(0.82 * pay), "Net wages"),
                ("2100", -(pay - round(0.82 * pay)), "Payroll taxes accrued")])  # fmt: skip
    names = {code: name for code, name, _ in ACCOUNTS}
    room = min(1.0, margin / FULL_MARGIN)
    costs = [(code, round(scale * share * room * rng.uniform(0.85, 1.15))) for code, share in OVERHEADS.items()]
    books.post("over", month, day, f"Overheads {label}", event,
               [*((code, amount, f"{names[code]} {label}") for code, amount in costs),
                ("2000", -sum(amount for _, amount in costs), f"Overheads {label}")])  # fmt: skip
    wear, soft = round(scale * 0.045 * rng.uniform(0.98, 1.02)), round(scale * 0.012)
    books.post("wear", month, day, f"Depreciation {label}", event,
               [("7000", wear, f"Depreciation {label}"),
                ("7010", soft, f"Amortisation: {draft.setting.trade['asset']}"),
                ("1590", -wear, f"Depreciation {label}"), ("1600", -soft, f"Amortisation {label}")])  # fmt: skip


def _money(books: _Books, rng: Random, month: int, day: str, event: str) -> None:
    owed, bills = books.balance.get("1100", 0), -books.balance.get("2000", 0)
    received, paid = round(owed * rng.uniform(0.38, 0.52)), round(bills * rng.uniform(0.45, 0.6))
    tax, accrued = -books.balance.get("2200", 0), round(-books.balance.get("2100", 0) * 0.3)
    books.post("cash", month, day, "Receipts and payments", event,
               [("1000", received - paid - tax - accrued, "Bank movements"),
                ("1100", -received, "Receipts from customers"),
                ("2000", paid, "Payments to suppliers"), ("2200", tax, "Sales tax paid"),
                ("2100", accrued, "Accruals settled")])  # fmt: skip
    interest = round(-books.balance.get("2500", 0) * 0.062 / 12)
    capex = round(-books.balance.get("2500", 0) * rng.uniform(0.006, 0.011))
    repay = round(-books.balance.get("2500", 0) * 0.02) if month % 3 == 2 else 0
    excess = books.balance.get("1000", 0) - round(1.2 * books.balance.get("1100", 0))
    paid_out = max(0, excess) if month % 6 == 5 else 0
    profit_tax = round(0.22 * max(0, books.balance.get("1100", 0)) * 0.05)
    books.post("fund", month, day, "Financing, capital expenditure and tax", event,
               [("8000", interest, "Interest on term loan"), ("1500", capex, "Capital expenditure"),
                ("2500", repay, "Scheduled repayment"), ("9000", profit_tax, "Income tax accrued"),
                ("2300", -profit_tax, "Income tax accrued"),
                ("3100", paid_out, "Dividend"),
                ("1000", -(interest + capex + repay + paid_out), "Bank movements")])  # fmt: skip


ONE_OFFS = (
    ("Settlement of the {x} claim, one payment", "6900", True, "settled in full, no further claims of this kind"),
    ("Relocation of the {x} office", "6900", True, "lease ended, cost does not recur"),
    ("Severance after the merger of two {x} teams", "6000", True, "programme closed"),
    ("Advisers on the aborted purchase of {x}", "6300", True, "project stopped, engagement letter ended"),
    ("Flood repair at the {x} site, net of insurance", "6900", True, "event, insured in part"),
    ("Recruitment fees for {x} managers", "6300", False, "recurs every year"),
    ("Trade fair stand, {x}", "6200", False, "booked annually"),
    ("Write-off of slow {x} stock", "5000", False, "part of the ordinary cycle"),
    ("Consultants on {x} pricing, second phase", "6300", False, "third project in three years"),
    ("Overtime in {x} during the system change", "6000", False, "no evidence that it was caused by the change"),
)


def _addback_months(draft: Draft, rng: Random) -> dict[int, list[tuple[str, int, str]]]:
    """One-off looking items of the last twelve months, by month; which of them count is settled later, by mail."""
    months = draft.setting.months[-12:]
    found: dict[int, list[tuple[str, int, str]]] = {}
    rows = []
    words = [*draft.setting.trade["supplies"], *draft.setting.trade["segments"], draft.setting.city]
    for number, (text, account, accepted, reason) in enumerate(rng.sample(ONE_OFFS, 8), start=1):
        month, amount = rng.choice(months), 100 * rng.randrange(180, 2900)
        shown = text.format(x=rng.choice(words))
        found.setdefault(month, []).append((shown, amount, account))
        journal = f"J-G-{month // 12}-{month % 12 + 1:02d}-one{len(found[month])}"
        rows.append({"id": f"AB{number}", "journal_id": journal, "amount": amount, "description": shown,
                     "proposed_by": "management", "accepted": int(accepted), "reason": reason})  # fmt: skip
    event = draft.event("add-backs proposed", draft.setting.today, "Management proposes adjustments to EBITDA")
    draft.truth.add("addback", rows, event=event, at=draft.setting.today.isoformat())
    return found
