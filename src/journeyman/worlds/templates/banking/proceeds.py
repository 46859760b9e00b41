"""Proceeds of a sale over the classes of a capitalisation: preferences, conversion, participation, options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from journeyman.worlds.template import Unbindable

MARGIN = 0.02
"""Decisions that hang on less than this share are no fair question."""

Holding = Mapping[str, Any]
"""``holder``, ``share_class``, ``shares``, ``strike``, ``preference``, ``participating``, ``seniority``."""


@dataclass(frozen=True)
class Split:
    """What one exit value comes to: net payouts in the order of the holdings, value of a common share, conversions.

    ``preferences`` were paid as such, ``strikes`` paid in by exercised options, ``shares`` share in the rest.
    """

    payouts: tuple[float, ...]
    per_share: float
    converts: tuple[str, ...]
    is_close: bool
    preferences: float
    strikes: float
    shares: int


def split(holdings: Sequence[Holding], value: float) -> Split:
    """Distribute an exit value; a class converts only where that gives it more, given what the others do.

    Raises:
        Unbindable: no set of conversions, or several, would be kept by everybody.
    """
    fixed = [n for n, row in enumerate(holdings) if row["preference"] is not None and not row["participating"]]
    sets = [frozenset(chosen) for size in range(len(fixed) + 1) for chosen in combinations(fixed, size)]
    found = {chosen: _distributed(holdings, value, chosen) for chosen in sets}
    stable = []
    for chosen, made in found.items():
        gains = {
            n: found[chosen | {n}].payouts[n] - found[chosen - {n}].payouts[n]
            for n in fixed
        }  # fmt: skip
        if all((gains[n] > 0) == (n in chosen) for n in fixed):
            is_close = any(0 < abs(gain) < MARGIN * holdings[n]["preference"] for n, gain in gains.items())
            stable.append(replace(made, is_close=made.is_close or is_close))
    if len(stable) != 1:
        raise Unbindable(f"{len(stable)} stable sets of conversions at {value:g}")
    return stable[0]


def _distributed(holdings: Sequence[Holding], value: float, convert: frozenset[int]) -> Split:
    """The distribution when these classes convert: preferences by seniority, then shares, options by their strike."""
    left, payouts = value, [0.0] * len(holdings)
    ranked = [n for n, row in enumerate(holdings) if row["preference"] is not None and n not in convert]
    for n in sorted(ranked, key=lambda n: -int(holdings[n]["seniority"])):
        payouts[n] = min(left, float(holdings[n]["preference"]))
        left -= payouts[n]
    sharing = [
        n
        for n, row in enumerate(holdings)
        if row["share_class"] == "Common" or n in convert or row["participating"] == 1
    ]
    options = sorted(
        (n for n, row in enumerate(holdings) if row["share_class"] == "Option"),
        key=lambda n: float(holdings[n]["strike"]),
    )
    count = sum(holdings[n]["shares"] for n in sharing)
    per_share, exercised = left / count, 0
    while exercised < len(options) and per_share > holdings[options[exercised]]["strike"]:
        row = holdings[options[exercised]]
        per_share = (per_share * count + row["shares"] * row["strike"]) / (count + row["shares"])
        count, exercised = count + row["shares"], exercised + 1
    preferences = sum(payouts)
    for n in (*sharing, *options[:exercised]):
        payouts[n] += holdings[n]["shares"] * (per_share - (holdings[n]["strike"] or 0.0))
    is_close = any(abs(per_share - holdings[n]["strike"]) < MARGIN * holdings[n]["strike"] for n in options)
    classes = tuple(sorted(str(holdings[n]["share_class"]) for n in convert))
    strikes = sum(holdings[n]["shares"] * holdings[n]["strike"] for n in options[:exercised])
    return Split(tuple(payouts), per_share, classes, is_close, preferences, strikes, count)


def pro_rata(holdings: Sequence[Holding], value: float) -> Split:
    """By shares alone, options like any other."""
    count = sum(row["shares"] for row in holdings)
    return Split(tuple(value * row["shares"] / count for row in holdings), value / count, (), False, 0.0, 0.0, count)


def forgetful(holdings: Sequence[Holding]) -> list[dict[str, Any]]:
    """The same cap table read by somebody who takes every preferred share to participate and options for free."""
    return [
        {
            **row,
            "participating": None if row["preference"] is None else 1,
            "strike": None if row["strike"] is None else 0.0,
        }
        for row in holdings
    ]
