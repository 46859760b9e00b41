"""What a trap operator is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random

from journeyman.worlds.draft import Draft
from journeyman.worlds.plan import Planted, Rendering


@dataclass(frozen=True)
class Operator:
    """One kind of trap.

    Attributes:
        id: ``T1`` to ``T21``.
        title: what is planted, in a few words.
        point: ``truth`` (before documents are planned) or ``plan`` (before they are rendered).
        apply: plants it; returns what was planted, nothing when the world has no site for it.
        is_gate: falling for it zeroes the reward.
    """

    id: str
    title: str
    point: str
    apply: Callable[[Draft, Random], list[Planted]]
    is_gate: bool = False


def wrong_answer(planted: Planted) -> Mapping[str, str | int | float]:
    """What a solver gets by falling for it: name -> value, the automatic negative control."""
    return planted.wrong


def discoverable(planted: Planted, renderings: Mapping[str, list[Rendering]]) -> list[str]:
    """Facts that disarm the trap but can be read nowhere; empty when it is discoverable."""
    return [fact for fact in planted.fact_ids if not renderings.get(fact)]
