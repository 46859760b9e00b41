"""``journeyman sandbox list|reap``: what sandboxes are on this machine, and the removal of what killed runs left."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from journeyman.cli.verb import print_json, verb, warn

if TYPE_CHECKING:
    from journeyman.sandbox.sweep import Trace

LABEL = click.option("--label", help="Only what carries this label: the id of a run.")


@click.group(short_help="List sandboxes; remove what killed runs left.")
def sandbox() -> None:
    """Look after the sandboxes of this machine, of every provider.

    \b
    Example:  journeyman sandbox reap
    """


@verb("list", "List every sandbox of this machine, and what is left of dead ones.", "journeyman sandbox list")
@LABEL
def list_sandboxes(label: str | None, as_json: bool) -> int:
    """Name each sandbox, CPU meter and scratch directory with its owner; orphans are those whose owner is gone."""
    from journeyman.sandbox.sweep import survey

    found, problems = survey(label)
    for problem in problems:
        warn(f"not looked at: {problem}")
    if as_json:
        print_json({"found": [asdict(trace) for trace in found], "problems": problems})
        return 0
    for trace in found:
        click.echo(_line("orphan" if trace.is_orphan else "alive", trace))
    orphans = sum(trace.is_orphan for trace in found)
    remove = ": journeyman sandbox reap" if orphans else ""
    click.echo(f"{len(found)} found, {orphans} without an owner{remove}")
    return 0


@verb("reap", "Remove whatever killed runs left behind, of every provider.", "journeyman sandbox reap")
@LABEL
def reap(label: str | None, as_json: bool) -> int:
    """Kill and remove everything whose owner is gone. What a living program holds is not touched.

    Exit code 4 when something of an orphan could not be removed, or a container program did not answer.
    """
    from journeyman.errors import SystemFault
    from journeyman.sandbox.sweep import sweep

    done = sweep(label)
    code = SystemFault.exit_code if done.leaks or done.problems else 0
    for problem in done.problems:
        warn(f"not looked at: {problem}")
    if as_json:
        print_json(asdict(done))
        return code
    for trace in done.removed:
        click.echo(_line("removed", trace))
    for trace in done.leaks:
        click.echo(_line("LEAK", trace))
        for remains in trace.remains:
            click.echo(f"{'':<9}{remains}")
    click.echo(f"{len(done.removed)} removed, {len(done.leaks)} leaks, {len(done.living)} have a living owner")
    return code


def _line(mark: str, trace: Trace) -> str:
    processes = "1 process" if trace.num_processes == 1 else f"{trace.num_processes} processes"
    what = f"{trace.provider} {trace.kind}".strip()
    return f"{mark:<9}{what:<14}{trace.label}  {trace.id}  owner {trace.owner_pid}, {processes}"


sandbox.add_command(list_sandboxes)
sandbox.add_command(reap)
