"""From the records of the steps to the one report: what was measured, beside what a reader must know about it."""

from __future__ import annotations

import json
import os
import platform
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from journeyman import __version__
from journeyman.clock import now
from journeyman.cores import usable_cores
from journeyman.digest import sha256_file
from journeyman.evals.proportion import wilson
from journeyman.evals.score import Boundary
from journeyman.ladder.bench import Bench
from journeyman.ladder.evaluate import read_openings
from journeyman.ladder.profiles import PROFILES
from journeyman.ladder.replay import replayed
from journeyman.ladder.report.figures import Curve, Point, Series
from journeyman.ladder.report.model import Report, Run, Step, overall
from journeyman.ladder.report.sections import (
    Ablation,
    BehaviourRow,
    ErrorRow,
    ErrorTable,
    FamilyRow,
    GapPoint,
    ManifestEntry,
    ModelRow,
    Opening,
    Transfer,
)
from journeyman.ladder.steps.train import reward_curve
from journeyman.trials.outcome import OUTCOMES

HONESTY = (
    "The warm start comes from an imperfect demonstrator: part of its demonstrations follow a wrong workflow in the "
    "right format, which suppresses what the clean base model already does. RL restores a suppressed workflow; it does "
    "not create a skill. The clean base model stands beside the trained one for this reason.",
    "Held-out worlds have new values, names and files drawn from the same pools and the same five task families. "
    "Unseen names, families and document layouts were not tested.",
    "Both harnesses were shown in the demonstrations; RL saw only the toolbelt harness. They share tools and call "
    "syntax, so the second one tests transfer across framing, final call and turn limit, not across tools.",
)
"""True of every profile; what the policy is stands in ``profiles.py``."""


def assemble(bench: Bench, records: Sequence[dict[str, Any]], *, cpu_source: str) -> Report:
    """The report of what is complete so far."""
    steps = tuple(Step.model_validate(record["step"]) for record in records)
    sections: dict[str, Any] = {}
    for record in records:
        sections.update(record["sections"])
    training = _rl_records(bench, "train")
    return Report(
        run=_run_facts(bench, cpu_source),
        status=overall(steps),
        honesty=PROFILES[bench.recipe.profile].honesty + HONESTY,
        warnings=tuple(bench.workshop.warnings),
        steps=steps,
        boundaries=tuple(_boundaries(bench)),
        models=tuple(ModelRow.model_validate(row) for row in sections.get("models", ())),
        transfer=tuple(Transfer.model_validate(row) for row in sections.get("transfer", ())),
        families=tuple(FamilyRow.model_validate(row) for row in sections.get("families", ())),
        behaviour=tuple(BehaviourRow.model_validate(row) for row in sections.get("behaviour", ())),
        ablation=Ablation.model_validate(sections["ablation"]) if "ablation" in sections else None,
        reward_curve=reward_curve(training) if training else None,
        curves=tuple(_loss_curves(bench)),
        errors=_errors(bench),
        openings=tuple(Opening.model_validate(o) for o in read_openings(bench.run).values()),
        logprob_gaps=tuple(_gap(record) for record in training),
        replay=replayed(bench),
        manifest=tuple(_manifest(bench)),
    )


def _run_facts(bench: Bench, cpu_source: str) -> Run:
    recipe, profile = bench.recipe, PROFILES[bench.recipe.profile]
    paths = sorted(bench.run.path("state").glob("session-*.json"), key=lambda p: int(p.stem.partition("-")[2]))
    sessions = [json.loads(path.read_text()) for path in paths]
    peaks = [s["peak_memory_mb"] for s in sessions if s["peak_memory_mb"] is not None]
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return Run(
        name="quickstart",
        version=__version__,
        profile=recipe.profile,
        seed=recipe.seed,
        command=f"journeyman quickstart --seed {recipe.seed} --profile {recipe.profile}",
        machine={
            "cpus": str(usable_cores()),
            "architecture": platform.machine(),
            "system": platform.system(),
            "memory": f"{memory_gib:.0f} GiB",
            "python": platform.python_version(),
            "sandbox": bench.workshop.provider.name,
        },
        started_at=sessions[0]["started_at"],
        finished_at=now(),
        wall_s=sum(s["wall_s"] for s in sessions),
        wall_budget_s=profile.wall_budget_s,
        cpu_s=sum(s["cpu_s"] for s in sessions),
        cpu_source=cpu_source,
        cpu_budget_s=profile.cpu_budget_s,
        peak_memory_mb=max(peaks) if peaks else None,
        memory_budget_mb=profile.memory_budget_mb,
        n_interruptions=len(sessions) - 1,
    )


def _boundaries(bench: Bench) -> Iterator[Boundary]:
    for path in sorted(bench.run.path("state").glob("evaluation-*.json")):
        yield Boundary.model_validate(json.loads(path.read_text())["boundary"])


def _rl_records(bench: Bench, name: str) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted(bench.run.path(name).glob("step-*/step.json"))]


def _loss_curves(bench: Bench) -> Iterator[Curve]:
    record = bench.run.load("base-sft")
    if record is not None:
        points = tuple(Point(x=step, y=loss) for step, loss in record["heldout_losses"])
        yield Curve(
            title="Base SFT: held-out loss",
            x_name="step",
            y_name="loss, nats per token",
            series=(Series(name="held-out loss", points=points),),
            y_scale="log",
            note=f"{bench.recipe.sft.heldout_traces} clean demonstrations of worlds that training never saw",
        )


def _gap(record: dict[str, Any]) -> GapPoint:
    return GapPoint(
        step=record["step"],
        mean=record["gap_mean"],
        q99=record["gap_q99"],
        max=record["gap_max"],
        n_tokens=record["sampled_tokens"],
    )


def counted_batches(bench: Bench) -> list[Path]:
    """Folders of the trials that the figures stand on: complete batches, without what interrupted steps left."""
    roots = [bench.run.path(name) for name in ("dry-run", "overfit", "ablation", "train", "evaluations")]
    found = [path.parent for root in roots if root.is_dir() for path in root.rglob("trials.jsonl")]
    return sorted(path for path in found if not any(part.startswith("discarded-") for part in path.parts))


def _errors(bench: Bench) -> ErrorTable:
    counts: Counter[str] = Counter()
    n_broken = n_trials = 0
    examples: dict[str, str] = {}
    for folder in counted_batches(bench):
        for line in (folder / "trials.jsonl").read_text().splitlines():
            summary = json.loads(line)
            n_trials += 1
            counts[summary["cause"]] += 1
            examples.setdefault(summary["cause"], summary["trial_id"])
            n_broken += summary["outcome"] in ("system_error", "verifier_error", "cancelled")
    rows = tuple(
        ErrorRow(
            cause=row.cause,
            n_trials=counts[row.cause],
            retry=row.retry,
            grade=row.grade,
            reward_valid=row.reward_valid,
            meaning=row.meaning,
            example=examples.get(row.cause, ""),
        )
        for row in OUTCOMES.values()
    )
    low, high = wilson(n_broken / n_trials, n_trials) if n_trials else (None, None)
    share = n_broken / n_trials if n_trials else None
    return ErrorTable(n_trials=n_trials, rows=rows, system_error_share=share, low=low, high=high)


def _manifest(bench: Bench) -> Iterator[ManifestEntry]:
    run = bench.run
    yield ManifestEntry(name="recipe.json", sha256=sha256_file(run.path("recipe.json")), role="recipe and its digest")
    yield ManifestEntry(name="environment", sha256=bench.workshop.environment.digest, role="agent environment")
    published = run.load("tasks") or {}
    for split, facts in published.items():
        yield ManifestEntry(name=f"tasks/{split}", sha256=facts["sha256"], role=f"{facts['n_tasks']} tasks")
    for name in ("tokenizer/tokenizer.json", *(f"models/{role}/model.safetensors" for role in _ROLES)):
        path = run.path(*name.split("/"))
        if path.is_file():
            yield ManifestEntry(name=name, sha256=sha256_file(path), size_bytes=path.stat().st_size, role="weights")


_ROLES = ("fresh", "clean_base", "warm_start", "trained")
