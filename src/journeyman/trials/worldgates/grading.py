"""Everything the gates want to know about one task: gradings in the shared verifier, the oracle through tools."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from journeyman.digest import sha256, sha256_json
from journeyman.tasks.grading import GradeItem
from journeyman.tasks.task import Task
from journeyman.tasks.verdict import Verdict
from journeyman.tasks.verify import BatchVerifier
from journeyman.trials.worldgates.solving import WorldDesk
from journeyman.worlds.content import unmarked
from journeyman.worlds.gates import GATES, Evidence, Executed, Report, Subject, cases_by_gate, report_of
from journeyman.worlds.gates.g02_solvable import FILES
from journeyman.worlds.office import Office
from journeyman.worlds.variants.baselines import Texts

SOLVABLE = "G2"


def texts_of(office: Office) -> Texts:
    """What can be read in each file of a world, from its plan: what the files say without parsing them again."""
    texts = {path: "\n".join(_words(document.content)) for path, document in office.documents.items()}
    texts |= {f"apps/{path}": data.decode("utf-8", "replace") for path, data in office.apps.items()}
    return Texts.of({path: unmarked(text)[0] for path, text in sorted(texts.items())})


def _words(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, bool) or value is None:
        return []
    if isinstance(value, int | float):
        return [str(value)]
    if is_dataclass(value):
        return [word for field in fields(value) for word in _words(getattr(value, field.name))]
    if isinstance(value, Mapping):
        return [word for one in value.values() for word in _words(one)]
    if isinstance(value, Sequence):
        return [word for one in value for word in _words(one)]
    return []


def examine(
    subject: Subject,
    task: Task,
    verifier: BatchVerifier,
    desk: WorldDesk | None,
    *,
    rebuilt: bool | None = None,
    twins: Sequence[str] = (),
    lap: Callable[[str], None] = lambda gate: None,
) -> Report:
    """Run every gate on one task. One that cannot be solved is refused by G2 before anything else of it is graded.

    Args:
        task: the written directory; its tests are what grades.
        verifier: shared by all tasks of this worker.
        desk: tools on the task's world; None leaves the oracle from files out, which G2's count then shows.
        rebuilt, twins: see ``Evidence``.
        lap: told the id of each gate when a part of its work is done, for whoever measures.

    Raises:
        SystemFault: a sandbox or the tools' program broke.
    """
    executed: Executed | None = None
    verdicts: dict[str, Verdict] = {}
    known: dict[str, Verdict] = {}
    for gate, cases in cases_by_gate(subject):
        items = [GradeItem(case.name, task, case.files) for case in cases]
        if gate == SOLVABLE and desk is not None:
            executed = desk.solve(subject.template, subject.bound)
            items += [] if executed.problem else [GradeItem(FILES, task, executed.files)]
        verdicts |= graded(verifier, items, known)
        evidence = Evidence(verdicts, executed, rebuilt, tuple(twins))
        if gate == SOLVABLE and (problems := tuple(GATES[SOLVABLE].judge(subject, evidence))):
            calls = executed.calls if executed is not None else None
            return Report(
                subject.task_id, subject.bound.template, {gate: problems}, {gate: len(items)}, {}, calls, None
            )
        lap(gate)
    return report_of(subject, Evidence(verdicts, executed, rebuilt, tuple(twins)), lap)


def graded(verifier: BatchVerifier, items: Sequence[GradeItem], known: dict[str, Verdict]) -> dict[str, Verdict]:
    """Item -> verdict. What is equal byte for byte is graded once: that verdicts repeat is held elsewhere.

    Args:
        known: content -> verdict of deliverables of the same task; what is new is added.
    """
    keys = {item.trial_id: content_of(item) for item in items}
    new = {keys[item.trial_id]: item for item in items if keys[item.trial_id] not in known}
    if new:
        known |= dict(zip(new, verifier.grade(list(new.values())), strict=True))
    return {name: known[key] for name, key in keys.items()}


def content_of(item: GradeItem) -> str:
    """Digest of a deliverable's names and bytes; empty where nothing was delivered."""
    if item.artifacts is None:
        return ""
    return sha256_json({name: sha256(data) for name, data in item.artifacts.items()})
