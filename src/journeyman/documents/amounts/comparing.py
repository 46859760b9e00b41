"""Whether two amounts say the same, given how exactly each was written."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Literal

from .amount import Amount, NotAnAmount, parse
from .numerals import EXACT

Precision = Literal["either", "first", "second", "none"]
NOTHING = Decimal(0)


@dataclass(frozen=True, slots=True)
class Comparison:
    """The outcome of a comparison.

    Attributes:
        is_equal: whether the amounts say the same.
        reason: why not, or under which assumption they do; empty for a plain yes.
        difference: first minus second, None when they cannot be subtracted.
        tolerance: largest absolute difference that was allowed.
    """

    is_equal: bool
    reason: str = ""
    difference: Decimal | None = None
    tolerance: Decimal = NOTHING


def compare(
    first: Amount | str | None,
    second: Amount | str | None,
    *,
    precision: Precision = "either",
    abs_tol: Decimal = NOTHING,
    rel_tol: Decimal = NOTHING,
    is_strict: bool = False,
) -> Comparison:
    """Whether two amounts agree: ``|a - b| <= max(abs_tol, rel_tol * |b|, half a unit of the displayed precision)``.

    A figure written to some place matches every value that rounds to it: ``$1.2m`` matches 1,234,567 USD. Amounts of
    different units or currencies are never equal. Nothing equals an empty text, None or a text that is no amount.

    Args:
        first: e.g. an answer.
        second: e.g. the truth.
        precision: whose displayed precision counts; ``second`` keeps a coarse answer from matching a fine truth.
        abs_tol, rel_tol: further tolerance, absolute and relative to ``second``.
        is_strict: a missing unit or currency differs from a given one.
    """
    try:
        a, b = _amount(first), _amount(second)
    except NotAnAmount as error:
        return Comparison(False, str(error))
    if (problem := _units_differ(a, b, is_strict)) is not None:
        return Comparison(False, problem)
    steps = {"either": max(a.precision, b.precision), "first": a.precision, "second": b.precision, "none": NOTHING}
    tolerance = max(abs_tol, rel_tol * abs(b.value), steps[precision] / 2)
    difference = EXACT.subtract(a.value, b.value)
    if abs(difference) <= tolerance:
        return Comparison(True, "", difference, tolerance)
    for other in a.alternatives:
        if _units_differ(other, b, is_strict) is None and abs(other.value - b.value) <= tolerance:
            return Comparison(False, f"equal only if the first is read as {other.value}", difference, tolerance)
    return Comparison(False, f"they differ by {difference}, {tolerance} is allowed", difference, tolerance)


def _amount(given: Amount | str | None) -> Amount:
    if isinstance(given, Amount):
        amount = given
    else:
        amount = parse(given or "")
    if not amount.value.is_finite():
        raise NotAnAmount(str(amount.value), "it is not finite")
    return amount


def _units_differ(a: Amount, b: Amount, is_strict: bool) -> str | None:
    for name, one, other in (("unit", a.unit, b.unit), ("currency", a.currency, b.currency)):
        one, other = one.lower().rstrip("."), other.lower().rstrip(".")
        if one != other and (is_strict or (one and other)):
            return f"different {name}: {one or 'none'} and {other or 'none'}"
    return None


@dataclass(frozen=True, slots=True)
class Range:
    """Two ends, both included.

    Attributes:
        low, high: ends, in one unit.
    """

    low: Amount
    high: Amount

    def holds(self, amount: Amount) -> bool:
        """Whether an amount lies in the range, half a unit of an end's precision around it included."""
        if _units_differ(self.low, amount, False) or _units_differ(self.high, amount, False):
            return False
        below = self.low.value - self.low.precision / 2
        return below <= amount.value <= self.high.value + self.high.precision / 2


BETWEEN = re.compile(
    r"^\s*(?:between|from|zwischen|von)?\s*(?P<low>.+?)\s*(?:\bto\b|\band\b|\bbis\b|\bund\b|–|—|\.\.\.?|-)\s*(?P<high>.*\d.*)$",
    re.I,
)


def parse_range(text: str, locale: str | None = None) -> Range:
    """The range that a text says: ``10-12 %``, ``$1.2m to $1.5m``, ``between 5 and 7 bn``.

    The first end takes unit, currency and scale of the second where it has none of its own.

    Raises:
        NotAnAmount: it is no range.
    """
    match = BETWEEN.match(text)
    if match is None or not re.search(r"\d", match["low"]):
        raise NotAnAmount(text, "it has no two ends")
    low, high = parse(match["low"], locale), parse(match["high"], locale)
    if low.scale == 1 and not low.unit and high.scale != 1:
        low = _scaled(low, high.scale)
    low = replace(low, unit=low.unit or high.unit, currency=low.currency or high.currency)
    high = replace(high, currency=high.currency or low.currency)
    if _units_differ(low, high, True):
        raise NotAnAmount(text, "its ends have different units")
    if low.value > high.value:
        raise NotAnAmount(text, "its first end is the larger one")
    return Range(low, high)


def _scaled(amount: Amount, scale: Decimal) -> Amount:
    return replace(amount, value=amount.value * scale, precision=amount.precision * scale, scale=scale)
