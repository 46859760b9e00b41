"""Which traps a world gets, and where they came to lie."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from journeyman.worlds.draft import Draft
from journeyman.worlds.plan import Planted, Rendering
from journeyman.worlds.traps.operator import Operator

OPERATORS: dict[str, Operator] = {}
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
