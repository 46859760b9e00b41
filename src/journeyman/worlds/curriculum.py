"""Difficulty as integer levels, one per knob: a task says how hard it is in numbers that can be turned one at a time.

Raising one knob alone never raises the score of the scripted naive solver; gate G8 and a test hold templates to that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

BUCKETS = (10, 30, 100, 300)
"""Tool-call buckets: an oracle of n calls belongs to the bucket whose logarithm is nearest."""

_EDGES = (17, 55, 173)

DENSITY: Mapping[int, tuple[int, int]] = {10: (1, 0), 30: (3, 0), 100: (15, 2), 300: (40, 4)}
"""Bucket -> (least checkable nodes, least intermediate checks): a longer horizon without feedback only fails longer."""


TURNS: Mapping[str, tuple[int, ...]] = {
    "CL1": (1, 2, 1, 2),
    "CL2": (1, 2, 1),
    "IB12": (1, 2, 1, 3),
    "MC3": (1, 2, 1, 3),
    "S3": (1, 2, 1),
    "IB6": (1, 2, 1),
    "IB9": (0, 0, 0),
    "CL10": (0, 0, 0),
    "MC1": (0, 0),
    "IB7": (0, 0),
    "IF1": (0,),
    "IF2": (0,),
    "TD1": (0,),
    "SC2": (0,),
    "X1": (0,),
    "MC6": (0,),
    "CL8": (0,),
    "S2": (0,),
}
"""Family whose tasks take fifteen calls or more -> knob ``length`` of each of its turns in a round.

Every other family has one turn, of length 0. With these turns more than half of the tasks take fifteen calls, and one
in seven takes a hundred.
"""


@dataclass(frozen=True)
class Knobs:
    """Levels; 0 is the easiest.

    Attributes:
        hops: documents that one value leads through.
        files: files that must be opened, in fives.
        distractors: share of files that look right and are not, in tenths.
        versions: superseded versions per document.
        traps: how many traps of the template may be active; -1 for all that the world has.
        fan_out: how many like parts the task has, in sixes.
        currencies: currencies beyond the first.
        aliases: names beyond the first for one entity.
        missing: data that is not there.
        precedence: depth of a stated rule of precedence.
        deliverables: files asked for beyond the first.
        tables: complexity of tables: merged, split over pages, hidden.
        scans: image-only or hostile pages.
        events: mails that arrive while the task is worked on.
        faults: share of tool calls that fail on purpose, in hundredths.
        budget: how tight turns and tokens are.
        length: tool calls that the evidence needs: 0 for what the other knobs make of it, else the bucket
            ``BUCKETS[length]``; templates that cannot be so long ignore it, see ``TURNS``.
    """

    hops: int = 1
    files: int = 1
    distractors: int = 1
    versions: int = 1
    traps: int = -1
    fan_out: int = 1
    currencies: int = 0
    aliases: int = 0
    missing: int = 0
    precedence: int = 0
    deliverables: int = 0
    tables: int = 0
    scans: int = 0
    events: int = 0
    faults: int = 0
    budget: int = 0
    length: int = 0

    def as_json(self) -> dict[str, int]:
        """All levels by name."""
        return asdict(self)

    @property
    def level(self) -> int:
        """The sum of levels: 0 only when every knob is at its easiest."""
        return sum(max(0, value) for value in asdict(self).values())

    def raised(self, knob: str, by: int = 1) -> Knobs:
        """One knob turned. Raises ValueError for a knob that does not exist."""
        if knob not in {field.name for field in fields(self)}:
            raise ValueError(f"no knob {knob!r}; there are {', '.join(field.name for field in fields(self))}")
        return replace(self, **{knob: getattr(self, knob) + by})

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Knobs:
        """From what ``as_json`` gave; unknown names are an error (TypeError)."""
        return cls(**{key: int(value) for key, value in values.items()})


def bucket_of(calls: int) -> int:
    """The bucket of an oracle with this many tool calls."""
    return BUCKETS[sum(calls > edge for edge in _EDGES)]


def density_problem(calls: int, nodes: int, intermediate: int) -> str:
    """Why a task gives too little feedback for its length; empty when it gives enough.

    Args:
        calls: of the oracle.
        nodes: values and places that its checks look at, see ``Check.nodes``.
        intermediate: checks of stage ``intermediate``.
    """
    bucket = bucket_of(calls)
    least_nodes, least_checks = DENSITY[bucket]
    if nodes < least_nodes:
        return f"{nodes} checkable nodes for {calls} calls; a task of bucket {bucket} needs {least_nodes}"
    if intermediate < least_checks:
        return f"{intermediate} intermediate checks for {calls} calls; a task of bucket {bucket} needs {least_checks}"
    return ""
