"""The synchronous RL loop: sample groups, grade, one update, push, record. The step is the unit of redo.

A step is complete when its ``step.json`` exists; a killed step leaves its trials as evidence and is redone whole from
the checkpoint before it, so a resumed run equals an uninterrupted one bit for bit. What a batch is made of depends on
data alone, never on timing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from journeyman.clock import Stopwatch
from journeyman.durable import write_json
from journeyman.harness import HARNESSES, Harness
from journeyman.ladder.recipe import QuickstartRecipe
from journeyman.ladder.rollouts import Rollouts
from journeyman.ladder.summaries import reward_facts
from journeyman.seeds import Part, stream
from journeyman.tasks.task import Task
from journeyman.train.advantages import group_advantages
from journeyman.train.backends.torch import TorchTrainer
from journeyman.train.losses import resolve_loss
from journeyman.train.protocol import TrainRow
from journeyman.train.update import UpdateSpec, update_policy
from journeyman.trials.inline import final_attempts
from journeyman.trials.record import Trial, TrialRequest
from journeyman.trials.store import write_batch


@dataclass(frozen=True)
class RlJob:
    """One RL run.

    Attributes:
        name: folder below the run directory.
        start: model directory of the initial policy.
        tasks: the pool; each step takes ``tasks_per_step`` of it in a seeded order, epoch by epoch.
        steps: optimizer steps.
        tasks_per_step: groups per step.
        trials_per_task: trials per group.
        aggregation: token weights (``train.reductions``).
        loss: policy loss (``train.losses``).
        advantage: ``train.advantages``.
        max_gap: mean logprob gap, nats, at which the run stops after recording the step: engine and trainer disagree.
        max_length: tokens, the constant of the ``drgrpo`` aggregation.
        harness: the loop the policy acts in.
        noise: words that key the sampling noise besides the step, e.g. an ablation seed.
    """

    name: str
    start: Path
    tasks: tuple[Task, ...]
    steps: int
    tasks_per_step: int
    trials_per_task: int
    aggregation: str
    loss: str
    advantage: str
    max_gap: float
    max_length: int | None = None
    harness: Harness = HARNESSES["toolbelt"]
    noise: tuple[Part, ...] = ()
    temperature: float = 1.0
    shuffled_rewards: bool = False
    """Negative control: rewards permuted within the batch."""


def train(job: RlJob, root: Path, rollouts: Rollouts, trainer: TorchTrainer) -> list[dict[str, Any]]:
    """Run ``job`` to its end below ``root``; returns the record of each step. Continues where a killed run stopped.

    Args:
        rollouts: samples and grades; its engine receives the weights after every step.
        trainer: freshly made for ``job.start``; its state is replaced by the last checkpoint when there is one.
    """
    folder = root / job.name
    records: list[dict[str, Any]] = []
    for step in range(job.steps):
        done = folder / f"step-{step:04d}" / "step.json"
        if not done.is_file():
            break
        records.append(json.loads(done.read_text()))
    if records:
        trainer.load_state(folder / "checkpoints" / records[-1]["checkpoint"])
    trainer.push_weights(rollouts.engine, version=len(records))
    for step in range(len(records), job.steps):
        if records and not records[-1]["gap_mean"] < job.max_gap:  # also when it is not a number
            break
        records.append(_step(job, step, folder, rollouts, trainer))
    return records


def _step(job: RlJob, step: int, folder: Path, rollouts: Rollouts, trainer: TorchTrainer) -> dict[str, Any]:
    watch = Stopwatch()
    trials = rollouts.run(requests_of(job, step, rollouts.seed))
    sampled_s = watch.elapsed_s
    place = folder / f"step-{step:04d}"
    write_batch(place, trials)
    rows, n_live = rows_of(final_attempts(trials), job, step, rollouts.seed)
    metrics = update_policy(trainer, rows, UpdateSpec(resolve_loss(job.loss), job.aggregation, job.max_length))
    trainer.push_weights(rollouts.engine, version=step + 1)
    checkpoint = trainer.save_state(folder / "checkpoints")
    record = {
        "step": step + 1,
        **reward_facts([t.summary() for t in final_attempts(trials)]),
        "live_groups": n_live,
        "rows": metrics.rows,
        "trained_tokens": metrics.tokens,
        "loss": metrics.loss,
        "grad_norm": metrics.grad_norm,
        "dropped_share": metrics.dropped_share,
        "entropy": metrics.entropy,
        "gap_mean": metrics.logprob_gap_mean,
        "gap_q99": metrics.logprob_gap_q99,
        "gap_max": metrics.logprob_gap_max,
        "checkpoint": checkpoint.name,
        "rollout_s": sampled_s,
        "wall_s": watch.elapsed_s,
    }
    write_json(place / "step.json", record)
    return record


def job_of(
    recipe: QuickstartRecipe,
    name: str,
    start: Path,
    tasks: Sequence[Task],
    steps: int,
    *,
    aggregation: str | None = None,
) -> RlJob:
    """The job that a recipe makes of some tasks."""
    rl = recipe.rl
    return RlJob(
        name=name,
        start=start,
        tasks=tuple(tasks),
        steps=steps,
        tasks_per_step=rl.tasks_per_step,
        trials_per_task=rl.trials_per_task,
        aggregation=aggregation or rl.aggregation,
        loss=rl.loss,
        advantage=rl.advantage,
        max_gap=recipe.gates.max_logprob_gap,
        max_length=recipe.engine.max_context,
        temperature=rl.temperature,
    )


def requests_of(job: RlJob, step: int, seed: int) -> list[TrialRequest]:
    """The trials of one step: ``tasks_per_step`` groups in the seeded order of their epoch."""
    n = len(job.tasks)
    chosen = []
    for position in range(step * job.tasks_per_step, (step + 1) * job.tasks_per_step):
        epoch, index = divmod(position, n)
        order = list(range(n))
        if n > job.tasks_per_step:
            stream(seed, "order", job.name, epoch).shuffle(order)
        chosen.append(job.tasks[order[index]])
    return [
        TrialRequest(task, job.harness, (job.name, *job.noise, step, place, task.id, sample), sample, job.temperature)
        for place, task in enumerate(chosen)
        for sample in range(job.trials_per_task)
    ]


def rows_of(trials: Sequence[Trial], job: RlJob, step: int, seed: int) -> tuple[list[TrainRow], int]:
    """Training rows of the groups with reward variance, and how many such groups there are.

    A trial without a valid reward is left out alone; the others of its group stay (the group rule of docs/tasks.md).
    """
    valid = [trial for trial in trials if trial.reward is not None]
    rewards = np.array([trial.reward for trial in valid], dtype=np.float64)
    if job.shuffled_rewards:
        order = list(range(len(valid)))
        stream(seed, "shuffle", job.name, step).shuffle(order)
        rewards = rewards[order]
    keys = [(trial.request.stream[-3], trial.request.task.id) for trial in valid]
    numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    groups = np.array([numbers[key] for key in keys], dtype=np.int64)
    advantages = group_advantages(job.advantage, rewards, groups)
    live = {g for g in numbers.values() if np.ptp(rewards[groups == g]) > 0}
    rows = [
        TrainRow(t.tokens.ids, t.tokens.mask, t.tokens.logprob, float(a), int(g))
        for t, a, g in zip(valid, advantages, groups, strict=True)
        if int(g) in live
    ]
    return rows, len(live)
