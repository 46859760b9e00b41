"""How good the verifiers of a set of tasks are: each measure as a share with its interval, held against its bound."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from journeyman.evals.clustered import clustered_mean
from journeyman.evals.proportion import wilson
from journeyman.trials.worldgates.quality import Examined
from journeyman.trials.worldgates.steadiness import Steadiness

MEASURES: Mapping[str, tuple[str, float]] = {
    "oracle": ("the published right answer scores 1", 1.0),
    "no-op": ("nothing, empty, echoed and untouched files score 0", 1.0),
    "controls": ("negative controls fail the check that each names, at most 0.5", 1.0),
    "mutants": ("fresh mutants of the right answer fail", 0.95),
    "positives": ("resaved, reformatted, reordered right answers score 1", 1.0),
}
"""Measure -> what holds, and the least share."""


@dataclass(frozen=True)
class Row:
    """One measure.

    Attributes:
        measure, what: its name, and what was to hold.
        held, total: deliverables of which it holds, deliverables.
        low, high: Wilson interval at 95 %, with the effective number of units where worlds make them alike.
        bound: least share.
    """

    measure: str
    what: str
    held: int
    total: int
    low: float
    high: float
    bound: float

    @property
    def share(self) -> float:
        """Part of which it holds; 0 of nothing is 0."""
        return self.held / self.total if self.total else 0.0

    @property
    def is_met(self) -> bool:
        """Whether the share reaches the bound."""
        return self.total > 0 and self.share >= self.bound


@dataclass(frozen=True)
class Quality:
    """What was found on a sample.

    Attributes:
        tasks, worlds: how many were looked at.
        rows: the measures.
        survivors: template -> the operator of a mutant that passed, what it changed, and on which task.
        findings: everything else that does not hold.
        steadiness: of gradings again, where that was asked for.
    """

    tasks: int
    worlds: int
    rows: tuple[Row, ...]
    survivors: Mapping[str, Sequence[str]] = field(default_factory=dict)
    findings: Sequence[str] = ()
    steadiness: Steadiness | None = None

    @property
    def is_met(self) -> bool:
        """Whether every bound is."""
        is_steady = self.steadiness is None or not self.steadiness.unsteady
        return is_steady and all(row.is_met for row in self.rows)

    def as_json(self) -> dict[str, Any]:
        """A JSON value."""
        steady = self.steadiness
        return {
            "tasks": self.tasks,
            "worlds": self.worlds,
            "is_met": self.is_met,
            "measures": {
                row.measure: {"held": row.held, "total": row.total, "share": round(row.share, 6), "bound": row.bound,
                              "interval": [round(row.low, 6), round(row.high, 6)], "is_met": row.is_met}
                for row in self.rows
            },
            "survivors": {template: list(found) for template, found in self.survivors.items()},
            "findings": list(self.findings),
            "steadiness": None if steady is None else {
                "deliverables": steady.deliverables, "times": steady.times, "unsteady": list(steady.unsteady),
                "judge": {"answers": steady.answers, "flips": steady.flips, "failures": steady.failures,
                          "flip_rate": round(steady.flips / steady.answers, 6) if steady.answers else None},
            },
        }  # fmt: skip


def quality_of(tested: Sequence[Examined], steadiness: Steadiness | None = None) -> Quality:
    """The measures of a sample with intervals, and what an author can act on."""
    survivors: dict[str, list[str]] = defaultdict(list)
    for one in tested:
        survivors[one.template] += [f"{what} ({one.task_id})" for what in one.survivors]
    return Quality(
        len(tested),
        len({one.world_id for one in tested}),
        tuple(_row(measure, tested) for measure in MEASURES),
        {template: found for template, found in sorted(survivors.items()) if found},
        [f"{one.task_id}: {finding}" for one in tested for finding in one.findings],
        steadiness,
    )


def _row(measure: str, tested: Sequence[Examined]) -> Row:
    what, bound = MEASURES[measure]
    units: list[float] = []
    worlds: list[str] = []
    for one in tested:
        held, total = one.counts.get(measure, (0, 0))
        units += [1.0] * held + [0.0] * (total - held)
        worlds += [one.world_id] * total
    held, total = int(sum(units)), len(units)
    effective = clustered_mean(units, worlds).n_effective if total else None
    low, high = wilson(held / total if total else 0.0, min(total, effective or total))
    return Row(measure, what, held, total, low, high, bound)


def lines_of(quality: Quality) -> list[str]:
    """The table as Markdown, with what grading again gave as its last row."""
    lines = ["| measure | what holds | of | share | 95 % interval | bound | |", "|---|---|---|---|---|---|---|"]
    for row in quality.rows:
        word = "met" if row.is_met else "MISSED"
        share, interval = f"{row.share:.4f}", f"{row.low:.4f} to {row.high:.4f}"
        cells = [row.measure, row.what, f"{row.held} of {row.total}", share, interval, f"{row.bound:g}", word]
        lines.append(f"| {' | '.join(cells)} |")
    steady = quality.steadiness
    if steady is not None:
        same = steady.deliverables - len(steady.unsteady)
        what = f"{steady.times} gradings in two zones and locales give one verdict"
        word = "MISSED" if steady.unsteady else "met"
        lines.append(f"| regraded | {what} | {same} of {steady.deliverables} | | | 1 | {word} |")
        if steady.answers or steady.failures:
            rate = f"{steady.flips / steady.answers:.4f}" if steady.answers else ""
            what = f"a judge's answers that flip; it failed {steady.failures} times"
            lines.append(f"| flip rate | {what} | {steady.flips} of {steady.answers} | {rate} | | | |")
    return lines
