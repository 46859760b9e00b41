"""How good are the verifiers of a built set? Sampled tasks, graded from their published directories, counted.

Each task's world is made again, so that its controls can be written anew; mutants and resaved forms are drawn from
streams that no gate used. A task whose truth the seed does not make is a finding. What is counted here gets its
intervals and its bounds in ``evals.verifiers``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from journeyman.errors import InputError
from journeyman.sandbox import PROVIDERS
from journeyman.seeds import stream
from journeyman.tasks.artifacts import read_artifacts
from journeyman.tasks.grading import GradeItem
from journeyman.tasks.task import load_task
from journeyman.tasks.verdict import Verdict
from journeyman.tasks.verify import BatchVerifier
from journeyman.worlds.binding import rebound
from journeyman.worlds.gates import Case, Subject
from journeyman.worlds.gates.g03_floor import cases as inactive
from journeyman.worlds.gates.g04_controls import problems_of
from journeyman.worlds.office import Office, make_office
from journeyman.worlds.templates import TEMPLATES
from journeyman.worlds.variants.baselines import Texts
from journeyman.worlds.variants.explaining import explained
from journeyman.worlds.variants.mutants import COUNT, mutants
from journeyman.worlds.variants.positives import positives
from journeyman.worlds.verify import truth_of, verifier_environment

LABEL = "worlds-quality"
WORLDS_AT_ONCE = 8
"""Worlds that one verifier sees before the next is started, where several processes share the work."""


@dataclass(frozen=True)
class Examined:
    """What was found on one task.

    Attributes:
        task_id, template, world_id: which task.
        counts: measure -> (deliverables that were judged as they should be, deliverables).
        findings: what is wrong, by measure first.
        survivors: mutants that passed: the operator, and what it changed.
    """

    task_id: str
    template: str
    world_id: str
    counts: Mapping[str, tuple[int, int]]
    findings: tuple[str, ...] = ()
    survivors: tuple[str, ...] = ()


def sampled(out: Path, count: int, seed: int) -> list[Path]:
    """Task directories of a build, drawn by a seed, in order. Raises InputError when there are none."""
    paths = sorted(path.parent.parent for path in (out / "tasks").glob("*/*/tests/provenance.json"))
    if not paths:
        raise InputError(str(out), "holds no office task", hint="make some: journeyman worlds build --tasks 20")
    return sorted(stream(seed, "quality").sample(paths, min(count, len(paths))))


def examine_tasks(
    paths: Sequence[Path],
    environments: Path,
    *,
    seed: int = 0,
    jobs: int = 1,
    waive: frozenset[str] = frozenset(),
    progress: Callable[[int, int, str], None] = lambda done, total, what: None,
) -> list[Examined]:
    """Grade the right answer, inaction, controls, fresh mutants and other forms of every task.

    Args:
        paths: task directories, see ``sampled``.
        environments: directory of sandbox environments.
        seed: of mutants and other forms.
        jobs: processes.
        progress: told (tasks done, tasks, world) after each world or portion of worlds.

    Raises:
        InputError: a directory is no office task.
        EnvironmentMissing: there is no sandbox here, or a library is missing.
    """
    by_world: dict[str, list[Path]] = {}
    for path in paths:
        by_world.setdefault(path.name.rsplit("-", 2)[0], []).append(path)
    verifier_environment(environments)  # once, before several processes look for it
    found: list[Examined] = []
    if jobs <= 1:
        for one in _of_worlds(list(by_world.values()), environments, seed, waive):
            found += one
            progress(len(found), len(paths), one[0].world_id)
        return found
    worlds = list(by_world.values())
    portions = [worlds[first : first + WORLDS_AT_ONCE] for first in range(0, len(worlds), WORLDS_AT_ONCE)]
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        pending = [pool.submit(_portion, portion, environments, seed, waive) for portion in portions]
        for future in pending:
            found += future.result()
            progress(len(found), len(paths), found[-1].world_id)
    return found


def _portion(worlds: list[list[Path]], environments: Path, seed: int, waive: frozenset[str]) -> list[Examined]:
    return [one for world in _of_worlds(worlds, environments, seed, waive) for one in world]


def _of_worlds(
    worlds: list[list[Path]], environments: Path, seed: int, waive: frozenset[str]
) -> Iterator[list[Examined]]:
    environment = verifier_environment(environments)
    with BatchVerifier(PROVIDERS["bwrap"](), environment, LABEL, waive=waive, one_batch=True) as verifier:
        for paths in worlds:
            origin = origin_of(paths[0])
            office = make_office(origin["seed"], origin["split"], origin["index"])
            yield [_tested(path, office, verifier, seed) for path in paths]


def origin_of(path: Path) -> dict[str, Any]:
    """Provenance of an office task. Raises InputError."""
    try:
        value: dict[str, Any] = json.loads((path / "tests" / "provenance.json").read_text())
    except (OSError, ValueError) as error:
        raise InputError(str(path), f"is no office task: {error}") from error
    return value


def _tested(path: Path, office: Office, verifier: BatchVerifier, seed: int) -> Examined:
    subject = subject_at(path, office)
    if subject is None:
        name = origin_of(path)["template"]
        return Examined(path.name, name, office.id, {"oracle": (0, 1)}, ("oracle: the seed makes another truth",))
    cases, changes = cases_at(path, subject, seed)
    task = load_task(path)
    verdicts = verifier.grade([GradeItem(case.name, task, case.files) for case in cases])
    return _counted(subject, dict(zip((case.name for case in cases), verdicts, strict=True)), changes)


def subject_at(path: Path, office: Office) -> Subject | None:
    """A published task bound again from its world; None when no attempt gives the truth that lies there."""
    origin, published = origin_of(path), (path / "tests" / "truth.json").read_bytes()
    template = TEMPLATES[origin["template"]]
    for bound in rebound(origin["seed"], office, template, origin["index"], origin["number"]):
        originals = {name: office.files[name] for name in bound.originals}
        if truth_of(bound.checks, originals, office.canary) == published:
            return Subject(origin["seed"], path.name, office, template, bound, Texts.of({}))
    return None


def cases_at(path: Path, subject: Subject, seed: int) -> tuple[list[Case], dict[str, str]]:
    """Every deliverable, its measure before a colon, and what each mutant changed."""
    bound, changes = subject.bound, dict[str, str]()
    found = [Case("oracle:published", read_artifacts(path / "solution" / "deliverables"))]
    found += [Case(f"no-op:{case.name}", case.files) for case in inactive(subject)]
    found += [Case(f"controls:{wrong.name}", subject.write(wrong.answer)) for wrong in bound.wrong]
    for number, (name, answer) in enumerate(mutants(bound, subject.rng(f"quality mutants {seed}"), COUNT), start=1):
        found.append(Case(f"mutants:{number}", subject.write(answer)))
        changes[f"mutants:{number}"] = f"{name}: {explained(bound.answer, answer)}"
    rng = subject.rng(f"quality forms {seed}")
    forms = positives(subject.template, bound, subject.office.files, rng)
    return [*found, *(Case(f"positives:{name}", files) for name, files in forms)], changes


def _counted(subject: Subject, verdicts: Mapping[str, Verdict], changes: Mapping[str, str]) -> Examined:
    controls = {f"controls:{wrong.name}": wrong for wrong in subject.bound.wrong}
    counts: dict[str, tuple[int, int]] = {}
    findings, survivors = [], []
    for name, verdict in verdicts.items():
        measure = name.partition(":")[0]
        if verdict.kind == "verifier_error":
            problem = f"the verifier broke: {verdict.error}: {verdict.explain[:160]}"
        elif measure in ("oracle", "positives"):
            problem = "" if verdict.reward == 1.0 and verdict.passed else f"scores {verdict.reward}"
        elif measure == "no-op":
            problem = "" if verdict.reward == 0.0 else f"scores {verdict.reward}"
        elif measure == "controls":
            problem = "; ".join(problems_of(controls[name], verdict))
        else:
            problem = changes[name] if verdict.passed else ""
            survivors += [problem] if problem else []
        held, asked = counts.get(measure, (0, 0))
        counts[measure] = (held + (not problem), asked + 1)
        if problem and measure != "mutants":
            findings.append(f"{name}: {problem}")
    return Examined(subject.task_id, subject.template.id, subject.office.id, counts, tuple(findings), tuple(survivors))
