"""``journeyman sweep``: which layout of the trainer is the fastest on these machines."""

from __future__ import annotations

import os
from dataclasses import asdict

import click

from journeyman.cli.verb import RECIPE_WORDS, print_json, progress, verb, warn


@verb(
    "sweep",
    "Time the trainer's layouts on real steps, record and rank them.",
    "journeyman sweep --model DIR --grid.tokens_per_micro_batch '[2048, 4096, 8192]'",
    "journeyman sweep @ sweep.toml --model DIR",
    settings=RECIPE_WORDS,
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[@ SWEEP.toml]... [--KEY VALUE]...")
def sweep(words: tuple[str, ...], as_json: bool) -> int:
    """Open the back-end once for every combination of the grid (tp, pp, ep, cp, offload, checkpoint_layers,
    tokens_per_micro_batch), take some steps, and rank by tokens per second. Combinations that cannot run are listed
    with their reason. A sweep that was stopped goes on where it was: each cell is recorded when it is done.
    """
    from journeyman.config import load
    from journeyman.train.sweep import SweepRecipe, table
    from journeyman.train.sweep import sweep as measure

    resolved = load(SweepRecipe, list(words), os.environ)
    for line in resolved.notices:
        warn(line)
    found = measure(resolved.model, progress)
    if as_json:
        print_json({"cells": [asdict(cell) for cell in found], "record": str(resolved.model.out)})
    else:
        for line in table(found):
            click.echo(line)
        click.echo(f"{len(found)} layouts: {resolved.model.out}")
    return 0 if any(not cell.failed for cell in found) else 1
