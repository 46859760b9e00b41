"""``journeyman train rl | sft``: train a policy from a recipe; the same command goes on where a killed one stopped."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import click

from journeyman.cli.verb import RECIPE_WORDS, print_json, progress, verb, warn
from journeyman.errors import GateFailed

RECIPE = click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[RECIPE.toml]... [--KEY VALUE]...")


@click.group(short_help="Train a policy by reinforcement or on demonstrations.")
def train() -> None:
    """Train a policy from a recipe.

    \b
    Example:  journeyman train rl recipe.toml
    """


@verb(
    "rl",
    "Train by reinforcement on tasks with verifiers, asynchronously.",
    "journeyman train rl recipe.toml",
    "journeyman train rl recipe.toml --loop.staleness 2 --out runs/second",
    settings=RECIPE_WORDS,
)
@click.option("--out", metavar="DIR", help="Run directory.  [default: runs/rl]")
@RECIPE
def rl(words: tuple[str, ...], out: str | None, as_json: bool) -> int:
    """Train a policy by reinforcement; every key of the recipe can be set by a flag (docs/loop.md).

    Ctrl-C and SIGTERM finish the step under way and leave a checkpoint; the same command goes on. Exit code 1: a guard
    stopped the run, or nothing was left to learn.
    """
    from journeyman.train.recipe import RlRecipe

    recipe = resolve(RlRecipe, words, out)
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # read when torch is loaded: idle threads sleep
    from journeyman.ladder.training.rl import run_rl

    stopped: list[int] = []
    before = {
        number: signal.signal(number, lambda got, frame: stopped.append(got))
        for number in (signal.SIGTERM, signal.SIGINT)
    }
    try:
        report = run_rl(recipe, progress, lambda: bool(stopped))
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if as_json:
        print_json(report.as_json())
    else:
        for line in report.lines():
            click.echo(line)
        click.echo(f"policy: {recipe.out / 'policy'}")
    if report.result.status == "interrupted":
        return 130
    return 0 if report.result.status == "done" else GateFailed.exit_code


@verb(
    "sft",
    "Train on demonstrations: trials of earlier runs, or samples.",
    "journeyman train sft recipe.toml",
    "journeyman train sft recipe.toml --sft.steps 500",
    settings=RECIPE_WORDS,
)
@click.option("--out", metavar="DIR", help="Run directory.  [default: runs/sft]")
@RECIPE
def sft(words: tuple[str, ...], out: str | None, as_json: bool) -> int:
    """Train a policy on demonstrations; a killed run goes on with the same command and ends in the same bits."""
    from journeyman.train.recipe import SftRecipe

    recipe = resolve(SftRecipe, words, out)
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    from journeyman.ladder.training.sft import run_sft

    report = run_sft(recipe, progress)
    if as_json:
        print_json(report)
    else:
        click.echo(f"{report['steps']} steps on {report['demonstrations']} demonstrations, loss {report['loss']:.4f}")
        click.echo(f"policy: {report['policy']}")
    return 0


def resolve(model: Any, words: tuple[str, ...], out: str | None) -> Any:
    """The recipe that the words describe; file names may stand first without ``@``. Raises ConfigError."""
    from journeyman.config import load

    rest, files = list(words), []
    while rest and not rest[0].startswith(("@", "--")):
        files += ["@", rest.pop(0)]
    named = ["--out", str(Path(out))] if out is not None else []
    resolved = load(model, [*files, *rest, *named], os.environ)
    for line in resolved.notices:
        warn(line)
    return resolved.model


for command in (rl, sft):
    train.add_command(command)
