"""``report.json`` as models: the words between whoever runs the ladder and whoever reads its report.

Schema version 1. All parts are frozen and refuse unknown fields; ``Report.model_validate_json`` reads a report back.
A report of an unfinished or failed run is a report too: sections that were not reached are empty. The rows of the
sections are in ``sections``, gates, tables and curves in ``figures``, the replayed trajectory in ``replay``.
"""

from __future__ import annotations

import re
from typing import Final, Literal

from pydantic import Field, FiniteFloat, JsonValue, field_validator, model_validator

from journeyman.evals.score import Boundary, Score, Word
from journeyman.ladder.report.figures import Curve, Gate, Status, Table, check_evidence, measured
from journeyman.ladder.report.replay import Trajectory
from journeyman.ladder.report.sections import (
    Ablation,
    BehaviourRow,
    ErrorTable,
    FamilyRow,
    GapPoint,
    ManifestEntry,
    ModelRow,
    Opening,
    Transfer,
)

SCHEMA_VERSION: Final = 1
_PATH = re.compile(r"(?:^|[\s=:(])(?:/[\w.-]+){2,}|[A-Za-z]:\\")


class Run(Word):
    """What was run, where, and what it took.

    Attributes:
        name: what was run, e.g. ``quickstart``.
        version: of journeyman.
        command: how to run it again, without paths.
        machine: facts about the machine by name (``cpu``, ``memory``, ``sandbox``...), without paths or host names.
        cpu_s: CPU-seconds of all processes.
        cpu_source: how they were read.
        wall_budget_s, cpu_budget_s, memory_budget_mb: what the run was allowed, None when nothing was declared.
        n_interruptions: how often it was continued after it had been stopped.
    """

    name: str
    version: str
    profile: str
    seed: int
    command: str
    machine: dict[str, str] = Field(default_factory=dict)
    started_at: str = measured("time")
    finished_at: str | None = measured("time", None)
    wall_s: FiniteFloat | None = measured("time", None, ge=0)
    wall_budget_s: FiniteFloat | None = measured("time", None, ge=0)
    cpu_s: FiniteFloat | None = measured("time", None, ge=0)
    cpu_source: str = ""
    cpu_budget_s: FiniteFloat | None = measured("time", None, ge=0)
    peak_memory_mb: FiniteFloat | None = measured("memory", None, ge=0)
    memory_budget_mb: FiniteFloat | None = None
    n_interruptions: int = measured("interruption", 0, ge=0)

    @field_validator("machine")
    @classmethod
    def _no_paths(cls, machine: dict[str, str]) -> dict[str, str]:
        for name, value in machine.items():
            if _PATH.search(value):
                raise ValueError(f"machine.{name} holds a path: {value}")
        return machine


class Step(Word):
    """One of the seven steps.

    Attributes:
        gate: the condition that decides; None while it is not reached.
        checks: further conditions; all must hold.
        summary: one sentence: what was done and what came out.
        evidence: what the gate stands on, by name; keys that measure time are refused.
        timing: figures that measure time, by name (``tokens_per_cpu_s``, ``idle_s``).
        look_at: files of the run directory that show more, relative.
    """

    number: int = Field(ge=1, le=7)
    name: str
    status: Status
    gate: Gate | None = None
    checks: tuple[Gate, ...] = ()
    summary: str = ""
    evidence: dict[str, JsonValue] = Field(default_factory=dict)
    timing: dict[str, FiniteFloat] = measured("time", default_factory=dict)
    tables: tuple[Table, ...] = ()
    look_at: tuple[str, ...] = ()
    wall_s: FiniteFloat | None = measured("time", None, ge=0)
    cpu_s: FiniteFloat | None = measured("time", None, ge=0)

    @model_validator(mode="after")
    def _consistent(self) -> Step:
        check_evidence(self.evidence, f"step {self.number} evidence")
        gates = [*([self.gate] if self.gate else []), *self.checks]
        if self.status == "passed" and (self.gate is None or not all(gate.passed for gate in gates)):
            raise ValueError(f"step {self.number} {self.name}: passed, but its gate or a check is missing or not met")
        if self.status == "failed" and gates and all(gate.passed for gate in gates):
            raise ValueError(f"step {self.number} {self.name}: failed, but its gate and checks hold")
        return self


def overall(steps: tuple[Step, ...] | list[Step]) -> Literal["passed", "failed", "running"]:
    """``failed`` as soon as a step failed, ``passed`` when all seven passed, ``running`` before that."""
    statuses = [step.status for step in steps]
    if "failed" in statuses:
        return "failed"
    return "passed" if len(statuses) == 7 and set(statuses) == {"passed"} else "running"


class Report(Word):
    """The whole report.

    Attributes:
        status: ``overall(steps)``; another value is refused.
        honesty: what a reader must know before believing a number; never empty.
        warnings: loud lines: a sandbox tier that was fallen back to, a waived limit, unclassified errors.
        boundaries: every system a Score was measured on; each ``Score.boundary`` names one of them.
        models: the four models side by side, one row per model, harness and decoding.
        reward_curve: RL reward per step, one series per score kind.
        curves: further curves (losses).
    """

    schema_version: Literal[1] = SCHEMA_VERSION
    run: Run
    status: Literal["passed", "failed", "running"]
    honesty: tuple[str, ...] = Field(min_length=1)
    warnings: tuple[str, ...] = ()
    steps: tuple[Step, ...]
    boundaries: tuple[Boundary, ...] = ()
    models: tuple[ModelRow, ...] = ()
    transfer: tuple[Transfer, ...] = ()
    reward_curve: Curve | None = None
    curves: tuple[Curve, ...] = ()
    families: tuple[FamilyRow, ...] = ()
    behaviour: tuple[BehaviourRow, ...] = ()
    ablation: Ablation | None = None
    errors: ErrorTable | None = None
    openings: tuple[Opening, ...] = ()
    logprob_gaps: tuple[GapPoint, ...] = ()
    replay: Trajectory | None = None
    manifest: tuple[ManifestEntry, ...] = ()

    @model_validator(mode="after")
    def _consistent(self) -> Report:
        if [step.number for step in self.steps] != list(range(1, len(self.steps) + 1)):
            raise ValueError("steps are numbered from 1 in order")
        if self.status != overall(self.steps):
            raise ValueError(f"status {self.status}, but the steps say {overall(self.steps)}")
        known = {boundary.name for boundary in self.boundaries}
        for score in scores_in(self):
            if score.boundary not in known:
                raise ValueError(f'a {score.kind} names the boundary "{score.boundary}", which is not in boundaries')
        return self


def scores_in(part: object) -> list[Score]:
    """Every Score below a model, in order."""
    if isinstance(part, Score):
        return [part]
    if isinstance(part, Word):
        return [score for name in type(part).model_fields for score in scores_in(getattr(part, name))]
    if isinstance(part, tuple | list):
        return [score for item in part for score in scores_in(item)]
    return []
