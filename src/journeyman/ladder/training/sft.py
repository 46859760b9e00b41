"""``journeyman train sft``: supervised training on trials of earlier runs or on samples, from a recipe."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from journeyman.durable import write_json
from journeyman.errors import InputError
from journeyman.ladder.training.home import TrainingHome
from journeyman.seeds import key64, stream
from journeyman.train.criterion import FixedSteps, Progress
from journeyman.train.metrics.sinks import Sinks
from journeyman.train.model import load_model, save_model
from journeyman.train.recipe import DataSection, SftRecipe
from journeyman.train.sft import Example, SftRecord, train_sft
from journeyman.trials.store import open_run


@dataclass(frozen=True)
class Demonstrations:
    """What is learned from.

    Attributes:
        train, held_out: examples.
        too_long, unpaid: trials left out for their length, and for their reward or lack of one.
    """

    train: tuple[Example, ...]
    held_out: tuple[Example, ...]
    too_long: int
    unpaid: int


def run_sft(recipe: SftRecipe, say: Callable[[str], None]) -> dict[str, Any]:
    """Train, or go on with a training that was killed; returns the report.

    Raises:
        InputError: no demonstration is left, or model, data or run directory cannot be used.
    """
    settings = recipe.sft
    with TrainingHome(recipe.out, recipe, ("metrics",)) as home:
        data = read_demonstrations(recipe.data, recipe.seed)
        say(
            f"{len(data.train)} demonstrations, {len(data.held_out)} held out; left out: {data.too_long} too long, "
            f"{data.unpaid} without the reward"
        )
        steps = settings.steps
        constant = steps // 2 if settings.constant is None else settings.constant
        checks = settings.check_every if data.held_out else 0
        sinks = Sinks(home.root, recipe.metrics.sinks, recipe.model_dump(mode="json"), 0)

        def report(progress: Progress, record: SftRecord) -> None:
            loss = record.losses[-1]
            held_out = record.held_out[-1][1] if record.held_out and record.held_out[-1][0] == progress.step else None
            sinks.write(progress.step, {"sft/loss": loss, "sft/held_out": held_out, "tokens/total": record.tokens})
            if progress.check_is_due:
                say(f"step {progress.step}: loss {loss:.4f}" + (f", held out {held_out:.4f}" if held_out else ""))

        result = train_sft(
            lambda attempt: load_model(recipe.policy.model),
            lambda step: batch_of(data.train, step, settings.batch_size, recipe.seed),
            plan=FixedSteps(steps, constant, min(settings.warmup, constant), checks),
            optimizer=recipe.optimizer.spec(),
            held_out=data.held_out,
            checkpoints=home.root / "checkpoints",
            checkpoint_every=settings.checkpoint_every,
            on_step=report,
        )
        save_model(result.model, home.root / "policy")
        sinks.close()
        found = {
            "steps": result.record.steps,
            "tokens": result.record.tokens,
            "loss": result.record.losses[-1],
            "held_out": result.record.held_out,
            "demonstrations": len(data.train),
            "left_out": {"too_long": data.too_long, "unpaid": data.unpaid},
            "policy": str(home.root / "policy"),
        }
        write_json(home.root / "report.json", found)
    return found


def read_demonstrations(section: DataSection, seed: int) -> Demonstrations:
    """The examples of a recipe; held out by task, so that no task is on both sides.

    Raises:
        InputError: nothing is left to learn from, or a file is none.
    """
    examples: list[tuple[str, Example]] = []
    too_long = unpaid = 0
    for name, example, reward in _all(section):
        if reward is not None and not reward >= section.min_reward:
            unpaid += 1
        elif len(example[0]) > section.max_tokens:
            too_long += 1
        else:
            examples.append((name, example))
    limit = section.held_out_share * 2**64
    held = {name for name, _ in examples if key64(seed, "held out", name) < limit}
    train = tuple(example for name, example in examples if name not in held)
    if not train:
        raise InputError("data", f"no demonstration is left: {unpaid} without the reward, {too_long} too long")
    return Demonstrations(train, tuple(e for name, e in examples if name in held), too_long, unpaid)


def batch_of(examples: Sequence[Example], step: int, size: int, seed: int) -> list[Example]:
    """The examples of a step: epoch after epoch in a seeded order; the same every time it is asked."""
    found = []
    for position in range(step * size, (step + 1) * size):
        epoch, index = divmod(position, len(examples))
        order = list(range(len(examples)))
        stream(seed, "sft order", epoch).shuffle(order)
        found.append(examples[order[index]])
    return found


def _all(section: DataSection) -> Iterator[tuple[str, Example, float | None]]:
    """Name of the task, example, and reward (None where a demonstration needs none, -1 where a trial has none)."""
    for directory in section.runs:
        with open_run(directory) as run:
            for row in run.trials():
                if row.is_done and row.n_sampled:
                    columns = run.trajectory(row.key)
                    yield row.task_id, (columns.ids, columns.mask), -1.0 if row.reward is None else row.reward
    for path in section.samples:
        yield from _samples(path)


def _samples(path: Path) -> Iterator[tuple[str, Example, float | None]]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise InputError(str(path), f"cannot be read: {error.strerror}") from error
    for number, line in enumerate(lines, start=1):
        try:
            row = json.loads(line)
            ids, mask = np.array(row["token_ids"], np.int32), np.array(row["mask"], np.uint8)
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"{path}:{number}", f"is no sample: {error!r}", allowed="token_ids and mask") from error
        if len(ids) != len(mask) or not len(ids) or mask[0] or not mask.any():
            raise InputError(f"{path}:{number}", "mask and token_ids do not fit", allowed="one mask value per id")
        yield str(row.get("env_name", number)), (ids, mask), None
