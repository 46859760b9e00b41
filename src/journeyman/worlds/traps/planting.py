"""Which traps a world gets, and where they came to lie."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from journeyman.worlds.draft import Draft
from journeyman.worlds.plan import Planted, Rendering
from journeyman.worlds.traps.operator import Operator
from journeyman.worlds.traps.t01_superseded import T1
from journeyman.worlds.traps.t02_restated import T2
from journeyman.worlds.traps.t03_currency import T3
from journeyman.worlds.traps.t04_scale import T4
from journeyman.worlds.traps.t05_fiscal_year import T5
from journeyman.worlds.traps.t06_sign import T6
from journeyman.worlds.traps.t07_alias import T7
from journeyman.worlds.traps.t08_hidden import T8
from journeyman.worlds.traps.t09_footnote import T9
from journeyman.worlds.traps.t10_subtotals import T10
from journeyman.worlds.traps.t11_absent import T11
from journeyman.worlds.traps.t12_precedence import T12
from journeyman.worlds.traps.t13_pasted import T13
from journeyman.worlds.traps.t14_duplicates import T14
from journeyman.worlds.traps.t15_text_numbers import T15
from journeyman.worlds.traps.t16_long_table import T16
from journeyman.worlds.traps.t17_tracked import T17
from journeyman.worlds.traps.t18_correction import T18
from journeyman.worlds.traps.t19_scan import T19
from journeyman.worlds.traps.t20_injection import T20
from journeyman.worlds.traps.t21_late import T21

OPERATORS: dict[str, Operator] = {
    "T1": T1,
    "T2": T2,
    "T3": T3,
    "T4": T4,
    "T5": T5,
    "T6": T6,
    "T7": T7,
    "T8": T8,
    "T9": T9,
    "T10": T10,
    "T11": T11,
    "T12": T12,
    "T13": T13,
    "T14": T14,
    "T15": T15,
    "T16": T16,
    "T17": T17,
    "T18": T18,
    "T19": T19,
    "T20": T20,
    "T21": T21,
}
"""Trap -> its operator."""

SHARE = 0.72
"""Of the operators, how many a world gets."""


def plant(draft: Draft, point: str) -> None:
    """Plant the world's share of traps that work at this point (``truth`` or ``plan``)."""
    chosen = draft.notes.setdefault("traps", _chosen(draft))
    for trap in chosen:
        operator = OPERATORS[trap]
        if operator.point == point:
            draft.plan.planted += operator.apply(draft, draft.rng(f"trap {trap}"))


def _chosen(draft: Draft) -> list[str]:
    """A share of the traps drawn per world, each as likely as the others."""
    names = list(OPERATORS)
    drawn = draft.rng("traps").sample(names, round(SHARE * len(names)))
    return [name for name in names if name in drawn]


def located(planted: Iterable[Planted], renderings: Iterable[Rendering]) -> tuple[Planted, ...]:
    """Traps with the places that disarm them and those that mislead, by their facts."""
    places: dict[str, list[tuple[str, str]]] = {}
    for one in renderings:
        places.setdefault(one.fact_id, []).append((one.path, one.locator))
    return tuple(
        replace(
            trap,
            locators=tuple(place for fact in trap.fact_ids for place in places.get(fact, ())),
            bait=tuple(place for fact in trap.bait_facts for place in places.get(fact, ())),
        )
        for trap in planted
    )
