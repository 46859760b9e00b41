"""Is what lies there what its seed makes, and does every gate still pass on it? Built again, compared byte for byte."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from journeyman.digest import directory_sha256
from journeyman.errors import InputError
from journeyman.sandbox.scratch import scratch
from journeyman.tasks.task import load_task
from journeyman.trials.worldgates.building import WORDING, build, order_of
from journeyman.trials.worldgates.legs import counted, legs_of
from journeyman.worlds.gates import GATES, Report
from journeyman.worlds.gates.g12_ladder import ladder_findings
from journeyman.worlds.splits import refuse_held_out, refuse_mixed, refuse_shared_content
from journeyman.worlds.stats import gate_rows

LABEL = "worlds-check"


@dataclass(frozen=True)
class Checked:
    """What a check found.

    Attributes:
        tasks: how many there are.
        findings: what does not hold, one line each.
        table: gate -> tasks, deliverables, failed.
        reports: of the tasks as they were built again.
        legs: of the sample for LibreOffice, see ``legs.counted``.
    """

    tasks: int
    findings: tuple[str, ...]
    table: dict[str, dict[str, int]]
    reports: tuple[Report, ...] = ()
    legs: Mapping[str, int] = field(default_factory=dict)


def check_build(
    out: Path,
    *,
    jobs: int = 1,
    waive: frozenset[str] = frozenset(),
    progress: Callable[[int, int, str], None] = lambda done, total, what: None,
) -> Checked:
    """Build everything again, run every gate again, and compare.

    Raises:
        InputError: no build of office worlds lies there.
        EnvironmentMissing: a sandbox or a library is missing.
    """
    order = order_of(out)
    here = {path.name: path for path in sorted((out / "tasks").glob("*/*")) if path.is_dir()}
    findings = split_findings(list(here.values()))
    with scratch(LABEL) as place:
        if (out / WORDING).is_dir():  # what a model once said is part of what the seed makes
            shutil.copytree(out / WORDING, place / "again" / WORDING)
        build(order, place / "again", jobs=jobs, waive=waive, progress=progress)
        again = {path.name: path for path in sorted((place / "again" / "tasks").glob("*/*")) if path.is_dir()}
        findings += [
            f"{name}: the seed does not make it, or a gate refuses it now" for name in here if name not in again
        ]
        findings += [f"{name}: the seed makes it, and it is not there" for name in again if name not in here]
        for name in here.keys() & again.keys():
            if directory_sha256(here[name]) != directory_sha256(again[name]):
                findings.append(f"{here[name]}: differs from what seed {order.seed} makes")
        reports = [report_at(path) for path in again.values()]
        legs = legs_of(place / "again")
    findings += ladder_findings(reports) if order.gates == "all" else []
    findings += [f"{leg['task']}: {leg['problem']}" for leg in legs if leg["problem"]]
    rows = gate_rows(report.as_json()["gates"] for report in reports)
    return Checked(len(here), tuple(sorted(findings)), rows, tuple(reports), counted(legs))


def split_findings(paths: list[Path]) -> list[str]:
    """Tasks that do not load, or break what keeps splits apart."""
    found, tasks = [], []
    for path in paths:
        try:
            tasks.append(load_task(path))
        except InputError as error:
            found.append(str(error))
    try:
        for split in sorted({task.path.parent.name for task in tasks}):
            refuse_mixed([task for task in tasks if task.path.parent.name == split], split)
        refuse_held_out(tasks)
        refuse_shared_content(tasks)
    except InputError as error:
        found.append(str(error))
    return found


def reports_of(out: Path) -> list[Report]:
    """The reports that lie with the tasks of a build."""
    return [report_at(path.parent.parent) for path in sorted((out / "tasks").glob("*/*/tests/gates.json"))]


def report_at(task: Path) -> Report:
    """The report that lies with a task. Raises InputError when there is none."""
    path = task / "tests" / "gates.json"
    if not path.is_file():
        raise InputError(str(task), "has no report of gates", hint="build it again: journeyman worlds build")
    value: dict[str, Any] = json.loads(path.read_text())
    gates = value["gates"]
    return Report(
        value["task"], value["template"], {gate: tuple(facts["findings"]) for gate, facts in gates.items()},
        {gate: facts["cases"] for gate, facts in gates.items()}, value["ladder"], value["oracle_calls"],
        value["kill_rate"],
    )  # fmt: skip


def table_lines(rows: dict[str, dict[str, int]], legs: Mapping[str, int] | None = None) -> list[str]:
    """The gate table as Markdown; ``legs`` adds what LibreOffice was asked."""
    lines = ["| gate | what it holds | tasks | deliverables | failed |", "|---|---|---|---|---|"]
    for gate in GATES.values():
        row = rows.get(gate.id, {"tasks": 0, "deliverables": 0, "failed": 0})
        lines.append(f"| {gate.id} | {gate.title} | {row['tasks']} | {row['deliverables']} | {row['failed']} |")
    if legs is not None:
        what = f"right after LibreOffice, of {legs['drawn']} drawn"
        lines.append(f"| G5 | {what} | {legs['ran']} | {legs['ran']} | {legs['failed']} |")
    return lines
