"""``journeyman launch --print slurm|k8s``: the text that starts a run on a cluster."""

from __future__ import annotations

import os

import click

from journeyman.cli.verb import RECIPE_WORDS, print_json, verb, warn


@verb(
    "launch",
    "Print what starts a run on a cluster: a Slurm script or Kubernetes objects.",
    "journeyman launch --print slurm --trainer.nodes 2 --command 'journeyman train rl recipe.toml'",
    "journeyman launch --print k8s @ cluster.toml",
    settings=RECIPE_WORDS,
)
@click.option(
    "cluster", "--print", type=click.Choice(["slurm", "k8s"]), required=True, help="Which text. Nothing is submitted."
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[@ CLUSTER.toml]... [--KEY VALUE]...")
def launch(cluster: str, words: tuple[str, ...], as_json: bool) -> int:
    """Print a job for a cluster. It starts the run, lets it drain when the machines are taken away, and starts it again
    where it stopped. Submit it with `sbatch` or `kubectl apply -f -`; docs/cluster.md says what the nodes must share.
    """
    from journeyman.config import load
    from journeyman.train.launch.spec import LaunchSpec
    from journeyman.train.launch.texts import launch_text

    resolved = load(LaunchSpec, list(words), os.environ)
    for line in resolved.notices:
        warn(line)
    text = launch_text(cluster, resolved.model)
    if as_json:
        print_json({"cluster": cluster, "text": text, "spec": resolved.model.model_dump(mode="json")})
    else:
        click.echo(text, nl=False)
    return 0
