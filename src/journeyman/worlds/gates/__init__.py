"""Publish gates: what must hold before a task leaves, one file per gate, each with a test that makes it fail.

Promises: a gate says which deliverables have to be graded (``cases``) and judges what came of them (``judge``); it runs
nothing itself, so graders, tools and sandboxes stay with whoever runs trials; what it finds is words with evidence, and
an empty list is a pass. G13 needs a model and is not among them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from journeyman.worlds.gates import (
    g00_checks,
    g01_reproducible,
    g02_solvable,
    g03_floor,
    g04_controls,
    g05_positives,
    g06_mutants,
    g07_unique,
    g08_baselines,
    g09_leaks,
    g10_twins,
    g11_hostile,
    g12_ladder,
)
from journeyman.worlds.gates.protocol import Case, Evidence, Executed, Gate, Report, Subject

__all__ = [
    "GATES",
    "Case",
    "Evidence",
    "Executed",
    "Gate",
    "Report",
    "Subject",
    "cases_by_gate",
    "cases_of",
    "report_of",
]

GATES: dict[str, Gate] = {
    gate.id: gate
    for gate in (
        g00_checks.GATE,
        g01_reproducible.GATE,
        g02_solvable.GATE,
        g03_floor.GATE,
        g04_controls.GATE,
        g05_positives.GATE,
        g06_mutants.GATE,
        g07_unique.GATE,
        g08_baselines.GATE,
        g09_leaks.GATE,
        g10_twins.GATE,
        g11_hostile.GATE,
        g12_ladder.GATE,
    )
}
"""Id -> gate, in the order in which they are judged."""


def cases_of(subject: Subject) -> list[Case]:
    """Every deliverable that the gates want graded, each once."""
    return [case for _, cases in cases_by_gate(subject) for case in cases]


def cases_by_gate(subject: Subject) -> Iterator[tuple[str, list[Case]]]:
    """Gate -> the deliverables that it is the first to want, made when the gate's turn comes."""
    seen: set[str] = set()
    for gate in GATES.values():
        cases = [case for case in gate.cases(subject) if case.name not in seen]
        seen |= {case.name for case in cases}
        yield gate.id, cases


def report_of(subject: Subject, evidence: Evidence, lap: Callable[[str], None] = lambda gate: None) -> Report:
    """The findings of every gate.

    Args:
        lap: told the id of each gate when it is done, for whoever measures.
    """
    findings = {}
    counts = {}
    for gate in GATES.values():
        findings[gate.id] = tuple(gate.judge(subject, evidence))
        counts[gate.id] = max(1, sum(1 for case in evidence.verdicts if case.partition(":")[0] == gate.id))
        lap(gate.id)
    ladder = {rung: evidence.reward(f"{rung}") for rung in g12_ladder.RUNGS if rung in evidence.verdicts}
    calls = evidence.oracle.calls if evidence.oracle is not None else None
    return Report(
        subject.task_id, subject.bound.template, findings, counts, ladder, calls, g06_mutants.kill_rate(evidence)
    )
