"""``journeyman quickstart``: the seven steps of the ladder in miniature, on this machine, in minutes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from journeyman.cli.breakdown import traceback_kept_in
from journeyman.cli.verb import RECIPE_WORDS, print_json, progress, verb, warn
from journeyman.errors import GateFailed

if TYPE_CHECKING:
    from journeyman.ladder.report.model import Step


@verb(
    "quickstart",
    "See an agent learn checked work, from nothing, in minutes.",
    "journeyman quickstart",
    "journeyman quickstart --out runs/second --seed 1 --rl.train-steps 20",
    settings=RECIPE_WORDS,
)
@click.option("--out", metavar="DIR", help="Run directory.  [default: runs/quickstart]")
@click.option("--seed", metavar="N", help="Root of every random stream.  [default: 0]")
@click.option("--profile", metavar="NAME", help="tiny (from nothing) or smollm2 (pretrained).  [default: tiny]")
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[@ RECIPE.toml] [--KEY VALUE]...")
def quickstart(out: str | None, seed: str | None, profile: str | None, words: tuple[str, ...], as_json: bool) -> int:
    """Make worlds, prove their tasks, train a small language model by reinforcement learning, and report honestly.

    Any key of the recipe can be set by a flag (--rl.train-steps 20), by a file (@ recipe.toml) or by a variable
    (JOURNEYMAN_RL__TRAIN_STEPS=20); see docs/config.md. The same command continues an interrupted run. Exit code 1: a
    gate failed, and the report says which.
    """
    from journeyman.config import load
    from journeyman.ladder.recipe import QuickstartRecipe

    named = {"--out": out, "--seed": seed, "--profile": profile}
    tokens = [*words, *(f"{flag}={value}" for flag, value in named.items() if value is not None)]
    resolved = load(QuickstartRecipe, tokens, os.environ)
    for line in resolved.notices:
        warn(line)
    directory = resolved.model.out
    # read when torch is loaded: idle threads of its pool must sleep, not spin, while this process works on one thread
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    with traceback_kept_in(directory):
        from journeyman.ladder.quickstart import run

        report = run(resolved.model, progress)
    for step in report.steps:
        if step.status == "failed":
            warn(f"step {step.number} {step.name} failed: {'; '.join(unmet(step)) or step.summary}")
            warn(f"look at: {', '.join(str(directory / name) for name in step.look_at) or directory}")
    if as_json:
        print_json(report.model_dump(mode="json"))
    else:
        click.echo(f"report: {directory / 'report.html'}")
    return 0 if report.status == "passed" else GateFailed.exit_code


def unmet(step: Step) -> list[str]:
    """The conditions of a step that do not hold, in words."""
    gates = [gate for gate in (step.gate, *step.checks) if gate is not None and not gate.passed]
    return [
        f"{gate.metric} is {gate.value if gate.value is not None else 'not measured'}, "
        f"needed {gate.comparison} {gate.threshold}" + (f" ({gate.detail})" if gate.detail else "")
        for gate in gates
    ]
