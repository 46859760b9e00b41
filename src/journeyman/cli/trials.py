"""``journeyman trials run | list | attach | cancel``: run task directories, with or without a terminal."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from journeyman.cli.offered import judged, offered
from journeyman.cli.tasks import task_directories
from journeyman.cli.verb import print_json, progress, verb

if TYPE_CHECKING:
    from journeyman.trials.detached import RunInfo

DIRECTORY = click.argument("directory", type=click.Path(path_type=Path))


@click.group(short_help="Run trials of tasks, list, follow and stop runs.")
def trials() -> None:
    """Run trials of task directories, each in a process and a sandbox of its own.

    \b
    Example:  journeyman trials run tasks/train --policy oracle --out runs/oracle
    """


@verb(
    "run",
    "Run the trials of task directories, or go on with a run that was stopped.",
    "journeyman trials run tasks/train --policy oracle --out runs/oracle",
    "journeyman trials run tasks/train --policy models/warm-start --harness framing:toolbelt --out runs/a --detach",
    "journeyman trials run tasks/train --policy models/m --mcp servers.json --faults faults.json --out runs/faulty",
)
@click.argument("tasks", type=click.Path(path_type=Path))
@click.option("--policy", required=True, help="A model (DIR, hf:ORG/NAME@REV), oracle or noop.")
@click.option("--harness", default="toolbelt", show_default=True, help="The loop, or framing:NAME of the quickstart.")
@click.option("--executor", default="process", show_default=True, help="inline, process or ray.")
@click.option("--concurrency", type=click.IntRange(1), default=16, show_default=True, help="Trials alive at once.")
@click.option("--samples", type=click.IntRange(1), default=1, show_default=True, help="Trials per task.")
@click.option("--attempts", type=click.IntRange(1), default=2, show_default=True, help="Attempts when something broke.")
@click.option("--seed", type=int, default=0, show_default=True, help="Same seed, same sampling noise.")
@click.option("--temperature", type=float, default=1.0, show_default=True, help="0 is greedy.")
@click.option("--context-tokens", type=click.IntRange(0), default=0, help="Of a model's context; 0: the engine's.")
@click.option("--sandbox", "provider", default="bwrap", show_default=True, help="bwrap, oci or none.")
@click.option("--waive", multiple=True, metavar="LIMIT", help="A sandbox limit that may stay unenforced.")
@offered
@judged
@click.option("--out", type=click.Path(path_type=Path), required=True, help="The run directory.")
@click.option("--detach", "is_detached", is_flag=True, help="Go on in the background; trials attach follows it.")
def run(
    tasks: Path,
    out: Path,
    policy: str,
    harness: str,
    waive: tuple[str, ...],
    mcp: Path | None,
    faults: Path | None,
    is_detached: bool,
    as_json: bool,
    **options: Any,
) -> int:
    """Run every task below TASKS; each trial ends in one row of the error table. Exit code 4 when a row is missing.

    The same command again goes on where a killed or cancelled run stopped.
    """
    from journeyman.trials.detached import detach
    from journeyman.trials.plan import RunPlan
    from journeyman.trials.running import run_plan

    found = tuple(str(path.absolute()) for path in task_directories(tasks))
    if is_detached:
        pid = detach([word for word in sys.argv[1:] if word != "--detach"], out)
        if as_json:
            print_json({"pid": pid, "out": str(out)})
        else:
            click.echo(f"running as process {pid}; follow it: journeyman trials attach {out}")
        return 0
    options["mcp"], options["faults"] = (str(path.absolute()) if path is not None else "" for path in (mcp, faults))
    plan = RunPlan(found, policy, harness, out=str(out), waive=waive, **options)
    result = run_plan(plan, lambda trial: progress(f"{trial.request.trial_id}#{trial.attempt} {_row(trial)}"))
    if as_json:
        print_json({"out": str(out), **asdict(result)})
    else:
        for line in result.drops.lines():
            click.echo(line)
        if result.judge is not None:
            click.echo("judge: " + ", ".join(f"{name} {value}" for name, value in result.judge.items()))
        mean = "no valid reward" if result.mean_reward is None else f"mean reward {result.mean_reward:.3f}"
        counts = ", ".join(f"{name} {n}" for name, n in sorted(result.outcomes.items()))
        click.echo(f"{counts}; {mean}: {out}")
    is_whole = sum(n for name, n in result.outcomes.items() if name != "cancelled") == len(found) * plan.samples
    return 0 if is_whole else 4


def _row(trial: Any) -> str:
    return f"{trial.outcome.outcome_class} ({trial.outcome.cause})" if trial.outcome is not None else "no row"


@verb("list", "List the runs in a directory.", "journeyman trials list runs")
@DIRECTORY
def list_(directory: Path, as_json: bool) -> int:
    """One line per run: state, trials that have their row, and how they ended."""
    from journeyman.trials.detached import list_runs

    found = list_runs(directory)
    _show(found, as_json)
    if not found and not as_json:
        click.echo(f"no runs: {directory}")
    return 0


@verb("attach", "Follow a run until it ends.", "journeyman trials attach runs/oracle")
@DIRECTORY
def attach(directory: Path, as_json: bool) -> int:
    """Print the run's line whenever it changes. Ctrl-C leaves the run alone. Exit code 4 when its owner was killed."""
    from journeyman.trials.detached import attach as follow

    info = follow(directory, lambda change: progress(change.line))
    _show([info], as_json)
    return 4 if info.state in ("lost", "failed") else 0


@verb("cancel", "Stop a run; the same command goes on with it later.", "journeyman trials cancel runs/oracle")
@DIRECTORY
def cancel(directory: Path, as_json: bool) -> int:
    """Kill what runs, record it as cancelled, remove every sandbox of the run."""
    from journeyman.trials.detached import cancel as stop

    _show([stop(directory)], as_json)
    return 0


def _show(found: list[RunInfo], as_json: bool) -> None:
    if as_json:
        print_json([asdict(info) for info in found])
        return
    for info in found:
        click.echo(info.line)


for command in (run, list_, attach, cancel):
    trials.add_command(command)
