"""One run of digits and separators, and every number that it may mean."""

from __future__ import annotations

import re
from decimal import Context, Decimal

from .words import Locale

SPACES = " \u00a0\u202f\u2009_"
APOSTROPHES = "'’ʼ"
NUMERAL = re.compile(rf"(?:\d+(?:[.,{SPACES}{APOSTROPHES}]\d+)*[.,]?|[.,]\d+)(?:[eE][+-]?\d{{1,3}}(?![\w]))?")
MAX_DIGITS = 40
MAX_EXPONENT = 40
EXACT = Context(prec=200)
"""Arithmetic in which nothing that can be written is rounded."""

Reading = tuple[Decimal, int]
"""Value, and the number of digits after the decimal separator (negative for a power of ten)."""


def readings(token: str, locale: Locale | None = None) -> list[Reading]:
    """Everything a numeral may mean, the likeliest first; empty when its separators fit no convention.

    With a locale its own reading is the only one, as long as the numeral fits it. Without, the last of two different
    separators is the decimal one; a single comma before three digits groups them, a single point does not, and the
    other reading follows as the second.
    """
    body, exponent = _without_exponent(token)
    if sum(character.isdigit() for character in body) > MAX_DIGITS or abs(exponent) > MAX_EXPONENT:
        return []
    if locale is not None and (own := _as_locale(body, locale)) is not None:
        found = [own]
    else:
        found = _as_anyone(body)
    return [(EXACT.scaleb(value, exponent), places - exponent) for value, places in found]


def _without_exponent(token: str) -> tuple[str, int]:
    head, _, tail = token.lower().partition("e")
    return head, int(tail) if tail else 0


def _as_locale(body: str, locale: Locale) -> Reading | None:
    group = SPACES if locale.group in SPACES else APOSTROPHES if locale.group in APOSTROPHES else locale.group
    whole, decimal, fraction = body.partition(locale.decimal)
    if (fraction and not fraction.isdigit()) or (decimal and body.endswith(locale.decimal) and not whole):
        return None
    digits = _ungrouped(whole, group)
    return None if digits is None else _reading(digits, fraction)


def _as_anyone(body: str) -> list[Reading]:
    others = [one for one in body if one in SPACES + APOSTROPHES]
    points, commas = body.count("."), body.count(",")
    if points and commas:
        decimal = max(".,", key=body.rfind)
        group = "," if decimal == "." else "."
        return [] if others else _listed(_split(body, decimal, group))
    mark = "." if points else ","
    count = points + commas
    if others:
        group = SPACES if all(one in SPACES for one in others) else APOSTROPHES
        return [] if count > 1 else _listed(_split(body, mark, group))
    if not count:
        return _listed(_split(body, ".", ""))
    if count > 1:
        return _listed(_split(body, "\0", mark))
    whole, _, fraction = body.partition(mark)
    as_fraction = _listed(_split(body, mark, ""))
    if len(fraction) != 3 or not 1 <= len(whole) <= 3 or whole.startswith("0"):
        return as_fraction
    as_groups = _listed(_split(body, "\0", mark))
    return as_groups + as_fraction if mark == "," else as_fraction + as_groups


def _split(body: str, decimal: str, group: str) -> Reading | None:
    whole, _, fraction = body.partition(decimal)
    digits = _ungrouped(whole, group)
    return None if digits is None or (fraction and not fraction.isdigit()) else _reading(digits, fraction)


def _ungrouped(whole: str, group: str) -> str | None:
    """The digits of the whole part, None when they are not grouped in threes or as in India."""
    if not whole or whole.isdigit():
        return whole
    if not group:
        return None
    groups = re.split(f"[{re.escape(group)}]", whole)
    sizes = [len(one) for one in groups]
    if not all(one.isdigit() for one in groups) or sizes[-1] != 3:
        return None
    in_threes = 1 <= sizes[0] <= 3 and all(size == 3 for size in sizes[1:])
    as_in_india = 1 <= sizes[0] <= 2 and all(size == 2 for size in sizes[1:-1])
    return "".join(groups) if in_threes or as_in_india else None


def _reading(digits: str, fraction: str) -> Reading:
    return Decimal(f"{digits or '0'}.{fraction}" if fraction else digits or "0"), len(fraction)


def _listed(reading: Reading | None) -> list[Reading]:
    return [] if reading is None else [reading]


def written(value: Decimal, locale: Locale, places: int | None = None) -> str:
    """A number as a locale writes it, with grouped digits; the inverse of reading it with that locale.

    Args:
        value: finite.
        locale: conventions.
        places: digits after the decimal separator, None for those of ``value``.
    """
    if places is not None:
        value = EXACT.quantize(value, Decimal(1).scaleb(-places))
    sign, text = ("-" if value < 0 else ""), f"{abs(value):f}"
    whole, _, fraction = text.partition(".")
    groups: list[str] = []
    size = 3
    while whole:
        groups.insert(0, whole[-size:])
        whole, size = whole[:-size], 2 if locale.is_indian else 3
    return sign + locale.group.join(groups) + (locale.decimal + fraction if fraction else "")
