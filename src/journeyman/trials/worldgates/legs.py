"""The leg through LibreOffice: the right workbooks of a sample of tasks, recalculated and saved by it, must stay right.

A part of what G5 holds that needs a program which is not everywhere. So what came of it lies beside the tasks, in
``OUT/legs/``, and never in one: a build with LibreOffice and one without give the same tasks.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from journeyman.documents.xlsx.engines import office
from journeyman.tasks.grading import GradeItem
from journeyman.tasks.task import Task
from journeyman.tasks.verify import BatchVerifier
from journeyman.worlds.gates import Subject
from journeyman.worlds.gates.protocol import failing, unless_scored

LEGS = "legs"
"""Folder of a build with what became of its legs, one file per world that has any."""

SHARE = 0.02
"""Of the tasks, drawn by the seed; one process of LibreOffice takes seconds."""


def is_drawn(subject: Subject) -> bool:
    """Whether a task belongs to the sample."""
    return subject.rng("libreoffice").random() < SHARE


def leg_of(
    subject: Subject, task: Task, verifier: BatchVerifier, resave: Callable[[bytes], bytes] = office.resave
) -> dict[str, Any] | None:
    """What became of a task's workbooks; None for a task outside the sample or without a workbook.

    Args:
        task: the written directory.
        resave: a workbook as another program saves it; raises ValueError where that program is missing or fails.

    Returns:
        ``task``, ``ran``, and ``problem``, empty when all is well or nothing was run.
    """
    right = subject.write(subject.bound.answer) if is_drawn(subject) else {}
    books = [name for name in right if name.endswith(".xlsx")]
    if not books:
        return None
    try:
        office.program()
    except ValueError:
        return {"task": subject.task_id, "ran": False, "problem": ""}
    try:
        saved = {**right, **{name: resave(right[name]) for name in books}}
    except ValueError as error:
        return {"task": subject.task_id, "ran": True, "problem": str(error)[:200]}
    verdict = verifier.grade([GradeItem("libreoffice", task, saved)])[0]
    problem = unless_scored("resaved by LibreOffice", verdict)
    if not problem and (verdict.reward != 1.0 or not verdict.passed):
        problem = f"resaved by LibreOffice scores {verdict.reward}: {failing(verdict)}"
    return {"task": subject.task_id, "ran": True, "problem": problem}


def legs_of(out: Path) -> list[dict[str, Any]]:
    """The legs of a build."""
    return [leg for path in sorted((out / LEGS).glob("*.json")) for leg in json.loads(path.read_text())]


def counted(legs: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """``drawn``, ``ran`` and ``failed``."""
    return {
        "drawn": len(legs),
        "ran": sum(bool(leg["ran"]) for leg in legs),
        "failed": sum(bool(leg["problem"]) for leg in legs),
    }
