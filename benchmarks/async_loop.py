"""Asynchronous against synchronous training on a heavy-tailed workload: real engine, real trials, slow tools.

    python benchmarks/async_loop.py --work runs/bench-loop                      # the measurement: 1 s median, 30 s p99
    python benchmarks/async_loop.py --work runs/bench-loop --scale 0.05 --steps 6 --trainer-s 0.4   # a quick look

Both loops get the same policy, tasks, seeded delays and trainer speed (each optimizer step is padded to ``--trainer-s``
seconds). Rewards are a coin keyed by the trial unless ``--policy`` names a warm-started model: then the tasks' own
verifiers grade, and ``--seeds`` compares the final rewards.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from journeyman.durable import write_json
from journeyman.evals.clustered import t_quantile
from journeyman.ladder import prepare
from journeyman.ladder.recipe import QuickstartRecipe
from journeyman.ladder.rundir import RunDirectory
from journeyman.ladder.training import rl
from journeyman.ladder.workshop import Workshop
from journeyman.seeds import stream
from journeyman.tasks.grading import GradeItem
from journeyman.tasks.verdict import Verdict, scored
from journeyman.train.loop.asynchronous import idle_share
from journeyman.train.model import ModelShape, build_model, save_model
from journeyman.train.recipe import RlRecipe


class Coin:
    """A grader whose reward is a coin keyed by the trial."""

    def grade(self, items: Sequence[GradeItem]) -> list[Verdict]:
        return [scored(float(stream(0, item.trial_id).random() < 0.5), None) for item in items]


class Padded:
    """A trainer whose optimizer step takes at least ``step_s`` seconds."""

    def __init__(self, trainer: Any, step_s: float) -> None:
        self._trainer, self._step_s, self._began = trainer, step_s, 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._trainer, name)

    def forward_backward(self, *arguments: Any) -> Any:
        self._began = time.monotonic()
        return self._trainer.forward_backward(*arguments)

    def optim_step(self) -> float:
        norm = self._trainer.optim_step()
        time.sleep(max(0.0, self._step_s - (time.monotonic() - self._began)))
        return norm


def prepared(work: Path) -> Workshop:
    """Tasks, read documents and a tokenizer, made once below ``work``."""
    root = work / "quickstart"
    recipe = QuickstartRecipe.model_validate(
        {
            "out": root,
            "worlds": {
                "sft_worlds": 8,
                "sft_heldout_worlds": 2,
                "train_worlds": 8,
                "dev_worlds": 2,
                "test_worlds": 2,
                "max_train_worlds": 8,
            },
            "warm_start": {"worlds": 4},
            "rl": {"tasks_per_step": 4, "trials_per_task": 4},
            "sandbox": {"waive": ["memory", "pids", "disk", "cpus"]},
        }
    )
    workshop = Workshop(RunDirectory(root, recipe))
    prepare.make_tasks(workshop)
    prepare.fill_reads(workshop, [t for split in prepare.SCORED_SPLITS for t in workshop.tasks(split)])
    prepare.fill_demonstration_reads(workshop)
    prepare.make_tokenizer(workshop)
    return workshop


def random_policy(workshop: Workshop, directory: Path) -> Path:
    """A small random model with the tokenizer."""
    if not (directory / "config.json").is_file():
        shape = ModelShape(workshop.tokenizer.vocab_size, hidden=64, layers=2, ffn=128)
        save_model(build_model(shape, 1), directory)
        for path in workshop.run.path("tokenizer").iterdir():
            shutil.copy(path, directory)
    return directory


def measure(given: argparse.Namespace, workshop: Workshop, policy: Path, mode: str, bound: str, seed: int) -> dict:
    """One loop; its figures."""
    name = f"{mode}-{bound}-{seed}" if mode == "async" else f"sync-{seed}"
    out = given.work / name
    shutil.rmtree(out, ignore_errors=True)
    recipe = RlRecipe.model_validate(
        {
            "policy": {"model": policy, "tokenizer": given.tokenizer},
            "tasks": {"train": [given.tasks or workshop.run.path("tasks", "train")]},
            "rollout": {
                "harness": "framing:toolbelt",
                "executor": given.executor,
                "rows": given.rows,
                "max_context": given.max_context,
                "concurrency": given.rows * 8,
                "start_concurrency": given.rows * 4,
                "waive": sorted(workshop.tier.waive),
                "sandbox": workshop.provider.name,
            },
            "loop": {
                "mode": mode,
                "steps": given.steps,
                "groups_per_step": given.groups,
                "trials_per_group": given.trials,
                "staleness": given.staleness if mode == "async" else 0,
                "bound": bound,
                "checkpoint_every": 1000,
            },
            "out": out,
            "seed": seed,
        }
    )
    changes: dict[str, Any] = {"slow": {"median_s": 1.0, "p99_s": 30.0, "seed": seed, "scale": given.scale}}
    if given.policy is None:
        changes["grader"] = "async_loop:Coin"
    real = rl.make_trainer
    rl.make_trainer = lambda *a: Padded(real(*a), given.trainer_s)  # type: ignore[assignment]
    try:
        report = rl.run_rl(recipe, lambda line: None, changes=changes)
    finally:
        rl.make_trainer = real
    records = report.result.records
    wall = sum(record["time/wall_s"] for record in records)
    busy_s = [r["time/wall_s"] * (1 - r["trainer/idle_share"]) for r in records]
    return {
        "loop": name,
        "trainer_idle_share": idle_share(records, skip=given.skip),
        "groups_per_hour": 3600 * given.groups * len(records) / wall,
        "groups_per_hour_warm": 3600
        * given.groups
        * len(records[given.skip :])
        / sum(record["time/wall_s"] for record in records[given.skip :]),
        "trainer_busy_s_per_step": sum(busy_s) / len(busy_s),
        "final_reward": sum(r["reward/finished"] for r in records[-3:]) / 3,
        "staleness_mean": sum(r["staleness/trained_mean"] for r in records) / len(records),
        "engine_idle_share": report.rollout_idle_share,
        "lost_groups": report.result.lost.lost_groups,
        "longest_decile_lost": report.result.lost.by_length[-1].share if report.result.lost.by_length else 0.0,
        "wall_s": wall,
        "status": report.result.status,
    }


def compare_rewards(found: list[dict], seeds: int) -> None:
    """Print the one-sided 95 % bound of asynchronous minus synchronous final reward, paired by seed."""
    reward = {row["loop"]: row["final_reward"] for row in found}
    for kind in sorted({name.rpartition("-")[0] for name in reward} - {"sync"}):
        gaps = [reward[f"{kind}-{seed}"] - reward[f"sync-{seed}"] for seed in range(seeds)]
        mean = statistics.mean(gaps)
        low = mean - t_quantile(0.90, seeds - 1) * statistics.stdev(gaps) / seeds**0.5
        print(
            f"{kind}: final reward {mean:+.3f} against synchronous, at least {low:+.3f} (one-sided 95 %, {seeds} seeds)"
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--policy", type=Path)
    parser.add_argument("--tokenizer", type=Path, help="of --policy, where it holds none")
    parser.add_argument("--tasks", type=Path, help="of --policy; without it, small ones of their own")
    parser.add_argument("--executor", choices=("inline", "process"), default="process")
    parser.add_argument("--steps", type=int, default=16)
    parser.add_argument("--skip", type=int, default=3, help="steps that fill the pipe and do not count for idle shares")
    parser.add_argument("--groups", type=int, default=8)
    parser.add_argument("--trials", type=int, default=4)
    parser.add_argument("--rows", type=int, default=32)
    parser.add_argument("--max-context", type=int, default=640, help="tokens; less makes trials shorter")
    parser.add_argument("--staleness", type=int, default=3)
    parser.add_argument("--trainer-s", type=float, default=20.0)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--bounds", default="hold,drop")
    parser.add_argument("--seeds", type=int, default=1)
    given = parser.parse_args()
    sys.path.insert(0, str(Path(__file__).resolve().parent))  # the sampling process imports Coin from here
    given.work.mkdir(parents=True, exist_ok=True)
    given.work = given.work.absolute()
    workshop = prepared(given.work)
    policy = given.policy or random_policy(workshop, given.work / "policy")
    found = []
    for seed in range(given.seeds):
        for mode, bound in [("sync", "hold"), *(("async", bound) for bound in given.bounds.split(","))]:
            found.append(measure(given, workshop, policy, mode, bound, seed))
            print(json.dumps(found[-1]), flush=True)
    workshop.run.close()
    if given.seeds > 1:
        compare_rewards(found, given.seeds)
    base = [row for row in found if row["loop"].startswith("sync")]
    for row in found:
        if row not in base:
            of = base[int(row["loop"].rpartition("-")[2])]
            idle = row["trainer_idle_share"] / max(of["trainer_idle_share"], 1e-9)
            speed = row["groups_per_hour_warm"] / of["groups_per_hour_warm"]
            shares = f"trainer idle {row['trainer_idle_share']:.1%} = {idle:.2f} of synchronous"
            print(f"{row['loop']}: {shares}, {speed:.2f}x groups/h")
    write_json(given.work / "async_loop.json", {"settings": {k: str(v) for k, v in vars(given).items()}, "rows": found})
    print(given.work / "async_loop.json")
    return 0


if __name__ == "__main__":
    sys.exit(main())
