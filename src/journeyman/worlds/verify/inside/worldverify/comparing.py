"""One expected value against what a deliverable says: numbers, dates, amounts, words, sets; nothing equals nothing.

An expected value is JSON. A number, a text and a boolean stand for themselves; an object names another kind:

``{"date": "2025-03-31"}`` · ``{"amount": "1200000", "currency": "USD"}`` · ``{"one_of": ["yes", "y"]}`` ·
``{"set": ["A", "B"]}`` · ``{"absent": true}`` (says in words that it is not in the record) · ``{"any": true}``.
"""

from __future__ import annotations

import math
import re
import unicodedata
from functools import lru_cache
from typing import Any

ABS_TOL, REL_TOL = 0.005, 1e-6
"""Default tolerance of numbers: half a cent, or a millionth."""

YES, NO = {"yes", "y", "true", "1", "x", "ja", "oui"}, {"no", "n", "false", "0", "", "nein", "non"}

ABSENT = {
    "n/a", "na", "none", "not found", "not available", "not in the record", "not in record", "not in the files",
    "not disclosed", "not stated", "no record", "absent", "missing", "unknown",
}  # fmt: skip
"""How people say that something is not there; an empty cell says nothing."""


def normal(text: Any) -> str:
    """A text as it compares: compatibility forms, case, quotes, dashes and white space do not count."""
    return _normal(str(text))


@lru_cache(maxsize=4096)
def _normal(text: str) -> str:
    if text.isascii():
        flat = text.lower()
    else:
        flat = unicodedata.normalize("NFKC", text).casefold().translate(_LOOKALIKES)
    return " ".join(flat.split()).strip(".").strip()


_LOOKALIKES = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "–": "-", "—": "-", "‑": "-", "\u00a0": " "})


def number_of(got: Any) -> float | None:
    """The number that a cell or a JSON value says, None where it says none. A text is read as an amount."""
    if isinstance(got, bool) or got is None:
        return None
    if isinstance(got, int | float):
        return float(got) if math.isfinite(got) else None
    text = str(got)
    if _PLAIN.fullmatch(text):
        return float(text)
    amount = amount_of(text)
    return None if amount is None else float(amount.value)


_PLAIN = re.compile(r"-?(?:0|[1-9][0-9]{0,14})(?:\.[0-9]{1,2})?")
"""Numerals that have one meaning everywhere."""


def amount_of(got: Any) -> Any:
    """The amount of a text, None where it is none."""
    return _amount(str(got))


@lru_cache(maxsize=4096)
def _amount(text: str) -> Any:
    from officedocs.amounts import NotAnAmount, parse

    try:
        return parse(text)
    except (NotAnAmount, ValueError):
        return None


def date_of(got: Any, epoch: int = 1900) -> str:
    """A day in ISO 8601; empty where none is said. Numbers are days as spreadsheets count them."""
    from officedocs.amounts import NotADate, from_serial, parse_date

    if isinstance(got, bool) or got is None or got == "":
        return ""
    try:
        if isinstance(got, int | float):
            return str(from_serial(float(got), 1904 if epoch == 1904 else 1900))[:10]
        if re.fullmatch(r"\d{4}-\d{2}-\d{2}.*", str(got).strip()):
            return str(got).strip()[:10]
        return str(parse_date(str(got)).value)[:10]
    except (NotADate, ValueError, TypeError, OverflowError):
        return ""


def items_of(got: Any) -> list[str]:
    """The members of a list, or of a text that separates them by semicolons, lines, bullets or commas."""
    if isinstance(got, list | tuple):
        return [normal(one) for one in got if normal(one)]
    text = "" if got is None else str(got)
    parts = re.split(r"[;\n\u2022|]" if re.search(r"[;\n\u2022|]", text) else r",", text)
    return [normal(one) for one in parts if normal(one)]


def equal(expected: Any, got: Any, tol: dict[str, float] | None = None, epoch: int = 1900) -> bool:
    """Whether a value is the expected one. Empty values, errors and NaN equal nothing.

    Args:
        expected: see the module.
        got: from a cell, a JSON field or a text.
        tol: ``abs`` and ``rel`` of numbers; the larger counts.
        epoch: of a workbook's dates.
    """
    if isinstance(expected, dict):
        return _equal_object(expected, got, tol, epoch)
    if isinstance(expected, bool):
        word = normal(got)
        return got is expected if isinstance(got, bool) else (word in YES if expected else word in NO and word != "")
    if isinstance(expected, int | float):
        return _close(float(expected), number_of(got), tol)
    return got is not None and not isinstance(got, bool) and normal(got) == normal(expected) != ""


def _close(expected: float, got: float | None, tol: dict[str, float] | None) -> bool:
    if got is None or not math.isfinite(expected):
        return False
    allowed = tol if tol is not None else {"abs": ABS_TOL, "rel": REL_TOL}
    limit = max(allowed.get("abs", 0.0), allowed.get("rel", 0.0) * abs(expected))
    return abs(got - expected) <= limit * (1 + 1e-9) + 1e-12


def _equal_object(expected: dict[str, Any], got: Any, tol: dict[str, float] | None, epoch: int) -> bool:
    if expected.get("any"):
        return got is not None and str(got).strip() != ""
    if expected.get("absent"):
        words = normal(got)
        return any(word == words or words.startswith(f"{word} ") or f"{word}:" in words for word in ABSENT if word)
    if "date" in expected:
        return date_of(got, epoch) == str(expected["date"])
    if "amount" in expected:
        return _equal_amount(expected, got, tol)
    if "one_of" in expected:
        return any(equal(one, got, tol, epoch) for one in expected["one_of"])
    if "set" in expected:
        return sorted({normal(one) for one in expected["set"]}) == sorted(set(items_of(got)))
    raise ValueError(f"no kind of expected value: {sorted(expected)}")


def _equal_amount(expected: dict[str, Any], got: Any, tol: dict[str, float] | None) -> bool:
    """Unit and scale are read, a coarser answer than the truth allows is not equal."""
    want = float(expected["amount"])
    if isinstance(got, int | float) and not isinstance(got, bool):
        return _close(want, number_of(got), tol)
    amount = amount_of(got)
    if amount is None:
        return False
    currency = expected.get("currency", "")
    if currency and amount.currency and amount.currency != currency:
        return False
    if amount.unit == "%" and expected.get("unit") != "%":
        return False
    return _close(want, float(amount.value), tol)


def shown(value: Any, limit: int = 60) -> str:
    """A value for an explanation."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        value = int(value)
    text = "nothing" if value is None or value == "" else repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= limit else f"{text[:limit]}..."


def kind_of(expected: Any) -> str:
    """What an expected value is, for explanations that must not tell it."""
    if isinstance(expected, dict):
        return next(iter(expected), "value")
    if isinstance(expected, bool):
        return "yes or no"
    return "number" if isinstance(expected, int | float) else "text"
