"""``journeyman worlds count``: how many tasks of each template a build would have, without making them."""

from __future__ import annotations

import click

from journeyman.cli.verb import print_json, progress, verb


@verb(
    "count",
    "Say how many tasks of each template a build of offices would have.",
    "journeyman worlds count --seed 7 --worlds 112 --tasks 1928",
    "journeyman worlds count --seed 7 --worlds 112 --tasks 1928 --first 0 --last 15",
)
@click.option("--seed", type=int, default=0, show_default=True, help="As of the build.")
@click.option("--worlds", "count", type=int, default=112, show_default=True, help="Worlds of the build.")
@click.option("--tasks", type=int, default=1928, show_default=True, help="Tasks of the build.")
@click.option("--split", default="", help="As of the build; all by default.")
@click.option("--first", type=int, default=0, show_default=True, help="First world to count, by its position.")
@click.option("--last", type=int, help="Last world to count; the last of the build by default.")
def count_verb(seed: int, count: int, tasks: int, split: str, first: int, last: int | None, as_json: bool) -> int:
    """Bind the tasks of a build, and count them by template and by trap; nothing is written, graded or published.

    A count is the most that a build can publish: what gates would refuse is not known here. A world takes some three
    CPU-seconds; counts of parts (--first, --last) add up.
    """
    from journeyman.worlds.counting import count_tasks

    only = range(first, (count - 1 if last is None else last) + 1)
    found = count_tasks(
        seed,
        count,
        tasks,
        split=split,
        only=only,
        progress=lambda done, total, what: progress(f"{done}/{total} {what}"),
    )
    if as_json:
        print_json(found.as_json())
        return 0
    for name, number in found.by_template().items():
        click.echo(f"template\t{name}\t{number}")
    for name, number in found.as_json()["traps"].items():
        click.echo(f"trap\t{name}\t{number}")
    for why, number in list(found.as_json()["passed_over"].items())[:20]:
        click.echo(f"passed over\t{number}\t{why}")
    click.echo(f"{found.tasks.total()} tasks in {found.worlds} worlds, {found.empty} places empty")
    return 0
