"""What must hold before a task leaves: each gate returns its findings, and an empty list means passed.

``GATES`` need only truth and files. ``plan_findings`` needs the agent's tools, which belong to another room, so it
takes them as a function; running oracle and controls in sandboxes is the business of whoever runs trials.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from io import BytesIO

from journeyman.digest import canonical_json
from journeyman.worlds.mini import pools
from journeyman.worlds.mini.checks import answer
from journeyman.worlds.mini.protocol import FIELD_SEPARATOR, BoundTask
from journeyman.worlds.mini.world import World, make_world

MIN_CONTROLS = 3
MIN_SEED_DIGITS = 5
"""A shorter seed occurs everywhere by chance, so its absence would say nothing."""


@dataclass(frozen=True)
class Subject:
    """What a gate judges: a task, its world, and the seed that made both."""

    seed: int
    world: World
    bound: BoundTask


def reproducible(subject: Subject) -> list[str]:
    """The same seed gives the same world again."""
    split, _, index = subject.world.id.rpartition("-")
    again = make_world(subject.seed, split, int(index))
    return [] if again == subject.world else [f"seed {subject.seed} makes another world {subject.world.id}"]


def unique_answer(subject: Subject) -> list[str]:
    """Every label of the plan names one row and one column; every person has one client and the other way round."""
    world, findings = subject.world, []
    if len(set(world.clients.values())) != len(world.clients):
        findings.append("a client has two owners")
    for step in subject.bound.plan:
        if step.tool != "lookup" or step.arguments["path"] == pools.OWNERS_FILE:
            continue
        table = world.table(step.arguments["path"])
        for label, labels in ((step.arguments["row"], table.entities), (step.arguments["col"], table.quarters)):
            if labels.count(label) != 1:
                findings.append(f"{label} occurs {labels.count(label)} times in {table.file}")
    return findings


def no_leak(subject: Subject) -> list[str]:
    """Neither canary nor seed occurs in anything visible, and the answer not in the instruction or a file name."""
    world, bound = subject.world, subject.bound
    secrets = {"canary": world.canary.encode(), "canary without dashes": world.canary.replace("-", "").encode()}
    if len(str(abs(subject.seed))) >= MIN_SEED_DIGITS:
        secrets["seed"] = str(abs(subject.seed)).encode()
    findings = [
        f"{what} occurs in {place}"
        for place, data in _visible(subject)
        for what, secret in secrets.items()
        if secret in data
    ]
    if any(
        field in text for field in bound.answer.split(FIELD_SEPARATOR) for text in (bound.instruction, *world.files)
    ):
        findings.append("the answer occurs in the instruction or a file name")
    return findings


def _visible(subject: Subject) -> Iterator[tuple[str, bytes]]:
    yield "the instruction", subject.bound.instruction.encode()
    for name, data in subject.world.files.items():
        yield f"the name {name}", name.encode()
        yield name, data
        if zipfile.is_zipfile(BytesIO(data)):
            with zipfile.ZipFile(BytesIO(data)) as container:
                for member in container.namelist():
                    yield f"{name}/{member}", container.read(member)


def controls_fail(subject: Subject) -> list[str]:
    """At least three wrong answers are declared, and each fails the check it names; the right answer passes."""
    bound = subject.bound
    truth = {"answer": bound.answer}
    findings = []
    if len(bound.controls) < MIN_CONTROLS:
        findings.append(f"{len(bound.controls)} negative controls, {MIN_CONTROLS} are needed")
    for control in bound.controls:
        found = answer.grade(_deliverable(control.answer), truth)
        scores = {check["id"]: check["score"] for check in found["checks"]}
        if found["passed"] or found["reward"] == 1.0:
            findings.append(f"control {control.name} passes")
        elif scores.get(control.fails) != 0.0:
            findings.append(f"control {control.name} does not fail {control.fails}")
    if not answer.grade(_deliverable(bound.answer), truth)["passed"]:
        findings.append("the right answer does not pass")
    return findings


def _deliverable(text: str) -> dict[str, bytes]:
    return {answer.DELIVERABLE: canonical_json({"answer": text})}


GATES: dict[str, Callable[[Subject], list[str]]] = {
    "reproducible": reproducible,
    "unique_answer": unique_answer,
    "no_leak": no_leak,
    "controls_fail": controls_fail,
}


def findings_of(subject: Subject) -> list[str]:
    """All findings of all gates, each with the gate's name in front."""
    return [f"{name}: {finding}" for name, gate in GATES.items() for finding in gate(subject)]


def plan_findings(bound: BoundTask, call: Callable[[str, Mapping[str, str]], str]) -> list[str]:
    """The oracle's plan, run through the agent's own tools, ends with the answer.

    Args:
        bound: the task.
        call: runs one tool on the world's files and returns the text that an agent would see.
    """
    observations = [call(step.tool, step.arguments) for step in bound.plan]
    count = bound.answer.count(FIELD_SEPARATOR) + 1
    result = FIELD_SEPARATOR.join(observations[-count:])
    return [] if result == bound.answer else [f"the plan ends with {result!r}, the answer is {bound.answer!r}"]
