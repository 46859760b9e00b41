"""Does the same deliverable get the same verdict, whatever the time, the zone and the locale? Graded again and again.

Programs must agree with themselves to the last byte. A judge may not: for criteria of a rubric the share of answers
that differ from the criterion's most frequent one is counted, and printed as the flip rate.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from journeyman.sandbox import PROVIDERS
from journeyman.tasks.artifacts import read_artifacts
from journeyman.tasks.grading import GradeItem
from journeyman.tasks.judge import Judge
from journeyman.tasks.opinion import PREFIX
from journeyman.tasks.task import Task, load_task
from journeyman.tasks.verdict import Verdict
from journeyman.tasks.verify import BatchVerifier
from journeyman.trials.worldgates.quality import cases_at, origin_of, subject_at
from journeyman.worlds.gates import Case
from journeyman.worlds.office import Office, make_office
from journeyman.worlds.verify import verifier_environment

LABEL = "worlds-steadiness"

PLACES = (
    {"TZ": "Asia/Kolkata", "LC_ALL": "de_DE.UTF-8", "LANG": "de_DE.UTF-8"},
    {"TZ": "America/St_Johns", "LC_ALL": "C", "LANG": "C"},
)
"""Where gradings pretend to be: zones that are no whole hours from another, a decimal comma and a decimal point."""

KINDS = ("oracle", "no-op", "controls", "mutants", "positives")


@dataclass(frozen=True)
class Steadiness:
    """What grading again gave.

    Attributes:
        deliverables: how many were graded ``times`` times by programs.
        times: gradings of each, half of them in each of ``PLACES``.
        unsteady: task and deliverable whose verdicts were not all the same.
        answers: a judge's answers to criteria of right deliverables.
        flips: those that differ from the criterion's most frequent answer.
        failures: gradings that have no number because the judge failed.
    """

    deliverables: int
    times: int
    unsteady: tuple[str, ...]
    answers: int = 0
    flips: int = 0
    failures: int = 0


def grade_again(
    paths: Sequence[Path],
    environments: Path,
    times: int,
    *,
    seed: int = 0,
    waive: frozenset[str] = frozenset(),
    judge: Judge | None = None,
) -> Steadiness:
    """Grade one deliverable of each kind of every task, ``times`` times.

    Args:
        paths: task directories.
        judge: answers the criteria of tasks that have a rubric; None leaves them out.

    Raises:
        InputError: a directory is no office task.
        EnvironmentMissing: there is no sandbox here, or a library is missing.
    """
    items = list(_items(paths, seed))
    seen: dict[str, set[str]] = {item.trial_id: set() for item in items}
    environment = verifier_environment(environments)
    for number, place in enumerate(PLACES):
        with BatchVerifier(PROVIDERS["bwrap"](), environment, LABEL, waive=waive, one_batch=True, env=place) as one:
            for _ in range(times // 2 if number else times - times // 2):
                for item, verdict in zip(items, one.grade(items), strict=True):
                    seen[item.trial_id].add(json.dumps(verdict.to_dict(), sort_keys=True))
    unsteady = tuple(name for name, verdicts in seen.items() if len(verdicts) > 1)
    if judge is None:
        return Steadiness(len(items), times, unsteady)
    with BatchVerifier(PROVIDERS["bwrap"](), environment, LABEL, waive=waive, one_batch=True, judge=judge) as one:
        counts = [_judged(load_task(path), one, times) for path in paths if (path / "tests" / "rubric.json").is_file()]
    answers, flips, failures = (sum(count[index] for count in counts) for index in range(3))
    return Steadiness(len(items), times, unsteady, answers, flips, failures)


def _items(paths: Sequence[Path], seed: int) -> Iterator[GradeItem]:
    """The first deliverable of each kind, task by task; a world is made once for tasks in a row."""
    office: Office | None = None
    for path in paths:
        origin, task = origin_of(path), load_task(path)
        if office is None or office.id != task.world_id:
            office = make_office(origin["seed"], origin["split"], origin["index"])
        subject = subject_at(path, office)
        if subject is None:
            yield GradeItem(f"{path.name} oracle", task, read_artifacts(path / "solution" / "deliverables"))
            continue
        first: dict[str, Case] = {}
        for case in cases_at(path, subject, seed)[0]:
            first.setdefault(case.name.partition(":")[0], case)
        for kind in KINDS:
            if kind in first:
                yield GradeItem(f"{path.name} {first[kind].name}", task, first[kind].files)


def _judged(task: Task, verifier: BatchVerifier, times: int) -> tuple[int, int, int]:
    """Answers, flips and failures over gradings of a task's right deliverable."""
    right = read_artifacts(task.path / "solution" / "deliverables")
    verdicts: list[Verdict] = verifier.grade([GradeItem(task.id, task, right)] * times)
    answers: dict[str, Counter[float]] = {}
    for verdict in verdicts:
        for check in verdict.checks:
            if check.id.startswith(PREFIX):
                answers.setdefault(check.id, Counter())[check.score] += 1
    total = sum(count.total() for count in answers.values())
    most = sum(max(count.values()) for count in answers.values())
    return total, total - most, sum(verdict.kind == "verifier_error" for verdict in verdicts)
