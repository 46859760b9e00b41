"""A number as people write it: value, unit, currency, scale, sign, and how exactly it was written."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from decimal import Decimal

from .numerals import EXACT, NUMERAL, readings
from .words import (
    BARE_CASE,
    CODES,
    CURRENCY_WORDS,
    FILLERS,
    NORDIC,
    PERCENT,
    POINTS,
    SCALE_OR_UNIT,
    SCALES,
    SIGNS,
    TIMES,
    Locale,
    locale_of,
)

MINUS = "-−–‒"
MAX_CHARACTERS = 120
MAX_UNIT_WORDS = 3
TOKEN = re.compile(
    "|".join(re.escape(sign) for sign in sorted(SIGNS, key=len, reverse=True) if not sign.isalpha())
    + r"|[%‰×~≈]|[^\W\d_]+\.?(?:[²³/][^\W\d_]*)*|\d+s\b|[²³°/]+"
)
WORDS_OF_TWO = {
    ("per", "cent"): "%",
    ("basis", "points"): "bp",
    ("basis", "point"): "bp",
    ("percentage", "points"): "pp",
    ("percentage", "point"): "pp",
    ("swiss", "francs"): "chf",
    ("us", "dollars"): "usd",
}


class NotAnAmount(ValueError):
    """The text is not one number with what belongs to it.

    Args:
        text: as given.
        why: in one clause.
    """

    def __init__(self, text: str, why: str) -> None:
        self.text, self.why = text, why
        super().__init__(f"{text[:80]!r} is not an amount: {why}")


@dataclass(frozen=True, slots=True)
class Amount:
    """One amount.

    Attributes:
        value: in units of one: ``$1.2m`` is 1200000, ``5 %`` is 0.05, ``25 bp`` is 0.0025.
        unit: ``%`` for shares of one, ``pp`` for differences of shares, ``x`` for multiples, else the words after the
            number; empty for none.
        currency: ISO 4217 code, empty for none.
        scale: factor that was written as a word or sign: 1000000 for ``m``, 0.01 for ``%``.
        precision: size of the last written place, in the unit of ``value``: 100000 for ``$1.2m``.
        alternatives: other readings of the same text, the likelier first; empty when it has one reading.
        is_approximate: written with ``~``, ``about`` or the like.
    """

    value: Decimal
    unit: str = ""
    currency: str = ""
    scale: Decimal = Decimal(1)
    precision: Decimal = Decimal(1)
    alternatives: tuple[Amount, ...] = ()
    is_approximate: bool = False

    def as_json(self) -> dict[str, object]:
        """A JSON value; decimals as text, so that nothing is rounded."""
        facts: dict[str, object] = {"value": str(self.value), "precision": str(self.precision)}
        facts |= {key: text for key, text in (("unit", self.unit), ("currency", self.currency)) if text}
        facts |= {"scale": str(self.scale)} if self.scale != 1 else {}
        facts |= {"alternatives": [one.as_json() for one in self.alternatives]} if self.alternatives else {}
        return facts | ({"is_approximate": True} if self.is_approximate else {})


@dataclass(slots=True)
class _Around:
    """What was found around the number."""

    unit: str = ""
    currency: str = ""
    scale: Decimal = Decimal(1)
    is_approximate: bool = False
    ambiguous_letter: str = ""
    is_nordic: bool = False


def parse(text: str, locale: str | None = None, *, scale: Decimal | int = 1, currency: str = "") -> Amount:
    """The amount that a text says.

    Args:
        text: one number with what belongs to it: ``(1,200)``, ``US$1.2bn``, ``1.234,56 €``, ``12,5 Prozent``, ``2.5x``.
        locale: such as ``de-DE``; None reads separators as they are and keeps other readings as alternatives.
        scale: factor that the surroundings give, e.g. 1000 for a table "in thousands"; it applies to amounts without
            a scale or share of their own.
        currency: code that the surroundings give; it applies to amounts without one.

    Raises:
        NotAnAmount: no number, several, or words that do not belong to one. KeyError: an unknown locale.
    """
    conventions = None if locale is None else locale_of(locale)
    body, is_negative = _unsigned(text)
    match = NUMERAL.search(body)
    if match is None:
        raise NotAnAmount(text, "there is no number in it")
    if NUMERAL.search(body, match.end()) and re.search(r"\d", re.sub(r"\b000s\b", "", body[match.end() :])):
        raise NotAnAmount(text, "there are several numbers in it")
    found = readings(match[0], conventions)
    if not found:
        raise NotAnAmount(text, "its separators fit no convention")
    around = _Around()
    left, right = body[: match.start()], body[match.end() :]
    if _sign_in(left):
        is_negative, left = not is_negative, re.sub(f"[{MINUS}]", " ", left)
    _read_around(text, left, around, conventions, before=True)
    _read_around(text, right, around, conventions, before=False)
    is_scaled = around.scale != 1 or around.unit in ("%", "pp", "x")
    factor = around.scale if is_scaled else Decimal(scale)
    around.currency = around.currency or ("" if around.unit in ("%", "pp", "x") else currency)
    amounts = [_amount(value, places, is_negative, factor, around) for value, places in found]
    return replace(amounts[0], alternatives=(*amounts[1:], *_other_meanings(amounts[0], around)))


def _amount(value: Decimal, places: int, is_negative: bool, factor: Decimal, around: _Around) -> Amount:
    signed = EXACT.minus(value) if is_negative and value else value
    step = EXACT.multiply(Decimal(1).scaleb(-places), factor)
    return Amount(EXACT.multiply(signed, factor), around.unit, around.currency, factor, step, (), around.is_approximate)


def _other_meanings(amount: Amount, around: _Around) -> list[Amount]:
    found = []
    if around.ambiguous_letter and not amount.currency:
        unscaled = EXACT.divide(amount.value, amount.scale), EXACT.divide(amount.precision, amount.scale)
        unit = SCALE_OR_UNIT[around.ambiguous_letter]
        found.append(replace(amount, value=unscaled[0], precision=unscaled[1], scale=Decimal(1), unit=unit))
    if around.is_nordic:
        found += [replace(amount, currency=code) for code in NORDIC[1:]]
    return found


def _unsigned(text: str) -> tuple[str, bool]:
    """The text without brackets and outer signs, and whether they make it negative."""
    body = re.sub(r"\s+", " ", text.replace("\u00ad", "")).strip()
    if not body or len(body) > MAX_CHARACTERS:
        raise NotAnAmount(text, "it is empty" if not body else "it is too long")
    is_negative = False
    bracketed = re.search(r"\((?=[^()]*\d)([^()]*)\)", body)
    if bracketed is not None:
        is_negative, body = True, body[: bracketed.start()] + bracketed[1] + body[bracketed.end() :]
    else:
        body = re.sub(r"\(([^()\d]*)\)", r" \1 ", body)  # 1.2 (USD millions)
    body = re.sub(rf"(?<=\d)[.,][{MINUS}]{{1,2}}(?= ?(?:$|[^\d\s]))", " ", body)  # CHF 5.-
    trailing = re.search(rf"(?<=[\d%]) ?[{MINUS}](?= ?(?:$|[^\d\s]))", body)
    if trailing is not None:
        is_negative, body = not is_negative, body[: trailing.start()] + " " + body[trailing.end() :]
    return body, is_negative


def _sign_in(left: str) -> bool:
    return bool(re.search(f"[{MINUS}]", left)) or bool(re.search(r"\bminus\b", left, re.IGNORECASE))


def _read_around(text: str, part: str, around: _Around, locale: Locale | None, *, before: bool) -> None:
    part = re.sub(r"\bminus\b|^\s*\+|\+\s*$", " ", part, flags=re.IGNORECASE)
    tokens = [match[0] for match in TOKEN.finditer(part)]
    if len(re.sub(r"[\s,;:()]", "", part)) != len("".join(tokens).replace(" ", "")):
        raise NotAnAmount(text, f"{part.strip()!r} does not belong to an amount")
    words: list[str] = []
    at = 0
    while at < len(tokens):
        pair = tuple(token.lower() for token in tokens[at : at + 2])
        token = WORDS_OF_TWO.get(pair, tokens[at]) if len(pair) == 2 else tokens[at]
        at += 2 if pair in WORDS_OF_TWO else 1
        if not _take(token, around, locale, before):
            words.append(token)
    if words and (before or around.unit or len(words) > MAX_UNIT_WORDS):
        raise NotAnAmount(text, f"{' '.join(words)!r} does not belong to an amount")
    around.unit = around.unit or " ".join(words)


def _take(token: str, around: _Around, locale: Locale | None, before: bool) -> bool:
    """Note what a token says; whether it says anything that is known."""
    low = token.lower()
    if low in FILLERS:
        around.is_approximate |= low not in ("in", "of")
    elif low in PERCENT and not before:
        around.unit, around.scale = "%", around.scale * PERCENT[low]
    elif low in POINTS and not before:
        around.unit, around.scale = "pp", around.scale * Decimal("0.01")
    elif low in TIMES and not before:
        around.unit = "x"
    elif (code := _currency(token, locale)) and not around.currency:
        around.is_nordic = code == "kr"
        around.currency = NORDIC[0] if code == "kr" else code
    elif (factor := BARE_CASE.get(token) or SCALES.get(low) or SCALES.get(low.rstrip("."))) is not None:
        around.scale *= factor
        around.ambiguous_letter = token if token in SCALE_OR_UNIT else ""
    else:
        return _take_joined(token, around, locale)
    return True


def _take_joined(token: str, around: _Around, locale: Locale | None) -> bool:
    """Scale and currency in one word: ``USDm``, ``EURbn``, ``TEUR``."""
    low = token.lower()
    if token[:3].upper() in CODES and token[:3].isupper() and low[3:] in SCALES:
        around.currency, around.scale = token[:3], around.scale * SCALES[low[3:]]
        return True
    if len(token) == 4 and token[1:] in CODES and token[0] in "TKM":
        around.currency = token[1:]
        around.scale *= SCALES["m" if token[0] == "M" else "k"]
        return True
    if low == "t" and around.currency and around.scale == 1:
        return False
    return False


def _currency(token: str, locale: Locale | None) -> str:
    code = SIGNS.get(token) or (token.upper() if token.upper() in CODES and len(token) == 3 else "")
    code = code or CURRENCY_WORDS.get(token.lower(), "")
    if locale is not None and token == "$":
        return locale.dollar
    if locale is not None and code == "kr" and locale.krone:
        return locale.krone
    return code
