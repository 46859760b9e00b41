"""Which tasks a world gets: templates in turn, parameters from a stream of their own, what does not fit is passed over.

The same world, number and attempt draw the same task, whatever was drawn before it.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from journeyman.seeds import stream
from journeyman.worlds.curriculum import Knobs
from journeyman.worlds.splits import families_of
from journeyman.worlds.template import Bound, Template, Unbindable
from journeyman.worlds.truth.store import Ambiguous

if TYPE_CHECKING:
    from journeyman.worlds.office import Office

ATTEMPTS = 6
"""Draws of one template for one place before the next template is tried."""


@dataclass(frozen=True)
class Place:
    """Where a task goes.

    Attributes:
        world_index: of the world in its split.
        number: of the task in its world.
        turn: position in the whole build, which decides the template that is tried first.
    """

    world_index: int
    number: int
    turn: int


@dataclass
class Refusals:
    """Why templates were passed over, by (template, reason). State: the counts."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)

    def note(self, template: str, reason: str) -> None:
        """Count one."""
        self.counts[template, reason] += 1


def task_id_of(office: Office, number: int, template: str) -> str:
    """``train-0003-07-mc1``."""
    return f"{office.id}-{number:02d}-{template.lower()}"


def draw_knobs(rng: random.Random) -> Knobs:
    """Levels of one task: most are middling, a few easy, a few hard."""
    return Knobs(
        hops=rng.randint(1, 3),
        files=rng.randint(1, 3),
        distractors=rng.randint(0, 3),
        versions=rng.randint(0, 2),
        fan_out=rng.choice((1, 1, 2, 2, 3, 4)),
        deliverables=rng.randint(0, 1),
    )


def candidates(
    seed: int, office: Office, place: Place, templates: Mapping[str, Template], refusals: Refusals, seen: set[str]
) -> Iterator[tuple[str, Template, Bound]]:
    """Tasks for one place, best first; whoever takes one stops asking.

    Args:
        seen: instructions that this world has already; they are passed over.
    """
    families = families_of(office.split, templates)
    start = place.turn % len(families) if families else 0
    for name in _rotated(families, start):
        template = templates[name]
        for attempt in range(ATTEMPTS):
            key = (office.split, place.world_index, place.number, name, attempt)
            try:
                bound, again = (_bound(seed, key, office, template) for _ in range(2))
            except Unbindable as reason:
                refusals.note(name, f"unbindable: {reason}")
                continue
            except Ambiguous as reason:
                refusals.note(name, f"G7: {reason}"[:200])
                continue
            if bound != again:
                refusals.note(name, "G1: bound twice, it is two tasks")
                continue
            if bound.instruction in seen:
                refusals.note(name, "the world has this task already")
                continue
            yield task_id_of(office, place.number, name), template, bound


def rebound(seed: int, office: Office, template: Template, world_index: int, number: int) -> Iterator[Bound]:
    """The tasks that a template may have been bound to at a place, in the order of the attempts.

    Args:
        world_index, number: see ``Place``; a published task's provenance has both.
    """
    for attempt in range(ATTEMPTS):
        try:
            yield _bound(seed, (office.split, world_index, number, template.id, attempt), office, template)
        except (Unbindable, Ambiguous):
            continue


def _bound(seed: int, key: tuple[str | int, ...], office: Office, template: Template) -> Bound:
    rng = stream(seed, "bind", *key)
    return template.bind(office, rng, draw_knobs(rng))


def _rotated(names: Sequence[str], start: int) -> list[str]:
    return [*names[start:], *names[:start]]


def places_of(worlds: int, tasks: int, world: int, world_index: int) -> list[Place]:
    """The places of one world in a build of so many tasks, spread evenly.

    Args:
        worlds, tasks: of the whole build.
        world: position of the world in the build.
        world_index: of the world in its split.
    """
    first, last = world * tasks // worlds, (world + 1) * tasks // worlds
    return [Place(world_index, turn - first, turn) for turn in range(first, last)]
