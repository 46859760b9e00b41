"""The quickstart's tasks learned by journeyman and by TRL's GRPO trainer: same start, same trials per step, one run.

    python benchmarks/learning.py --run DIR [--seeds 3] [--first-seed 0] [--steps 14] [--json FILE] [--svg FILE]

``DIR`` is a quickstart run that has passed step 6; it is copied and left alone. From its warm start each side takes
the same number of optimizer steps. In each step the policy of that side acts in the same tasks, 8 trials each, through
the same harness, engine, sandbox and verifier, with the same keys of the sampling noise. The sides differ in what
trains: journeyman as the quickstart does (DPPO, prompt mean), TRL 1.16 as it comes (``dapo`` token mean, clip 0.2, no
reference model), both with AdamW at the same rates for the same parameters, float32, one thread.

Reward is the mean over the trials sampled in a step, before its update. CPU seconds are of this process and its ended
children, sampling and grading included; ``update`` is the part of the trainer. Needs ``pip install trl==1.16.0``.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from training_batches import AgentTrial
from training_trl import columns_of, grpo_trainer, train_quietly

from journeyman.ladder.bench import Bench
from journeyman.ladder.prepare import fill_reads
from journeyman.ladder.recipe import QuickstartRecipe
from journeyman.ladder.rl import RlJob, job_of, requests_of, rows_of
from journeyman.ladder.rundir import RunDirectory
from journeyman.ladder.workshop import Workshop
from journeyman.train.losses import resolve_loss
from journeyman.train.model import rate_scale
from journeyman.train.optimizer import BETAS, EPSILON
from journeyman.train.update import UpdateSpec, update_policy
from journeyman.trials.inline import final_attempts
from journeyman.trials.record import Trial


@dataclass
class Point:
    """One step of one side with one seed."""

    side: str
    seed: int
    step: int
    reward: float
    sampled_tokens: int
    cpu_s: float
    update_cpu_s: float


class Meter:
    """CPU seconds of this process and its ended children, in total and of the update, and tokens sampled so far."""

    def __init__(self) -> None:
        self.began = self.now()
        self.sampling_s = 0.0
        self.tokens = 0

    @staticmethod
    def now() -> float:
        """CPU seconds so far."""
        return sum(os.times()[:4])

    @property
    def cpu_s(self) -> float:
        return self.now() - self.began


def sample(bench: Bench, job: RlJob, step: int, meter: Meter) -> list[Trial]:
    """The trials of a step under the weights that the engine holds."""
    before = meter.now()
    trials = final_attempts(bench.rollouts.run(requests_of(job, step, bench.recipe.seed)))
    meter.tokens += sum(int(np.count_nonzero(t.tokens.mask)) for t in trials)
    meter.sampling_s += meter.now() - before
    return trials


def point_of(side: str, seed: int, step: int, trials: Sequence[Trial], meter: Meter, update_cpu_s: float) -> Point:
    """What a step showed."""
    rewards = [t.reward for t in trials if t.reward is not None]
    return Point(side, seed, step + 1, float(np.mean(rewards)), meter.tokens, meter.cpu_s, update_cpu_s)


def learn_ours(bench: Bench, job: RlJob, seed: int, say: Callable[[Point], None]) -> list[Point]:
    """The quickstart's own loop without its records."""
    points: list[Point] = []
    trainer = bench.trainer("warm_start", threads=1)
    trainer.push_weights(bench.engine, version=0)
    meter = Meter()
    spec = UpdateSpec(resolve_loss(job.loss), job.aggregation, job.max_length)
    for step in range(job.steps):
        trials = sample(bench, job, step, meter)
        before = meter.now()
        rows, _ = rows_of(trials, job, step, bench.recipe.seed)
        update_policy(trainer, rows, spec)
        trainer.push_weights(bench.engine, version=step + 1)
        points.append(point_of("journeyman", seed, step, trials, meter, meter.now() - before))
        say(points[-1])
    return points


def learn_trl(bench: Bench, job: RlJob, seed: int, micro_batch: int, say: Callable[[Point], None]) -> list[Point]:
    """TRL's trainer around the same sampling."""
    meter, points = Meter(), []
    model = bench.load("warm_start")
    done: list[float] = []  # CPU outside sampling, before each step

    def rollouts(prompts: list[str], trainer: Any) -> dict[str, Any]:
        if not done:
            meter.began = meter.now()  # the trainer is built, its libraries are imported
        step = len(done)
        done.append(meter.cpu_s - meter.sampling_s)
        state = {name: tensor.detach().clone() for name, tensor in trainer.model.state_dict().items()}
        bench.engine.update_weights(state, version=step)
        trials = sample(bench, job, step, meter)
        points.append(point_of("trl", seed, step, trials, meter, 0.0))
        if step:
            points[step - 1].update_cpu_s = done[step] - done[step - 1]
            points[step - 1].cpu_s += points[step - 1].update_cpu_s
        say(points[-1])
        places = [_agent_trial(trial, group // job.trials_per_task) for group, trial in enumerate(trials)]
        return columns_of(places)

    rows = job.tasks_per_step * job.trials_per_task
    trainer, _ = grpo_trainer(
        model,
        bench.shape.vocab_size,
        rollouts,
        rows=rows,
        micro_batch=micro_batch,
        steps=job.steps,
        lr=bench.recipe.rl.lr,
        longest=bench.recipe.engine.max_context,
        optimizer=same_rates(model, bench.recipe.rl.lr),
    )
    train_quietly(trainer)
    points[-1].update_cpu_s = meter.cpu_s - meter.sampling_s - done[-1]
    points[-1].cpu_s += points[-1].update_cpu_s
    return points


def same_rates(model: Any, lr: float) -> Any:
    """AdamW with the rates that journeyman gives each parameter."""
    import torch

    root = rate_scale(model)
    rates = {"model.embed_tokens.weight": lr * root, "model.norm.weight": lr / root}
    groups = [{"params": [p], "lr": rates.get(name, lr)} for name, p in model.named_parameters()]
    return torch.optim.AdamW(groups, betas=BETAS, eps=EPSILON, weight_decay=0.0)


def _agent_trial(trial: Trial, group: int) -> AgentTrial:
    ids, mask = np.asarray(trial.tokens.ids), np.asarray(trial.tokens.mask)
    first = int(np.flatnonzero(mask)[0]) if mask.any() else len(ids) - 1
    return AgentTrial(ids, mask, first, group, trial.reward)  # type: ignore[arg-type]  # None: TRL leaves it out


def open_bench(run: Path, scratch: Path) -> Bench:
    """A bench on a copy of what the comparison needs of a finished run."""
    import torch

    torch.set_num_threads(1)
    for name in ("models", "tasks", "tokenizer", "environment", "worlds", "cache", "state", "recipe.json"):
        source = run / name
        if source.is_dir():
            shutil.copytree(source, scratch / name, symlinks=True)
        elif source.exists():
            shutil.copy(source, scratch / name)
    stored = json.loads((scratch / "recipe.json").read_text())["recipe"]
    recipe = QuickstartRecipe.model_validate({**stored, "out": str(scratch)})
    bench = Bench(Workshop(RunDirectory(scratch, recipe)), lambda line: None)
    fill_reads(bench.workshop, bench.workshop.tasks("train"))  # a newer reader reads them anew
    return bench


def main() -> int:
    """Train both sides and print the curves."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, required=True, help="directory of a finished quickstart")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=14)
    parser.add_argument("--tasks", type=int, default=32, help="tasks per step, 8 trials each")
    parser.add_argument("--micro-batch", type=int, default=16, help="rows per micro-batch of TRL")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--svg", type=Path)
    args = parser.parse_args()
    points: list[Point] = []
    with tempfile.TemporaryDirectory(prefix="learning-") as scratch:
        bench = open_bench(args.run, Path(scratch))
        usable = set((bench.run.load("selection") or {"usable": []})["usable"])
        tasks = [task for task in bench.workshop.tasks("train") if task.id in usable]
        for seed in range(args.first_seed, args.first_seed + args.seeds):
            job = job_of(bench.recipe, "learning", bench.model_path("warm_start"), tasks, args.steps)
            job = RlJob(**{**vars(job), "noise": (f"learning-{seed}",), "tasks_per_step": args.tasks})
            if seed == args.first_seed:  # libraries, sandboxes and caches are there before anything counts
                sample(bench, RlJob(**{**vars(job), "noise": ("warm",), "tasks_per_step": 1}), 0, Meter())
            points += learn_ours(bench, job, seed, _say)
            points += learn_trl(bench, job, seed, args.micro_batch, _say)
    print(table(points))
    if args.json:
        args.json.write_text(json.dumps([asdict(p) for p in points], indent=1))
    if args.svg:
        from learning_plot import drawing

        args.svg.write_text(drawing([asdict(p) for p in points]))
    return 0


def table(points: Sequence[Point]) -> str:
    """Mean over seeds by step, lowest and highest seed in brackets, as Markdown."""
    lines = ["| step | side | reward | sampled tokens | CPU s | of these update |", "|---|---|---|---|---|---|"]
    for step in sorted({p.step for p in points}):
        for side in ("journeyman", "trl"):
            here = [p for p in points if p.step == step and p.side == side]
            rewards = [p.reward for p in here]
            spread = f" [{min(rewards):.3f}, {max(rewards):.3f}]" if len(here) > 1 else ""
            tokens, cpu, update = (
                np.mean([getattr(p, f) for p in here]) for f in ("sampled_tokens", "cpu_s", "update_cpu_s")
            )
            lines.append(
                f"| {step} | {side} | {np.mean(rewards):.3f}{spread} | {tokens:,.0f} | {cpu:.1f} | {update:.2f} |"
            )
    return "\n".join(lines)


def _say(point: Point) -> None:
    print(
        f"seed {point.seed} {point.side:>10} step {point.step:>3}  reward {point.reward:.3f}  "
        f"tokens {point.sampled_tokens:>8,}  CPU {point.cpu_s:7.1f} s",
        file=sys.stderr,
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
