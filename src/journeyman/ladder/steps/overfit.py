"""Step 4, overfit: the end-to-end unit test. If few tasks cannot be learned, nothing larger is worth starting.

The baseline is sampled afresh after the tasks were chosen (choosing tasks by their variance on the dry run selects
lucky draws), and the gate is a paired interval over tasks, clustered by world.
"""

from __future__ import annotations

from journeyman.ladder import judgement
from journeyman.ladder.bench import Bench
from journeyman.ladder.evaluate import Evaluation
from journeyman.ladder.report.figures import Column, Table
from journeyman.ladder.report.model import Step
from journeyman.ladder.rl import job_of, train
from journeyman.ladder.summaries import gains, spoken
from journeyman.tasks.task import Task

NAME = "overfit"


def run_step(bench: Bench) -> Step:
    """Baseline, a few steps of RL on the chosen tasks, the same measurement again."""
    rl, confidence = bench.recipe.rl, bench.recipe.evaluation.confidence
    tasks = overfit_tasks(bench)
    n = rl.trials_per_task
    before = Evaluation("warm_start", "toolbelt", "train", n, rl.temperature, "overfit baseline", NAME)
    base = bench.evaluate(before, tasks)
    job = job_of(bench.recipe, NAME, bench.model_path("warm_start"), tasks, rl.overfit_steps)
    records = train(job, bench.run.root, bench.rollouts, bench.trainer("warm_start"))
    bench.forget()
    after = Evaluation("overfit", "toolbelt", "train", n, rl.temperature, "overfit result", NAME)
    final = bench.evaluate_current(after, tasks)
    gained = gains(base, final, a="warm start", b="overfit", confidence=confidence, seed=bench.recipe.seed)
    difference = gained.mean_reward
    judged = judgement.overfit(bench.recipe.gates, difference)
    rows = tuple(
        (name, s.mean_reward, s.pass_1)
        for name, s in (
            ("warm start, fresh sample", bench.scores(before, base)),
            (f"after {rl.overfit_steps} steps", bench.scores(after, final)),
        )
    )
    table = Table(
        title=f"The {len(tasks)} overfit tasks, {n} trials each",
        columns=(
            Column(name="policy"),
            Column(name="mean reward", kind="mean_reward"),
            Column(name="pass@1", kind="pass@1"),
        ),
        rows=rows,
        note="intervals: t over worlds; training tasks, so no statement about new ones",
    )
    bench.say(f"overfit: {spoken(difference)}")
    return Step(
        number=4,
        name=NAME,
        status=judged.status,
        gate=judged.gate,
        checks=judged.checks,
        summary=f"gain in mean reward {spoken(difference)} on {len(tasks)} tasks x {n} trials",
        evidence={
            "reward_by_step": [r["mean_reward"] for r in records],
            "pass_1_by_step": [r["pass_1"] for r in records],
            "live_groups_by_step": [r["live_groups"] for r in records],
            "gain_mean_reward": difference.model_dump(mode="json"),
            "gain_pass_1": gained.pass_1.model_dump(mode="json"),
        },
        timing={"mean_step_s": sum(r["wall_s"] for r in records) / len(records)},
        tables=(table,),
        look_at=(NAME, f"evaluations/{after.name}"),
    )


def overfit_tasks(bench: Bench) -> list[Task]:
    """The chosen tasks, in the order in which they were chosen."""
    selection = bench.run.load("selection") or {"overfit": []}
    by_id = {task.id: task for task in bench.workshop.tasks("train")}
    return [by_id[task] for task in selection["overfit"]]
