"""The words between task templates and everybody who uses a bound task."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from journeyman.worlds.mini.pools import OWNERS_FILE
from journeyman.worlds.mini.world import World

FIELD_SEPARATOR = ";"
"""Between the fields of an answer; every answer is text."""


@dataclass(frozen=True)
class Step:
    """One tool call of a plan, with the concrete arguments that the truth knows (``calc`` gets ``412+377``)."""

    tool: str
    arguments: Mapping[str, str]


@dataclass(frozen=True)
class Control:
    """A wrong deliverable that the verifier must not pass.

    Attributes:
        name: what went wrong, e.g. ``other-quarter``.
        answer: the answer given instead; never equal to the right one.
        fails: id of the check that must score below 1.
    """

    name: str
    answer: str
    fails: str


@dataclass(frozen=True)
class BoundTask:
    """A template filled with one world: what is asked, how it is solved, what is right and what must be refused.

    Attributes:
        family: key of the template in ``TEMPLATES``.
        world_id: world it was bound to.
        instruction: everything the agent is told.
        plan: tool calls of the oracle, in order; the final answer is not a step.
        answer: fields joined by ``FIELD_SEPARATOR``.
        controls: at least three negative controls.
        script: body of the oracle's shell script, one command a line.
        params: what the template drew, by name.
    """

    family: str
    world_id: str
    instruction: str
    plan: tuple[Step, ...]
    answer: str
    controls: tuple[Control, ...]
    script: tuple[str, ...]
    params: Mapping[str, str] = field(default_factory=dict)

    @property
    def inputs(self) -> tuple[str, ...]:
        """Files that the prompt lists, sorted: those the plan opens and the mail, which every task mentions."""
        opened = {step.arguments["path"] for step in self.plan if "path" in step.arguments}
        return tuple(sorted({*opened, OWNERS_FILE}))


class Template(Protocol):
    """One family of tasks."""

    family: str

    def bind(self, world: World, rng: random.Random) -> BoundTask:
        """Draw the parameters of one task. The answer is unique and every control differs from it."""
        ...
