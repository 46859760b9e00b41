"""Figures of a period as facts, and how documents write them."""

from __future__ import annotations

from collections.abc import Sequence

from journeyman.worlds.draft import Draft
from journeyman.worlds.simulate.calendars import month_end
from journeyman.worlds.simulate.figures import Income, figures_at

ITEMS = {
    "revenue": "Revenue",
    "cost_of_sales": "Cost of sales",
    "gross_profit": "Gross profit",
    "operating_expenses": "Operating expenses",
    "ebitda": "EBITDA before exceptional items",
    "depreciation": "Depreciation and amortisation",
    "exceptional": "Exceptional items",
    "ebit": "Operating profit",
    "interest": "Interest",
    "tax": "Income tax",
    "net_income": "Profit for the period",
}
"""Attribute of ``Income`` -> its line, in the order of an income statement."""

COSTS = ("cost_of_sales", "operating_expenses", "depreciation", "exceptional", "interest", "tax")


def income_of(draft: Draft, months: Sequence[str], known: str, entity: str = "") -> Income:
    """Income statement as known on a day; of the group, or of one entity in its currency."""
    return figures_at(draft, known).income(months, entity)


def income_fact(
    draft: Draft, period: str, months: Sequence[str], item: str, known: str, *, entity: str = "", divisor: int = 1000
) -> str:
    """Marked text of a figure of an income statement, costs in brackets; a restated one when it differs.

    Args:
        draft: the world.
        period: ``FY2025``, ``Q3 FY2025``, ``H1 FY2026`` or ``LTM 2025-09``.
        months: its months.
        item: of ``ITEMS``.
        known: ISO date of the document.
        entity: ``S1``, or empty for the group.
        divisor: 1, 1000 or 1_000_000: what the document counts in; millions are written with one digit.
    """
    return stated(draft, f"income:{entity or 'group'}:{period}:{item}", item, months, known, entity, divisor)


def stated(draft: Draft, fact_id: str, item: str, months: Sequence[str], known: str, entity: str, divisor: int) -> str:
    """See ``income_fact``; under a name of one's own."""
    first: dict[str, int] = draft.notes.setdefault("first reported", {})
    value = int(getattr(income_of(draft, months, known, entity), item))
    setting, supersedes = draft.setting, ""
    if first.setdefault(fact_id, value) != value:
        fact_id, supersedes = f"{fact_id}:restated", fact_id
        known = draft.notes.setdefault("restated on", {}).setdefault(fact_id, known)
    shown = -value if item in COSTS else value
    text = setting.number(shown / divisor, 1 if divisor == 1_000_000 else 0)
    currency = {"": setting.currency, "G": setting.currency, "S1": setting.foreign[0], "S2": setting.foreign[1]}[entity]
    year, month = (int(part) for part in months[-1].split("-"))
    end = month_end(12 * year + month - 1).isoformat()
    return draft.fact(
        fact_id,
        text,
        value,
        "currency",
        currency=currency,
        as_of=end,
        known=known if supersedes else end,
        supersedes=supersedes,
        rows=tuple(f"journal_line:{m}" for m in (months[0], months[-1])),
    )


def scale_words(currency: str, divisor: int) -> str:
    """``EUR thousand``."""
    return f"{currency} { ({1: '', 1000: 'thousand', 1_000_000: 'million'}[divisor]) }".strip()
