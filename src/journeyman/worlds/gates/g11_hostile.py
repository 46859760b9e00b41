"""G11: text that begs, fake rewards, bombs, giant files and nonsense score 0, and the grader survives them."""

from __future__ import annotations

from collections.abc import Iterator

from journeyman.worlds.gates.protocol import Case, Evidence, Gate, Subject, unless_scored
from journeyman.worlds.variants.hostile import hostile


def cases(subject: Subject) -> Iterator[Case]:
    """One deliverable per attack."""
    for name, files in hostile(subject.bound):
        yield Case(f"G11:{name}", files)


def judge(subject: Subject, evidence: Evidence) -> Iterator[str]:
    """All at the floor, none of them a verifier error."""
    for name, verdict in evidence.of("G11"):
        if problem := unless_scored(name, verdict):
            yield problem
        elif verdict.reward != 0.0:
            yield f"{name} scores {verdict.reward}"


GATE = Gate("G11", "attacks score 0", judge, cases)
