"""``journeyman overfit``: can this policy learn these tasks at all, and which kinds of them does it not?"""

from __future__ import annotations

import os

import click

from journeyman.cli.train import RECIPE, resolve
from journeyman.cli.verb import RECIPE_WORDS, print_json, progress, verb
from journeyman.errors import GateFailed


@verb(
    "overfit",
    "Overfit a few tasks: the end-to-end test of a task set and a policy.",
    "journeyman overfit recipe.toml",
    "journeyman overfit --tasks.train tasks/train --policy.model models/warm-start --rollout.harness framing:toolbelt",
    settings=RECIPE_WORDS,
)
@click.option("--out", metavar="DIR", help="Run directory.  [default: runs/overfit]")
@RECIPE
def overfit(words: tuple[str, ...], out: str | None, as_json: bool) -> int:
    """Choose tasks with reward variance, sample a fresh baseline, train some epochs on them, and measure again.

    The report has the curve per verifier kind, deliverable type and family, and names those that did not rise with the
    words of their verdicts: often it is the verifier that is wrong. Exit code 1 when the reward does not rise.
    """
    from journeyman.train.recipe import OverfitRecipe

    recipe = resolve(OverfitRecipe, words, out)
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # read when torch is loaded: idle threads sleep
    from journeyman.ladder.training.overfit import run_overfit

    report = run_overfit(recipe, progress)
    if as_json:
        print_json(report.as_json())
    else:
        for line in report.lines():
            click.echo(line)
        click.echo(f"report: {recipe.out / 'report.json'}")
    return 0 if report.passed else GateFailed.exit_code
