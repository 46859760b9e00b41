"""A GRPO step of journeyman beside TRL's: the same weights, trials, threads and machine, in one run.

    python benchmarks/training.py [--rounds N] [--shapes 0.5M,15.7M] [--groups 8] [--micro-batches 4,8,16,32]

Each side takes whole optimizer steps over the same trials (``--groups`` prompts x 8): GRPO advantages, PPO clip 0.2,
token mean, AdamW, gradient norm 1, float32, one thread. Nothing is sampled: what is timed is batching, forward,
backward and optimizer. The first step's gradient norms must agree, so that both are shown to compute the same thing;
TRL runs with the best of several micro-batch sizes. Figures are tokens of the trials (padding not counted) per
CPU-second of this process, best of the rounds. Two kinds of batches:

- ``skewed``: lengths lognormal, tool results inside, prompts shared by groups: what agents give. Gate: 2x.
- ``even``: one length for all: nothing to pad. No gate.

Exit code 1 when a gate is missed or the gradients differ. Needs ``pip install trl==1.16.0`` beside the package.
"""

from __future__ import annotations

import argparse
import copy
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from training_batches import SHAPES, AgentTrial, Shape, build_model, even, skewed
from training_trl import StepLog, grpo_trainer, replayed, train_quietly

from journeyman.train.advantages import group_advantages
from journeyman.train.backends.torch import TorchTrainer
from journeyman.train.losses import resolve_loss
from journeyman.train.optimizer import OptimizerSpec
from journeyman.train.protocol import TrainRow
from journeyman.train.update import UpdateSpec, update_policy

GATE = 2.0
GRADIENT_TOLERANCE = 1e-3
"""Relative: both sides sum the same float32 numbers in another order."""
LR = 1e-5


@dataclass
class Row:
    """One batch on one shape; tokens per CPU-second."""

    shape: str
    batch: str
    trials: int
    tokens: int
    padded_share: float
    trl: float
    trl_micro_batch: int
    journeyman: float
    ratio: float
    gradient_norms: tuple[float, float]

    @property
    def passed(self) -> bool:
        agree = abs(self.gradient_norms[0] / self.gradient_norms[1] - 1) < GRADIENT_TOLERANCE
        return agree and (self.batch != "skewed" or self.ratio >= GATE)


def train_rows(trials: Sequence[AgentTrial]) -> list[TrainRow]:
    """The trials as journeyman takes them; TRL adds 1e-4 to the standard deviation."""
    advantages = group_advantages("grpo", [t.reward for t in trials], [t.group for t in trials], epsilon=1e-4)
    return [
        TrainRow(t.ids, t.mask, np.zeros(len(t.ids), np.float32), float(a), t.group)
        for t, a in zip(trials, advantages, strict=True)
    ]


def our_steps(model: Any, trials: Sequence[AgentTrial], rounds: int) -> StepLog:
    """Steps of journeyman from given weights."""
    trainer, rows = TorchTrainer(copy.deepcopy(model), OptimizerSpec(lr=LR)), train_rows(trials)
    spec, log = UpdateSpec(resolve_loss("ppo"), reduction="token"), StepLog()
    for _ in range(rounds):
        cpu, wall = time.process_time(), time.perf_counter()
        log.grad_norm.append(update_policy(trainer, rows, spec).grad_norm)
        log.cpu_s.append(time.process_time() - cpu)
        log.wall_s.append(time.perf_counter() - wall)
    return log


def trl_steps(model: Any, trials: Sequence[AgentTrial], vocab: int, micro_batch: int, rounds: int) -> StepLog:
    """Steps of TRL from given weights."""
    longest = max(len(t.ids) for t in trials)
    trainer, log = grpo_trainer(
        copy.deepcopy(model),
        vocab,
        replayed(trials),
        rows=len(trials),
        micro_batch=micro_batch,
        steps=rounds,
        lr=LR,
        longest=longest,
    )
    train_quietly(trainer)
    return log


def measure(name: str, shape: Shape, batch: str, groups: int, micro_batches: Sequence[int], rounds: int) -> Row:
    """Both sides on one batch; TRL first takes a step with each size of micro-batch."""
    trials = (skewed if batch == "skewed" else even)(groups, shape.vocab - 2, seed=1)
    model = build_model(shape)
    tokens = sum(len(t.ids) for t in trials)
    width = max(t.prompt_length for t in trials) + max(len(t.ids) - t.prompt_length for t in trials)
    first = {size: trl_steps(model, trials, shape.vocab, size, 1) for size in micro_batches}
    best = min(micro_batches, key=lambda size: first[size].cpu_s[0])
    trl = trl_steps(model, trials, shape.vocab, best, rounds)
    ours = our_steps(model, trials, rounds)
    rates = tokens / min(trl.cpu_s + first[best].cpu_s), tokens / min(ours.cpu_s)
    return Row(
        name,
        batch,
        len(trials),
        tokens,
        1 - tokens / (width * len(trials)),
        rates[0],
        best,
        rates[1],
        rates[1] / rates[0],
        (trl.grad_norm[0], ours.grad_norm[0]),
    )


def main() -> int:
    """Print the table; 1 when a gate was missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--shapes", default=",".join(SHAPES))
    parser.add_argument("--batches", default="skewed,even")
    parser.add_argument("--groups", type=int, default=8, help="prompts, 8 trials each")
    parser.add_argument("--micro-batches", default="4,8,16,32", help="rows per micro-batch that TRL is tried with")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    sizes = [int(size) for size in args.micro_batches.split(",")]
    torch.set_num_threads(1)
    print(" shape   batch  tokens  padding       TRL  rows      ours  ratio  gradient norms", flush=True)
    rows = []
    for name in args.shapes.split(","):
        for batch in args.batches.split(","):
            row = measure(name, SHAPES[name], batch, args.groups, sizes, args.rounds)
            rows.append(row)
            norms = f"{row.gradient_norms[0]:.6f} {row.gradient_norms[1]:.6f}"
            print(
                f"{row.shape:>6} {row.batch:>7} {row.tokens:>7,} {row.padded_share:>8.0%} {row.trl:>9,.0f} "
                f"{row.trl_micro_batch:>5} {row.journeyman:>9,.0f} {row.ratio:>5.2f}x  {norms}  "
                f"{'pass' if row.passed else 'MISSED'}",
                flush=True,
            )
    if args.json:
        args.json.write_text(json.dumps([asdict(row) for row in rows], indent=2))
    return 0 if all(row.passed for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
