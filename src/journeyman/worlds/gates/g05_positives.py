"""G5: a right deliverable stays right however it is written: another writer, another format, another order."""

from __future__ import annotations

from collections.abc import Iterator

from journeyman.worlds.gates.protocol import Case, Evidence, Gate, Subject, failing, unless_scored
from journeyman.worlds.variants.positives import positives


def cases(subject: Subject) -> Iterator[Case]:
    """The right answer in other forms."""
    found = positives(subject.template, subject.bound, subject.office.files, subject.rng("positives"))
    for name, files in found:
        yield Case(f"G5:{name}", files)


def judge(subject: Subject, evidence: Evidence) -> Iterator[str]:
    """All of them at 1."""
    for name, verdict in evidence.of("G5"):
        if problem := unless_scored(name, verdict):
            yield problem
        elif verdict.reward != 1.0 or not verdict.passed:
            yield f"{name} scores {verdict.reward}: {failing(verdict)}"


GATE = Gate("G5", "metamorphic positives stay right", judge, cases)
