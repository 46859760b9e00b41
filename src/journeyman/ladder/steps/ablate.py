"""Step 5, ablation: aggregations x seeds from one start, judged on ``dev``, with the courage to say "no difference".

Every arm starts from the same warm start, sees the same tasks and differs in one factor. Arms run in workers, two at
a time by default, so both cores are busy; what an arm computes does not depend on what runs beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from journeyman.ladder import judgement
from journeyman.ladder.bench import Bench
from journeyman.ladder.evaluate import Evaluation
from journeyman.ladder.report.model import Step
from journeyman.ladder.report.sections import Ablation, AblationRow, Gains
from journeyman.ladder.rl import job_of, train
from journeyman.ladder.rundir import RunDirectory
from journeyman.ladder.steps.overfit import overfit_tasks
from journeyman.ladder.summaries import Summary, gains
from journeyman.ladder.workers import Worker
from journeyman.ladder.workshop import Workshop
from journeyman.trials.store import read_summaries


def run_step(bench: Bench) -> tuple[Step, Ablation]:
    """Run every arm and compare each with the control of its seed, and all seeds together."""
    settings = bench.recipe.ablation
    arms: list[tuple[str, int]] = [
        (aggregation, seed) for seed in range(settings.seeds) for aggregation in settings.aggregations
    ]
    records = _run_arms(bench, arms)
    summaries = {arm: read_summaries(bench.run.path("evaluations", _evaluation(bench, *arm).name)) for arm in arms}
    control: str = settings.aggregations[0]
    rows = [_row(bench, arm, control, summaries) for arm in arms]
    pooled: dict[str, list[Summary]] = {
        aggregation: [s for seed in range(settings.seeds) for s in summaries[aggregation, seed]]
        for aggregation in settings.aggregations
    }
    verdicts: dict[str, Gains] = {
        str(name): _gains(bench, pooled[control], pooled[name], control, name) for name in settings.aggregations[1:]
    }
    conclusion = _conclusion(verdicts, control, settings.seeds)
    ablation = Ablation(
        factor="aggregation of token losses",
        family=f"every aggregation against {control}, declared in the recipe before the run",
        rows=tuple(rows),
        conclusion=conclusion,
    )
    judged = judgement.ablate(bench.recipe.gates, list(records.values()), len(arms), len(settings.aggregations))
    bench.say(conclusion)
    step = Step(
        number=5,
        name="ablate",
        status=judged.status,
        gate=judged.gate,
        checks=judged.checks,
        summary=conclusion,
        evidence={
            "reward_by_step": {f"{a}, seed {s}": records[a, s]["reward_by_step"] for a, s in arms},
            "pooled": {name: found.model_dump(mode="json") for name, found in verdicts.items()},
        },
        look_at=("ablation", "evaluations"),
    )
    return step, ablation


def _run_arms(bench: Bench, arms: Sequence[tuple[str, int]]) -> dict[tuple[str, int], dict[str, Any]]:
    """Every arm's record; each process takes its share one after the other and acknowledges arm by arm."""
    width = min(bench.recipe.ablation.processes, len(arms))
    records: dict[tuple[str, int], dict[str, Any]] = {}
    with ExitStack() as stack:
        shares = [arms[lane::width] for lane in range(width)]
        workers = [
            stack.enter_context(Worker(bench.run, f"ablation-arms-{lane}", {"arms": share}, job="ablation-arms"))
            for lane, share in enumerate(shares)
        ]
        for share, worker in zip(shares, workers, strict=True):
            worker.result()
            for arm in share:
                records[arm] = bench.run.load(_name(*arm)) or {}
                bench.drop_checkpoints("ablation", _name(*arm), "checkpoints")
                bench.say(f"arm {arm[0]}, seed {arm[1]}: last train reward {records[arm]['reward_by_step'][-1]:.3f}")
    return {arm: records[arm] for arm in arms}


def run_arm(run: RunDirectory, aggregation: str, seed: int) -> dict[str, Any]:
    """One arm, in a worker process: a short RL run from the warm start, then ``dev``; acknowledged as a stage."""
    stage = _name(aggregation, seed)
    done = run.load(stage)
    if done is not None:
        return done
    bench = Bench(Workshop(run), lambda line: None)
    job = job_of(
        bench.recipe,
        f"ablation/{stage}",
        bench.model_path("warm_start"),
        overfit_tasks(bench),
        bench.recipe.ablation.steps,
        aggregation=aggregation,
    )
    records = train(job, run.root, bench.rollouts, bench.trainer("warm_start", threads=1))
    bench.evaluate_current(_evaluation(bench, aggregation, seed))
    facts = {
        "reward_by_step": [record["mean_reward"] for record in records],
        "max_step_gap": max(record["gap_mean"] for record in records),
    }
    return run.finish(stage, facts)


def _name(aggregation: str, seed: int) -> str:
    return f"ablation-{aggregation}-{seed}"


def _evaluation(bench: Bench, aggregation: str, seed: int) -> Evaluation:
    samples = bench.recipe.ablation.samples
    return Evaluation(_name(aggregation, seed), "toolbelt", "dev", samples, bench.recipe.rl.temperature, "ablation arm")


def _row(
    bench: Bench, arm: tuple[str, int], control: str, summaries: dict[tuple[str, int], list[Summary]]
) -> AblationRow:
    aggregation, seed = arm
    found = None
    if aggregation != control:
        found = _gains(bench, summaries[control, seed], summaries[arm], control, aggregation)
    return AblationRow(
        arm=aggregation,
        seed=seed,
        is_control=aggregation == control,
        dev=bench.scores(_evaluation(bench, *arm), summaries[arm]),
        gains=found,
    )


def _gains(bench: Bench, before: list[Summary], after: list[Summary], a: str, b: str) -> Gains:
    recipe = bench.recipe
    return gains(before, after, a=a, b=b, confidence=recipe.evaluation.confidence, seed=recipe.seed)


def _conclusion(verdicts: dict[str, Gains], control: str, n_seeds: int) -> str:
    parts = []
    for name, found in verdicts.items():
        d = found.pass_1
        if d.value is None or d.low is None or d.high is None:
            parts.append(f"{name} against {control}: not measurable")
        elif d.word == "tie":
            mde = f"; detectable at this n: {d.mde:.3f}" if d.mde is not None else ""
            parts.append(
                f"{name} and {control} cannot be told apart: pass@1 {d.value:+.3f} "
                f"[{d.low:+.3f}, {d.high:+.3f}], {d.n_tasks} dev tasks, {n_seeds} seeds{mde}"
            )
        else:
            parts.append(
                f"{d.winner} is better: pass@1 {name} - {control} {d.value:+.3f} [{d.low:+.3f}, {d.high:+.3f}], "
                f"{d.n_tasks} dev tasks, {n_seeds} seeds"
            )
    return "; ".join(parts)
