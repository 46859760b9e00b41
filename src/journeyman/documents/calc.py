"""The command ``calc EXPR`` and its arithmetic: exact ``+ - *`` and brackets on decimal numbers, nothing else.

A hand-written descent instead of ``ast``: it starts faster and there is nothing to escape from. A number is a pair
(integer, decimals), so results are exact.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    Number: TypeAlias = tuple[int, int]

MAX_LENGTH = 200
"""Characters of an expression; with it the size of any result is bounded too."""

MAX_DEPTH = 20
"""Brackets inside brackets."""


class BadExpression(ValueError):
    """Not an expression of numbers, ``+ - *`` and brackets, or too long."""


def evaluate(expression: str) -> str:
    """The value of an expression as text, without trailing zeros: ``1.50*2`` is ``3``.

    Raises:
        BadExpression: with what is wrong and where.
    """
    if len(expression) > MAX_LENGTH:
        raise BadExpression(f"longer than {MAX_LENGTH} characters")
    value, end = _sum(expression, 0, 0)
    end = _blank(expression, end)
    if end != len(expression):
        raise BadExpression(f"unexpected {expression[end]!r} at {end + 1}")
    return _text(value)


def _sum(text: str, at: int, depth: int) -> tuple[Number, int]:
    value, at = _product(text, at, depth)
    while (at := _blank(text, at)) < len(text) and text[at] in "+-":
        sign = 1 if text[at] == "+" else -1
        right, at = _product(text, at + 1, depth)
        decimals = max(value[1], right[1])
        total = value[0] * 10 ** (decimals - value[1]) + sign * right[0] * 10 ** (decimals - right[1])
        value = (total, decimals)
    return value, at


def _product(text: str, at: int, depth: int) -> tuple[Number, int]:
    value, at = _factor(text, at, depth)
    while (at := _blank(text, at)) < len(text) and text[at] == "*":
        right, at = _factor(text, at + 1, depth)
        value = (value[0] * right[0], value[1] + right[1])
    return value, at


def _factor(text: str, at: int, depth: int) -> tuple[Number, int]:
    at = _blank(text, at)
    if at == len(text):
        raise BadExpression("ends where a number should follow")
    if depth > MAX_DEPTH:
        raise BadExpression(f"nested deeper than {MAX_DEPTH}")
    if text[at] == "-":
        value, at = _factor(text, at + 1, depth + 1)
        return (-value[0], value[1]), at
    if text[at] == "(":
        value, at = _sum(text, at + 1, depth + 1)
        at = _blank(text, at)
        if at == len(text) or text[at] != ")":
            raise BadExpression("a bracket is not closed")
        return value, at + 1
    return _number(text, at)


def _number(text: str, at: int) -> tuple[Number, int]:
    end = at
    while end < len(text) and text[end] in "0123456789.":
        end += 1
    whole, point, part = text[at:end].partition(".")
    if not whole or "." in part or (point and not part):
        raise BadExpression(f"no number at {at + 1}")
    return (int(whole + part), len(part)), end


def _blank(text: str, at: int) -> int:
    while at < len(text) and text[at] == " ":
        at += 1
    return at


def _text(value: Number) -> str:
    number, decimals = value
    sign, digits = "-" if number < 0 else "", str(abs(number)).rjust(decimals + 1, "0")
    whole, part = digits[: len(digits) - decimals], digits[len(digits) - decimals :].rstrip("0")
    return sign + whole + (f".{part}" if part else "")


def main(arguments: list[str] | None = None) -> int:
    """Print the value and return 0, or ``error: bad expression`` and return 1 (2 for bad usage)."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if len(arguments) != 1:
        sys.stderr.write("usage: calc EXPR\n")
        return 2
    try:
        value = evaluate(arguments[0])
    except BadExpression as error:
        sys.stderr.write(f"error: bad expression: {error}\n")
        return 1
    sys.stdout.write(f"{value}\n")
    return 0
