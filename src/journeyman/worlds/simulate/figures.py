"""Figures that documents state, computed from the ledger as it was known on a day. All amounts in whole units."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from journeyman.worlds.draft import Draft
from journeyman.worlds.simulate.calendars import month_end
from journeyman.worlds.truth import Truth

SIGN = {"revenue": -1, "liability": -1, "debt": -1, "equity": -1}
"""Kinds of accounts whose credit balance is shown as a positive figure."""

_SQL = """
SELECT j.entity_id, substr(j.date, 1, 7), l.account_id, l.known_from, l.known_to, SUM(l.dr) - SUM(l.cr)
FROM journal_line l JOIN journal j ON j.id = l.journal_id
GROUP BY 1, 2, 3, 4, 5"""


class Ledger:
    """What ``Figures`` of all states of knowledge share, read once: movements, kinds of accounts, exchange rates."""

    def __init__(self, truth: Truth, group_currency: str) -> None:
        self.moved = [tuple(row.values()) for row in truth.rows(_SQL)]
        self.kind = {row["id"]: row["kind"] for row in truth.rows("SELECT id, kind FROM account")}
        currency = {row["id"]: row["currency"] for row in truth.rows("SELECT id, currency FROM entity")}
        rates = truth.rows(
            "SELECT pair, substr(date, 1, 7) AS month, kind, rate FROM fx_rate WHERE pair IN"
            " (SELECT currency || '/' || :group FROM entity) OR pair = (SELECT MIN(pair) FROM fx_rate)",
            group=group_currency,
        )
        found = {(row["pair"], row["month"], row["kind"]): row["rate"] for row in rates}
        self.rate = {
            (entity, month, kind): found.get((f"{code}/{group_currency}", month, kind), 1.0)
            for entity, code in currency.items()
            for (_, month, kind) in found
        }


@dataclass(frozen=True)
class Income:
    """An income statement; costs are positive."""

    revenue: int
    cost_of_sales: int
    operating_expenses: int
    depreciation: int
    exceptional: int
    interest: int
    tax: int

    @property
    def gross_profit(self) -> int:
        return self.revenue - self.cost_of_sales

    @property
    def ebitda(self) -> int:
        """Before exceptional items."""
        return self.gross_profit - self.operating_expenses

    @property
    def ebit(self) -> int:
        return self.ebitda - self.depreciation - self.exceptional

    @property
    def net_income(self) -> int:
        return self.ebit - self.interest - self.tax


class Figures:
    """The ledger at one state of knowledge: movements of each entity, month and account."""

    def __init__(self, truth: Truth, group_currency: str, known: str, ledger: Ledger | None = None) -> None:
        ledger = ledger or Ledger(truth, group_currency)
        self.known, self.kind, self._rate = known, ledger.kind, ledger.rate
        self._moved: dict[tuple[str, str], dict[str, int]] = {}
        for entity, month, account, start, end, amount in ledger.moved:
            if start <= known and (end is None or end > known):
                of_month = self._moved.setdefault((entity, month), {})
                of_month[account] = of_month.get(account, 0) + amount
        self._converted: dict[tuple[str, str], dict[str, int]] = {}

    def movements(self, entity: str, months: Iterable[str]) -> dict[str, int]:
        """Account -> debits less credits over months (``2025-03``), in the entity's currency."""
        total: dict[str, int] = {}
        for month in months:
            for account, amount in self._moved.get((entity, month), {}).items():
                total[account] = total.get(account, 0) + amount
        return total

    def converted(self, months: Iterable[str], kind: str = "avg") -> dict[str, int]:
        """Account -> movement of the group, each month of each entity at its rate and rounded to whole units."""
        total: dict[str, int] = {}
        for month in months:
            for account, amount in self._month(month, kind).items():
                total[account] = total.get(account, 0) + amount
        return total

    def _month(self, month: str, kind: str) -> dict[str, int]:
        if (month, kind) not in self._converted:
            total: dict[str, int] = {}
            for entity in ("G", "S1", "S2"):
                rate = self._rate[entity, month, kind]
                for account, amount in self._moved.get((entity, month), {}).items():
                    total[account] = total.get(account, 0) + round(amount * rate)
            self._converted[month, kind] = total
        return self._converted[month, kind]

    def revenue_of(self, entity: str, month: str) -> dict[str, int]:
        """Account -> revenue of one entity and month, converted and rounded as in the group's figures."""
        rate = self._rate[entity, month, "avg"]
        moved = self._moved.get((entity, month), {})
        return {a: -round(amount * rate) for a, amount in sorted(moved.items()) if self.kind[a] == "revenue"}

    def income(self, months: Iterable[str], entity: str = "") -> Income:
        """Income statement of the group, or of one entity in its currency."""
        moved = self.movements(entity, months) if entity else self.converted(months)
        by_kind = dict.fromkeys(("revenue", "cogs", "opex", "da", "exceptional", "finance", "tax"), 0)
        for account, amount in moved.items():
            if self.kind[account] in by_kind:
                by_kind[self.kind[account]] += amount * SIGN.get(self.kind[account], 1)
        return Income(*by_kind.values())

    def revenue_lines(self, months: Iterable[str]) -> dict[str, int]:
        """Account -> revenue of the group."""
        return {a: -v for a, v in sorted(self.converted(months).items()) if self.kind[a] == "revenue"}

    def balance(self, entity: str, until: str) -> dict[str, int]:
        """Account -> balance at the end of a month (debit positive), in the entity's currency."""
        return self.movements(entity, [m for e, m in sorted(self._moved) if e == entity and m <= until])

    def group_balance(self, until: str) -> dict[str, int]:
        """Account -> balance of the group at the closing rates of that month, rounded per entity and account."""
        total: dict[str, int] = {}
        for entity in ("G", "S1", "S2"):
            rate = self._rate[entity, until, "close"]
            for account, amount in self.balance(entity, until).items():
                total[account] = total.get(account, 0) + round(amount * rate)
        return total


def figures_at(draft: Draft, known: str = "") -> Figures:
    """Figures as known on a day (all of them, if left out); one per state, kept with the draft."""
    known = known or "9999-12-31"
    cache: dict[str, Figures] = draft.notes.setdefault("figures", {})
    if known not in cache:
        if "ledger" not in draft.notes:
            draft.notes["ledger"] = Ledger(draft.truth, draft.setting.currency)
        cache[known] = Figures(draft.truth, draft.setting.currency, known, draft.notes["ledger"])
    return cache[known]


def labels(draft: Draft, months: Iterable[int]) -> list[str]:
    """Months as the ledger writes them."""
    return [draft.setting.label(month) for month in months]


def closing_day(month: int) -> str:
    """ISO date on which a month ends."""
    return month_end(month).isoformat()
