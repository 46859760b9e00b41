"""Step 6, train: the full run of the miniature, on every training task with reward variance; ``dev`` judges it.

The gate asks for the reward that the recipe promises; the checks watch what a reward alone does not show: a policy
that collapses (entropy and pass@k falling together), errors, and a growing gap between engine and trainer.
"""

from __future__ import annotations

from typing import Any

from journeyman.evals.score import Difference
from journeyman.evals.tally import score_of
from journeyman.ladder import judgement
from journeyman.ladder.bench import Bench
from journeyman.ladder.evaluate import Evaluation
from journeyman.ladder.judgement import LAST_STEPS
from journeyman.ladder.report.figures import Curve, Point, Series
from journeyman.ladder.report.model import Step
from journeyman.ladder.rl import job_of, train
from journeyman.ladder.summaries import gains, graded_trials
from journeyman.train.model import save_model


def run_step(bench: Bench) -> Step:
    """Train, save the model, and compare it with its start on ``dev``."""
    recipe, rl = bench.recipe, bench.recipe.rl
    selection = bench.run.load("selection") or {"usable": []}
    by_id = {task.id: task for task in bench.workshop.tasks("train")}
    tasks = [by_id[task] for task in selection["usable"]]
    job = job_of(recipe, "train", bench.model_path("warm_start"), tasks, rl.train_steps)
    trainer = bench.trainer("warm_start")
    records = train(job, bench.run.root, bench.rollouts, trainer)
    save_model(trainer.model, bench.model_path("trained"))
    bench.forget()
    samples = recipe.evaluation.samples
    evaluations = [
        Evaluation(role, "toolbelt", "dev", samples, rl.temperature, "development score")
        for role in ("warm_start", "trained")
    ]
    before, after = (bench.evaluate(what) for what in evaluations)
    gained = gains(
        before, after, a="warm start", b="trained", confidence=recipe.evaluation.confidence, seed=recipe.seed
    )
    return _report(bench, records, before, after, gained.pass_1)


def _report(bench: Bench, records: list[dict[str, Any]], before: list[Any], after: list[Any], gain: Difference) -> Step:
    k = bench.recipe.evaluation.samples
    before_k, after_k = (score_of(graded_trials(s), f"pass@{k}").value or 0.0 for s in (before, after))
    judged = judgement.train(bench.recipe, records, (before_k, after_k), gain)
    bench.say(f"train reward {records[0]['mean_reward']:.3f} -> {judged.gate.value:.3f} (last {LAST_STEPS} steps)")
    return Step(
        number=6,
        name="train",
        status=judged.status,
        gate=judged.gate,
        checks=judged.checks,
        summary=f"{len(records)} steps: reward {records[0]['mean_reward']:.3f} -> {records[-1]['mean_reward']:.3f}",
        evidence={
            "reward_by_step": [r["mean_reward"] for r in records],
            "pass_1_by_step": [r["pass_1"] for r in records],
            "live_groups_by_step": [r["live_groups"] for r in records],
            "dropped_share_by_step": [r["dropped_share"] for r in records],
            "entropy_by_step": [r["entropy"] for r in records],
            "turns_per_trial_by_step": [r["turns_per_trial"] for r in records],
            "errors_per_trial_by_step": [r["errors_per_trial"] for r in records],
            "gain_dev_pass_1": gain.model_dump(mode="json"),
        },
        timing={
            "mean_step_s": sum(r["wall_s"] for r in records) / len(records),
            "mean_rollout_s": sum(r["rollout_s"] for r in records) / len(records),
        },
        look_at=("train", "models/trained"),
    )


def reward_curve(records: list[dict[str, Any]]) -> Curve:
    """Train reward per step, both kinds."""

    def series(kind: str, key: str) -> Series:
        points = tuple(Point(x=r["step"], y=r[key], n=r["n_graded"]) for r in records)
        return Series(name=kind, kind=kind, points=points)

    return Curve(
        title="Train reward by RL step",
        x_name="step",
        y_name="share",
        series=(series("mean_reward", "mean_reward"), series("pass@1", "pass_1")),
        note="each point: the trials sampled before that step's update; training tasks",
    )
