"""The words of the gates: the task that is judged, deliverables to be graded, what is known afterwards, the report."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from journeyman.seeds import stream
from journeyman.tasks.verdict import Verdict
from journeyman.worlds.template import Bound, Template
from journeyman.worlds.variants.baselines import Texts

if TYPE_CHECKING:
    from journeyman.worlds.office import Office


@dataclass(frozen=True)
class Subject:
    """A task under judgement.

    Attributes:
        seed: root seed of the build.
        task_id: name of its directory.
        office: its world.
        template: what it was bound from.
        bound: the task.
        texts: readable text of the world's files, for baselines.
    """

    seed: int
    task_id: str
    office: Office
    template: Template
    bound: Bound
    texts: Texts

    def rng(self, purpose: str) -> random.Random:
        """The stream of this task for one purpose."""
        return stream(self.seed, "gate", self.task_id, purpose)

    @cached_property
    def golden(self) -> dict[str, bytes]:
        """The right deliverables, written once."""
        return self.write(self.bound.answer)

    def write(self, answer: Mapping[str, Any], form: str = "plain") -> dict[str, bytes]:
        """Deliverables that say an answer."""
        return self.template.write(self.bound, dict(answer), self.office.files, form)


@dataclass(frozen=True)
class Case:
    """A deliverable to be graded.

    Attributes:
        name: unique; begins with the id of the gate that wants it and a colon, or is a rung of the ladder.
        files: name -> content, None for a trial that delivered nothing.
    """

    name: str
    files: Mapping[str, bytes] | None


@dataclass(frozen=True)
class Executed:
    """What the oracle from files did.

    Attributes:
        files: what it left.
        calls: how many tool calls it made.
        problem: why it did not end; empty when it did.
    """

    files: Mapping[str, bytes]
    calls: int
    problem: str = ""


@dataclass(frozen=True)
class Evidence:
    """What came of the cases, and what was found out otherwise.

    Attributes:
        verdicts: case -> verdict.
        oracle: of the oracle from files; None where there were no tools to run it.
        rebuilt: whether world and task came out the same a second time; None when nobody tried.
        twins: other tasks that are too much like this one.
    """

    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    oracle: Executed | None = None
    rebuilt: bool | None = None
    twins: Sequence[str] = ()

    def reward(self, case: str) -> float | None:
        """Reward of a case; None where there is none."""
        verdict = self.verdicts.get(case)
        return None if verdict is None else verdict.reward

    def of(self, gate: str) -> Iterable[tuple[str, Verdict]]:
        """Cases of a gate, their names without its id."""
        for name, verdict in self.verdicts.items():
            if name.partition(":")[0] == gate:
                yield name.partition(":")[2], verdict


@dataclass(frozen=True)
class Gate:
    """One gate.

    Attributes:
        id: ``G0`` to ``G12``.
        title: what it holds, in a few words.
        cases: what has to be graded for it.
        judge: what is wrong, each with its evidence.
    """

    id: str
    title: str
    judge: Callable[[Subject, Evidence], Iterable[str]]
    cases: Callable[[Subject], Iterable[Case]] = lambda subject: ()


@dataclass(frozen=True)
class Report:
    """What the gates found about one task; machine-readable, kept with the task, without times.

    Attributes:
        task_id, template: which task.
        findings: gate -> what is wrong.
        counts: gate -> deliverables that were graded for it.
        ladder: rung -> reward.
        calls: tool calls of the oracle from files; None when it was not run.
        kill_rate: share of mutants that failed; None without any.
    """

    task_id: str
    template: str
    findings: Mapping[str, tuple[str, ...]]
    counts: Mapping[str, int]
    ladder: Mapping[str, float | None]
    calls: int | None
    kill_rate: float | None

    @property
    def is_publishable(self) -> bool:
        """Whether no gate found anything."""
        return not any(self.findings.values())

    def refusals(self) -> list[str]:
        """One line per finding, the gate first."""
        return [f"{gate}: {one}" for gate, found in self.findings.items() for one in found]

    def as_json(self) -> dict[str, Any]:
        """A JSON value."""
        return {
            "task": self.task_id,
            "template": self.template,
            "gates": {
                gate: {"passed": not found, "cases": self.counts.get(gate, 0), "findings": list(found)}
                for gate, found in self.findings.items()
            },
            "ladder": dict(self.ladder),
            "oracle_calls": self.calls,
            "kill_rate": self.kill_rate,
        }


def unless_scored(name: str, verdict: Verdict | None) -> str:
    """What is wrong when a case has no number at all."""
    if verdict is None:
        return f"{name} was not graded"
    if verdict.kind == "verifier_error":
        return f"{name}: the verifier broke: {verdict.error}: {verdict.explain[:160]}"
    return ""


def failing(verdict: Verdict) -> str:
    """The checks that are not fulfilled, or why the deliverable is malformed."""
    bad = [f"{check.id} ({check.explain[:120]})" for check in verdict.checks if check.score < 1.0]
    return "; ".join(bad[:3]) or verdict.explain[:200]
