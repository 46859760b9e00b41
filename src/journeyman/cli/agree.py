"""``journeyman tokens agree``: do engine and trainer hold the same model?"""

from __future__ import annotations

import os

import click

from journeyman.cli.verb import RECIPE_WORDS, print_json, progress, verb, warn


@verb(
    "agree",
    "Measure whether engine and trainer hold the same model.",
    "journeyman tokens agree --engine runs/quickstart/models/trained --trainer runs/quickstart/models/trained",
    "journeyman tokens agree --engine http://127.0.0.1:8000 --engine.dtype bfloat16 --trainer DIR",
    settings=RECIPE_WORDS,
)
@click.option("--engine", metavar="MODEL", help="What the engine serves: a model directory, or a server's URL.")
@click.option("--trainer", metavar="DIR", help="What the trainer holds.")
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[@ RECIPE.toml]... [--KEY VALUE]...")
def agree(engine: str | None, trainer: str | None, words: tuple[str, ...], as_json: bool) -> int:
    """Sample with the engine over several turns, push moved weights to it twice (once within a turn), and compare every
    sampled token's logprob with the trainer's. Prints the gap by position, source, weight version and leg, and writes a
    record that recipes of risky deployments ask for. A server gets its weights back at the end. Exit code 1 when a
    condition does not hold.
    """
    from journeyman.config import load
    from journeyman.train.agreement.run import AgreeRecipe, table
    from journeyman.train.agreement.run import agree as measure

    given = [
        word for flag, value in (("engine", engine), ("trainer", trainer)) if value for word in _model(flag, value)
    ]
    resolved = load(AgreeRecipe, [*given, *words], os.environ)
    for line in resolved.notices:
        warn(line)
    outcome = measure(resolved.model, progress)
    if as_json:
        print_json(outcome.as_json() | {"record": str(resolved.model.out)})
    else:
        for line in table(outcome):
            click.echo(line)
        click.echo(f"{'agree' if outcome.passed else 'do NOT agree'}: {resolved.model.out}")
    return 0 if outcome.passed else 1


def _model(flag: str, value: str) -> tuple[str, str]:
    return f"--{flag}.model", value
