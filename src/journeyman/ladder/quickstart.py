"""``journeyman quickstart``: walk the seven steps, stop at the first gate that fails, report.

Every step is acknowledged as a stage; the same command after a crash continues with the first one that is missing.
The report is rewritten after every step, so a run that stopped has one too.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from journeyman.clock import Stopwatch, now
from journeyman.durable import write_json
from journeyman.ladder.assemble import assemble
from journeyman.ladder.bench import Bench
from journeyman.ladder.intact import refuse_changed_worlds
from journeyman.ladder.profiles import check_available
from journeyman.ladder.recipe import QuickstartRecipe
from journeyman.ladder.report.model import Report, Step
from journeyman.ladder.report.write import write_report
from journeyman.ladder.rundir import RunDirectory
from journeyman.ladder.steps import ablate, environment, overfit, system, tokens, train, transfer
from journeyman.ladder.workshop import Workshop
from journeyman.sandbox.reaper import reap
from journeyman.sandbox.usage import CpuMeter

STEP_NAMES = ("environment", "tokens", "system", "overfit", "ablate", "train", "transfer")

StepRunner = Callable[[Bench], tuple[Step, dict[str, Any]]]


def _alone(run_step: Callable[[Bench], Step]) -> StepRunner:
    return lambda bench: (run_step(bench), {})


def _ablate(bench: Bench) -> tuple[Step, dict[str, Any]]:
    step, ablation = ablate.run_step(bench)
    return step, {"ablation": ablation.model_dump(mode="json")}


def _transfer(bench: Bench) -> tuple[Step, dict[str, Any]]:
    step, found = transfer.run_step(bench)
    sections = {
        name: [row.model_dump(mode="json") for row in getattr(found, name)]
        for name in ("models", "transfer", "families", "behaviour")
    }
    return step, sections


STEPS: dict[str, StepRunner] = {
    "environment": _alone(environment.run_step),
    "tokens": _alone(tokens.run_step),
    "system": _alone(system.run_step),
    "overfit": _alone(overfit.run_step),
    "ablate": _ablate,
    "train": _alone(train.run_step),
    "transfer": _transfer,
}
"""The seven steps in order."""


def run(recipe: QuickstartRecipe, say: Callable[[str], None] | None = None) -> Report:
    """Run or continue the quickstart of ``recipe`` and return its report.

    Raises:
        InputError, StorageError: ``recipe.out`` cannot be used; nothing was changed.
        EnvironmentMissing: this machine lacks something the recipe needs; for a missing package nothing was written.
    """
    check_available(recipe.profile)
    directory = RunDirectory(recipe.out, recipe)
    meter = CpuMeter.start(directory.label)
    try:
        return _run(directory, meter, say or _to_stderr)
    finally:
        meter.close()
        reap(directory.label)  # workers that were killed leave the groups of their sandboxes
        directory.close()


def _run(directory: RunDirectory, meter: CpuMeter, say: Callable[[str], None]) -> Report:
    watch = Stopwatch()
    workshop = Workshop(directory)
    refuse_changed_worlds(workshop)
    session = _begin(directory)
    workshop.provider.reap(workshop.label)
    bench = Bench(workshop, lambda line: say(f"[{watch.elapsed_s:6.1f} s] {line}"))
    for warning in workshop.warnings:
        say(f"WARNING: {warning}")
    records: list[dict[str, Any]] = []
    for number, name in enumerate(STEP_NAMES, start=1):
        stage = f"step-{number}-{name}"
        record = directory.load(stage)
        if record is None:
            record = _walk(bench, meter, number, name)
            if record["step"]["status"] == "passed":
                record = directory.finish(stage, record)
                bench.drop_checkpoints(name, "checkpoints")
        records.append(record)
        session.update(wall_s=watch.elapsed_s, cpu_s=meter.seconds(), peak_memory_mb=_mib(meter.peak_memory_bytes()))
        write_json(directory.path("state", f"session-{session['number']}.json"), session)
        report = assemble(bench, records, cpu_source=meter.source)
        write_report(report, directory.root)
        if record["step"]["status"] != "passed":
            break
    return report


def _walk(bench: Bench, meter: CpuMeter, number: int, name: str) -> dict[str, Any]:
    bench.say(f"step {number} {name}")
    watch, cpu_before = Stopwatch(), meter.seconds()
    bench.rest()
    step, sections = STEPS[name](bench)
    timed = step.model_copy(update={"wall_s": watch.elapsed_s, "cpu_s": max(0.0, meter.seconds() - cpu_before)})
    bench.say(f"step {number} {name}: {timed.status}; {timed.wall_s:.1f} s wall, {timed.cpu_s:.1f} s CPU")
    return {"step": timed.model_dump(mode="json"), "sections": sections}


def _begin(directory: RunDirectory) -> dict[str, Any]:
    """Number this process among those that worked on the run; the report adds their times up."""
    number = len(list(directory.path("state").glob("session-*.json"))) + 1
    session: dict[str, Any] = {
        "number": number,
        "started_at": now(),
        "wall_s": 0.0,
        "cpu_s": 0.0,
        "peak_memory_mb": None,
    }
    write_json(directory.path("state", f"session-{number}.json"), session)
    return session


def _mib(size_bytes: int | None) -> float | None:
    return None if size_bytes is None else size_bytes / 2**20


def _to_stderr(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()
