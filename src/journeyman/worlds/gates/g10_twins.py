"""G10: no other task is nearly the same, and the task's world belongs to its split."""

from __future__ import annotations

from collections.abc import Iterator

from journeyman.errors import InputError
from journeyman.worlds.gates.protocol import Evidence, Gate, Subject
from journeyman.worlds.splits import split_of


def judge(subject: Subject, evidence: Evidence) -> Iterator[str]:
    """Twins are found over the whole set; the split is the world's."""
    for twin in evidence.twins:
        yield f"nearly the same as {twin}"
    office = subject.office
    try:
        if split_of(office.id) != office.split:
            yield f"world {office.id} says it is of split {office.split}"
    except InputError as error:
        yield str(error)


GATE = Gate("G10", "no twins, splits apart", judge)
