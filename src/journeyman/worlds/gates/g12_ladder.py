"""G12: nothing < naive < one document < falling for traps < the oracle; judged on families, since tasks may tie.

On one task: the oracle is at 1, inaction at 0, and whoever falls for every trap does not pass. On a family the means
are in order and the last but one is at most 0.3; over all families the order is strict.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from journeyman.worlds.gates.protocol import Case, Evidence, Gate, Report, Subject

RUNGS = ("no-op", "naive", "single", "trap-blind", "oracle")
CEILING = 0.3
TASK_CEILING = 0.5


def cases(subject: Subject) -> Iterator[Case]:
    """The rungs that other gates do not have."""
    single = subject.bound.single
    yield Case("single", subject.write(single) if single is not None else {})
    yield Case("trap-blind", subject.write(subject.bound.trap_blind))


def judge(subject: Subject, evidence: Evidence) -> Iterator[str]:
    """What can be said of one task."""
    for rung in ("single", "trap-blind"):
        verdict = evidence.verdicts.get(rung)
        if verdict is not None and (verdict.passed or (verdict.reward or 0.0) > TASK_CEILING):
            yield f"the {rung} solver scores {verdict.reward}, at most {TASK_CEILING} is allowed on one task"


def ladder_findings(reports: Iterable[Report]) -> list[str]:
    """What is wrong with families, and with all of them together."""
    by_family: dict[str, list[Report]] = defaultdict(list)
    for report in reports:
        by_family[report.template].append(report)
    found = []
    for family, members in sorted(by_family.items()):
        means = rung_means(members)
        if means["no-op"] != 0.0 or means["oracle"] != 1.0:
            found.append(f"{family}: no-op {means['no-op']}, oracle {means['oracle']}")
        for lower, higher in pairwise(RUNGS[1:4]):
            if means[lower] > means[higher] + 1e-9:
                found.append(f"{family}: {lower} {means[lower]:.3f} is above {higher} {means[higher]:.3f}")
        if means["trap-blind"] > CEILING:
            found.append(f"{family}: trap-blind {means['trap-blind']:.3f}, at most {CEILING} is allowed")
    return found


def rung_means(reports: Sequence[Report]) -> dict[str, float]:
    """Mean reward per rung; rungs that were not graded count 0."""
    total = max(1, len(reports))
    return {rung: sum(report.ladder.get(rung) or 0.0 for report in reports) / total for rung in RUNGS}


GATE = Gate("G12", "ladder of solvers", judge, cases)
