"""``journeyman config show | validate | schema``: what a recipe means, before anything is started."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import click

from journeyman.cli.verb import RECIPE_WORDS, print_json, verb, warn

if TYPE_CHECKING:
    from pydantic import BaseModel

    from journeyman.config import Resolved

WORDS = click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[RECIPE.toml]... [--KEY VALUE]...")
KIND = click.option(
    "--for", "kind", default="quickstart", show_default=True, metavar="VERB", help="Whose recipe it is."
)


@click.group(short_help="Show, validate or describe a recipe.")
def config() -> None:
    """Show, validate or describe a recipe.

    \b
    Example:  journeyman config show recipe.toml --seed 3
    """


def recipe_models() -> dict[str, type[BaseModel]]:
    """The recipe of each verb that has one."""
    from journeyman.ladder.recipe import QuickstartRecipe
    from journeyman.train.agreement.deployment import Deployment
    from journeyman.train.agreement.run import AgreeRecipe
    from journeyman.train.launch.spec import LaunchSpec
    from journeyman.train.recipe import OverfitRecipe, RlRecipe, SftRecipe
    from journeyman.train.sweep import SweepRecipe

    return {
        "quickstart": QuickstartRecipe,
        "rl": RlRecipe,
        "sft": SftRecipe,
        "overfit": OverfitRecipe,
        "sweep": SweepRecipe,
        "launch": LaunchSpec,
        "agree": AgreeRecipe,
        "deployment": Deployment,
    }


def _model(kind: str) -> type[BaseModel]:
    from journeyman.errors import InputError, nearest

    models = recipe_models()
    if kind not in models:
        close = nearest(kind, models)
        hint = f"Did you mean {close}?" if close else None
        raise InputError("--for", f'got "{kind}"', allowed=", ".join(models), hint=hint)
    return models[kind]


def _resolve(words: tuple[str, ...], kind: str) -> Resolved[Any]:
    """The recipe that the words describe; file names may stand first without ``@``."""
    from journeyman.config import load

    rest = list(words)
    files = []
    while rest and not rest[0].startswith(("@", "--")):
        files += ["@", rest.pop(0)]
    resolved = load(_model(kind), [*files, *rest], os.environ)
    for line in resolved.notices:
        warn(line)
    return resolved


@verb(
    "show",
    "Print the merged recipe, each value with its source.",
    "journeyman config show recipe.toml",
    "journeyman config show base.toml overlay.toml --rl.lr 1e-4 --json",
    settings=RECIPE_WORDS,
)
@KIND
@WORDS
def show(words: tuple[str, ...], kind: str, as_json: bool) -> int:
    """Print every value of the merged recipe and where it came from: default, file and line, variable or flag."""
    resolved = _resolve(words, kind)
    values = resolved.model.model_dump(mode="json")
    if as_json:
        print_json({"recipe": values, "sources": dict(resolved.sources), "sha256": resolved.sha256})
        return 0
    rows = [(path, json.dumps(_at(values, path), ensure_ascii=False), text) for path, text in resolved.sources.items()]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    for path, value, text in rows:
        click.echo(f"{path:<{widths[0]}}  {value:<{widths[1]}}  {text}")
    click.echo(f"sha256 {resolved.sha256}")
    return 0


def _at(values: Any, path: str) -> Any:
    for key in path.split("."):
        values = values[key]
    return values


@verb(
    "validate",
    "Check a recipe: every problem at once, exit code 2.",
    "journeyman config validate recipe.toml",
    settings=RECIPE_WORDS,
)
@KIND
@WORDS
def validate(words: tuple[str, ...], kind: str, as_json: bool) -> int:
    """Check a recipe without starting anything. Exit code 2 and one panel with every problem when it cannot be used."""
    resolved = _resolve(words, kind)
    written = sum(text != "default" for text in resolved.sources.values())
    if as_json:
        print_json({"valid": True, "sha256": resolved.sha256, "set": written, "values": len(resolved.sources)})
    else:
        click.echo(f"valid: {written} of {len(resolved.sources)} values set, the rest are defaults")
        click.echo(f"sha256 {resolved.sha256}")
    return 0


@verb("schema", "Print the JSON Schema of a recipe.", "journeyman config schema")
@KIND
def schema(kind: str, as_json: bool) -> int:
    """Print the JSON Schema of a recipe: every key with type, range, default and meaning. Always JSON."""
    print_json(_model(kind).model_json_schema())
    return 0


for command in (show, validate, schema):
    config.add_command(command)
