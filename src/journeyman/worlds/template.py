"""What a task template is, and a template bound to one world: everything that makes, solves, and judges a task.

A template says five things: which facts it takes (``bind``), what is asked, what is right (``answer``), how a right
answer looks as files (``write``), how it is found with the agent's tools (``solve``). Wrong deliverables, resaved
ones, baselines and gates follow from these. ``bind`` reads the truth; ``solve`` sees only what the instruction says.
"""

from __future__ import annotations

import random
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from journeyman.worlds.curriculum import Knobs
from journeyman.worlds.verify import Check

if TYPE_CHECKING:
    from journeyman.worlds.office import Office

Answer = dict[str, Any]
"""What is right, or wrong, as one JSON value; ``write`` turns it into files."""

Files = Mapping[str, bytes]
"""Relative path -> content."""

FOLDER = "artifacts"
"""Directory of the world in which deliverables are left, so that every tool can write them: ``/artifacts`` to tools."""


class Unbindable(Exception):
    """This world has no task of this kind, or none with one answer; the text says why, and counts in statistics."""


@dataclass(frozen=True)
class ToolCall:
    """One call of the agent's tools, by public name (``tools.surface``)."""

    tool: str
    arguments: Mapping[str, Any]


Solving = Generator[ToolCall, str, None]
"""Yields calls and is sent what each answers, as the agent would see it. Raises ``Lost`` when it cannot go on."""


class Lost(Exception):
    """A solver did not find what it needs; the text says what."""


@dataclass(frozen=True)
class Wrong:
    """A deliverable that must fail.

    Attributes:
        name: what went wrong, e.g. ``T14:duplicates``, ``swapped-entity``, ``stale-version``.
        answer: what is delivered instead; never equal to the right one.
        fails: id of the check that must not be fulfilled.
        trap: the trap whose victim this is, or empty.
    """

    name: str
    answer: Answer
    fails: str
    trap: str = ""


@dataclass(frozen=True)
class Bound:
    """A template filled from one world.

    Attributes:
        template: key in ``TEMPLATES``.
        domain: ``banking``, ``law``, ``consulting``, ``search``, ``code``, ``coordination``, ...
        world_id: which world.
        instruction: everything the agent is told.
        ask: the same as data: all that ``solve`` may know.
        answer: what is right.
        checks: see ``verify``.
        deliverables: names below ``FOLDER``.
        wrong: negative controls: one per trap, a swapped entity, a stale version; at least four.
        single: the answer of somebody who opens one document only, or None where that gives nothing.
        trap_blind: the answer of somebody who falls for every trap (families without traps: who forgets edge cases).
        facts: ids of facts that the answer follows from; each must be readable somewhere.
        reads: paths that the oracle needs.
        originals: files of the world that checks compare with.
        traps: traps that matter here.
        unordered: paths of lists in ``answer`` whose order says nothing.
        knobs: the difficulty it was bound with.
        secrets: texts beside the answer that must not stand in the instruction.
        notes: parameters for statistics and the structural signature.
        counterparts: script of people who answer mails, see ``tasks.counterparts``; empty where nobody does. Such a
            task delivers the journal that is kept of the talk.
    """

    template: str
    domain: str
    world_id: str
    instruction: str
    ask: Mapping[str, Any]
    answer: Answer
    checks: tuple[Check, ...]
    deliverables: tuple[str, ...]
    wrong: tuple[Wrong, ...]
    trap_blind: Answer
    single: Answer | None = None
    facts: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    originals: tuple[str, ...] = ()
    traps: tuple[str, ...] = ()
    unordered: tuple[str, ...] = ()
    knobs: Knobs = field(default_factory=Knobs)
    secrets: tuple[str, ...] = ()
    notes: Mapping[str, Any] = field(default_factory=dict)
    counterparts: Mapping[str, Any] = field(default_factory=dict)


class Template(Protocol):
    """One kind of task. State: none; a template is a frozen value."""

    @property
    def id(self) -> str:
        """Key in ``TEMPLATES``, e.g. ``MC1``."""
        ...

    @property
    def domain(self) -> str:
        """See ``Bound.domain``."""
        ...

    @property
    def title(self) -> str:
        """A line for the catalogue."""
        ...

    @property
    def traps(self) -> tuple[str, ...]:
        """Traps it can use."""
        ...

    def bind(self, office: Office, rng: random.Random, knobs: Knobs) -> Bound:
        """Draw parameters and facts from the truth. Raises Unbindable."""
        ...

    def write(self, bound: Bound, answer: Answer, world: Files, form: str = "plain") -> dict[str, bytes]:
        """The deliverables that say an answer.

        Args:
            answer: right or wrong.
            world: the world's files, for tasks that edit one.
            form: ``plain``; ``typed`` (numbers typed where formulas were asked for). Unknown forms are ``plain``.
        """
        ...

    def solve(self, ask: Mapping[str, Any]) -> Solving:
        """The oracle from files: finds the answer with the agent's tools and leaves the deliverables."""
        ...
