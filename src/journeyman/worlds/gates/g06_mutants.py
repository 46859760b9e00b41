"""G6: of twenty mutants of the right deliverable at least 95 % fail the task."""

from __future__ import annotations

from collections.abc import Iterator

from journeyman.worlds.gates.protocol import Case, Evidence, Gate, Subject, unless_scored
from journeyman.worlds.variants.mutants import COUNT, mutants

LEAST_RATE = 0.95
LEAST_COUNT = 12
"""Fewer different mutants than this say too little; short answers have fewer than ``COUNT``."""


def cases(subject: Subject) -> Iterator[Case]:
    """Mutants, numbered."""
    for number, (name, answer) in enumerate(mutants(subject.bound, subject.rng("mutants"), COUNT), start=1):
        yield Case(f"G6:{number} {name}", subject.write(answer))


def kill_rate(evidence: Evidence) -> float | None:
    """Share of the mutants that did not pass."""
    found = [verdict for _, verdict in evidence.of("G6")]
    return round(sum(verdict.passed is False for verdict in found) / len(found), 4) if found else None


def judge(subject: Subject, evidence: Evidence) -> Iterator[str]:
    """Enough mutants, nearly all dead; survivors are named."""
    found = list(evidence.of("G6"))
    for name, verdict in found:
        if problem := unless_scored(f"mutant {name}", verdict):
            yield problem
    rate = kill_rate(evidence)
    if found and len(found) < LEAST_COUNT:
        yield f"only {len(found)} different mutants could be made, {LEAST_COUNT} are needed"
    if rate is not None and rate < LEAST_RATE:
        alive = [name for name, verdict in found if verdict.passed]
        yield f"{rate:.0%} of {len(found)} mutants were killed; alive: {', '.join(alive[:5])}"


GATE = Gate("G6", "mutants are killed", judge, cases)
