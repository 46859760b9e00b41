"""G1: the same seed makes the same world and the same task, byte for byte."""

from __future__ import annotations

from collections.abc import Iterator

from journeyman.worlds.gates.protocol import Evidence, Gate, Subject


def judge(subject: Subject, evidence: Evidence) -> Iterator[str]:
    """What a second build said."""
    if evidence.rebuilt is False:
        yield f"seed {subject.seed} makes another {subject.task_id} the second time"


GATE = Gate("G1", "reproducible", judge)
