"""The ladder of baselines over a whole set: in order in every family, and strictly over all families together.

Each rung is a scripted solver; all of them met the same tasks, so neighbours are compared in pairs, clustered by world.
Where a family has no traps, ``trap-blind`` is who forgets the edge cases of its specification.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from journeyman.evals.clustered import Estimate
from journeyman.evals.paired import paired_difference
from journeyman.worlds.gates import Report
from journeyman.worlds.gates.g12_ladder import RUNGS, ladder_findings, rung_means

LEAST_WORLDS = 6
LEAST_TASKS = 60
"""Smaller sets are printed, but their order over all families is not judged."""

PAIRS = tuple(pairwise(RUNGS))


@dataclass(frozen=True)
class Rungs:
    """The ladder of a set.

    Attributes:
        tasks, worlds: that were graded.
        families: template -> (tasks, rung -> mean reward).
        steps: (lower, higher) -> mean of the paired differences, with its interval.
        findings: what is out of order.
        is_judged: whether the set is large enough for a word on the order over all families.
    """

    tasks: int
    worlds: int
    families: Mapping[str, tuple[int, Mapping[str, float]]]
    steps: Mapping[tuple[str, str], Estimate]
    findings: tuple[str, ...]
    is_judged: bool

    def as_json(self) -> dict[str, Any]:
        """A JSON value."""
        return {
            "is_judged": self.is_judged,
            "families": {name: {"tasks": n, **_rounded(means)} for name, (n, means) in self.families.items()},
            "steps": {f"{low} < {high}": [one.mean, one.low, one.high] for (low, high), one in self.steps.items()},
            "findings": list(self.findings),
        }


def rungs_of(reports: Iterable[Report]) -> Rungs:
    """Judge the ladder of a set; reports without one (nothing was graded) are left out."""
    graded = [report for report in reports if report.ladder]
    by_family: dict[str, list[Report]] = defaultdict(list)
    for report in graded:
        by_family[report.template].append(report)
    worlds = [report.task_id.rsplit("-", 2)[0] for report in graded]
    steps = {pair: _step(graded, worlds, *pair) for pair in PAIRS}
    is_judged = len(graded) >= LEAST_TASKS and len(set(worlds)) >= LEAST_WORLDS
    findings = ladder_findings(graded)
    if is_judged:
        findings += [
            f"all families: {high} is not above {low}: {_words(step)}"
            for (low, high), step in steps.items()
            if step.low is None or step.low <= 0
        ]
    families = {name: (len(members), rung_means(members)) for name, members in sorted(by_family.items())}
    return Rungs(len(graded), len(set(worlds)), families, steps, tuple(findings), is_judged)


def lines_of(rungs: Rungs, without_traps: Collection[str] = ()) -> list[str]:
    """The table as Markdown, and a line for each step.

    Args:
        without_traps: families whose ``trap-blind`` forgets edge cases instead; marked.
    """
    lines = [f"| family | tasks | {' | '.join(RUNGS)} |", "|---|---|" + "---|" * len(RUNGS)]
    for name, (count, means) in rungs.families.items():
        cells = [
            f"{means[rung]:.3f}" + ("*" if rung == "trap-blind" and name in without_traps else "") for rung in RUNGS
        ]
        lines.append(f"| `{name}` | {count} | {' | '.join(cells)} |")
    lines += [f"{low} < {high}: {_words(step)}" for (low, high), step in rungs.steps.items()]
    if any(name in without_traps for name in rungs.families):
        lines.append("* no edge case, where a family has no traps")
    if not rungs.is_judged:
        lines.append(f"the order over all families is judged from {LEAST_TASKS} tasks in {LEAST_WORLDS} worlds on")
    return lines


def _step(reports: Sequence[Report], worlds: Sequence[str], low: str, high: str) -> Estimate:
    def rewards(rung: str) -> list[float]:
        return [report.ladder.get(rung) or 0.0 for report in reports]

    return paired_difference(rewards(low), rewards(high), worlds)


def _words(step: Estimate) -> str:
    if step.mean is None:
        return step.interval
    if step.low is None or step.high is None:
        return f"{step.mean:+.4f}, {step.interval}"
    return f"{step.mean:+.4f} ({step.low:+.4f} to {step.high:+.4f}, {step.interval})"


def _rounded(means: Mapping[str, float]) -> dict[str, float]:
    return {rung: round(value, 4) for rung, value in means.items()}
