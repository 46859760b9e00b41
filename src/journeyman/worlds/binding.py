"""Which tasks a world gets: templates in turn, parameters from a stream of their own, what does not fit is passed over.

The same world, number and attempt draw the same task, whatever was drawn before it.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from journeyman.seeds import stream
from journeyman.worlds.curriculum import TURNS, Knobs
from journeyman.worlds.splits import HELD_OUT_FAMILIES, families_of
from journeyman.worlds.template import Bound, Template, Unbindable
from journeyman.worlds.truth.store import Ambiguous

if TYPE_CHECKING:
    from journeyman.worlds.office import Office

ATTEMPTS = 6
"""Draws of one template for one place before the next template is tried."""

HELD_OUT_TURNS = 9
"""Turns of a family that only ``test`` has for one of any other: a seventh of the worlds has to hold enough of them."""

PHASE = 0.618
"""Part of its first turn's span that a family waits more than the one before it: what is long comes in even steps."""

LONG = 2
"""Knob ``length`` from which a task is long: a hundred tool calls."""

Turn = tuple[str, int]
"""A family, and the knob ``length`` of its task."""


@dataclass(frozen=True)
class Place:
    """Where a task goes.

    Attributes:
        world_index: of the world in its split.
        number: of the task in its world.
        turn: position among all places of the split, which decides the template that is tried first.
        others: turns of the other places of the world.
    """

    world_index: int
    number: int
    turn: int
    others: tuple[int, ...] = ()


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
    for name, length in order_of(seed, office.split, place, templates):
        template = templates[name]
        for attempt in range(ATTEMPTS):
            key = (office.split, place.world_index, place.number, name, attempt)
            try:
                bound = _bound(seed, key, office, template, length)
                if bound.instruction in seen:
                    refusals.note(name, "the world has this task already")
                    continue
                again = _bound(seed, key, office, template, length)
            except Unbindable as reason:
                refusals.note(name, f"unbindable: {reason}")
                continue
            except Ambiguous as reason:
                refusals.note(name, f"G7: {reason}"[:200])
                continue
            if bound != again:
                refusals.note(name, "G1: bound twice, it is two tasks")
                continue
            yield task_id_of(office, place.number, name), template, bound


def order_of(seed: int, split: str, place: Place, families: Iterable[str]) -> list[Turn]:
    """Every family of a split, with a length, in the order in which a place tries them.

    First the one whose turn it is; where that was to be a long task, then others that can be as long. Where all fail,
    what this world would not have otherwise, in an order of the place's own, so that what one family leaves is shared
    out among all; last those whose turn comes in the same world.
    """
    cycle = cycle_of(split, families)
    if not cycle:
        return []
    first = cycle[place.turn % len(cycle)]
    planned = {cycle[turn % len(cycle)][0] for turn in place.others} | {first[0]}
    rest = sorted({name for name, _ in cycle} - {first[0]})
    stream(seed, "places", split, place.world_index, place.number).shuffle(rest)
    rest = [name for name in rest if name not in planned] + [name for name in rest if name in planned]
    long = [(name, LONG) for name in (first[0], *rest) if LONG in TURNS.get(name, ())] if first[1] >= LONG else []
    usual = [(name, TURNS.get(name, (0,))[0]) for name in (*rest, first[0])]
    return list(dict.fromkeys([first, *long, *usual]))


def cycle_of(split: str, families: Iterable[str]) -> list[Turn]:
    """The turns of a round, each family's spread over it; in ``test`` those that only it has come
    ``HELD_OUT_TURNS`` times as often."""
    spread = []
    for position, name in enumerate(families_of(split, families)):
        lengths = TURNS.get(name, (0,)) * (HELD_OUT_TURNS if name in HELD_OUT_FAMILIES else 1)
        phase = position * PHASE % 1.0
        spread += [((turn + phase) / len(lengths), position, name, length) for turn, length in enumerate(lengths)]
    return [(name, length) for _, _, name, length in sorted(spread)]


def rebound(seed: int, office: Office, template: Template, world_index: int, number: int) -> Iterator[Bound]:
    """The tasks that a template may have been bound to at a place, in the order of the attempts.

    Args:
        world_index, number: see ``Place``; a published task's provenance has both.
    """
    for attempt in range(ATTEMPTS):
        for length in sorted(set(TURNS.get(template.id, (0,)))):
            try:
                yield _bound(seed, (office.split, world_index, number, template.id, attempt), office, template, length)
            except (Unbindable, Ambiguous):
                continue


def _bound(seed: int, key: tuple[str | int, ...], office: Office, template: Template, length: int) -> Bound:
    rng = stream(seed, "bind", *key)
    return template.bind(office, rng, replace(draw_knobs(rng), length=length))


def places_of(worlds: Sequence[tuple[str, int]], tasks: int, position: int) -> list[Place]:
    """The places of one world in a build of so many tasks, spread evenly.

    Args:
        worlds: (split, index) of every world of the build, see ``splits.office_worlds``.
        tasks: of the whole build.
        position: of the world in the build.
    """

    def count(at: int) -> int:
        return (at + 1) * tasks // len(worlds) - at * tasks // len(worlds)

    split, index = worlds[position]
    start = sum(count(at) for at in range(position) if worlds[at][0] == split)
    turns = range(start, start + count(position))
    return [Place(index, turn - start, turn, tuple(one for one in turns if one != turn)) for turn in turns]
