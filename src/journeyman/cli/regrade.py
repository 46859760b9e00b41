"""``journeyman regrade``: grade saved deliverables again, without running any agent."""

from __future__ import annotations

from pathlib import Path

import click

from journeyman.cli.offered import judged
from journeyman.cli.verb import print_json, verb, warn

LABEL = "regrade"
SHOWN = 20
"""Changed trials that are printed; the file holds all."""


@verb(
    "regrade",
    "Grade a run's saved deliverables again; no agent runs.",
    "journeyman regrade runs/quickstart",
    "journeyman regrade runs/quickstart --task look-train-0001",
    "journeyman regrade runs/apex --tasks tasks/apex --judge openai:http://localhost:8000/v1#judge-model",
)
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--task", "only_tasks", multiple=True, help="Only trials of this task; may be repeated.")
@click.option("--trial", "only_trials", multiple=True, help="Only this trial, by key or id; may be repeated.")
@click.option(
    "--tasks",
    type=click.Path(path_type=Path),
    help="Where tasks lie. Default: RUN/tasks, else where the run names them.",
)
@click.option("--waive", multiple=True, help="A sandbox limit that may stay unenforced: memory, pids, disk, cpus.")
@judged
def regrade(
    run: Path,
    only_tasks: tuple[str, ...],
    only_trials: tuple[str, ...],
    tasks: Path | None,
    waive: tuple[str, ...],
    judge: str,
    judge_keys: tuple[str, ...],
    as_json: bool,
) -> int:
    """Verify the deliverables in RUN with the tests as they are now, in fresh sandboxes. Old verdicts are kept.

    Exit code 1 when a verifier broke: that trial still has no number.
    """
    from contextlib import nullcontext
    from dataclasses import asdict

    from journeyman.errors import GateFailed
    from journeyman.ladder.tier import strict_tier
    from journeyman.sandbox.environment import build_environment
    from journeyman.sandbox.scratch import scratch
    from journeyman.tasks.verify import BatchVerifier
    from journeyman.tools.agent_environment import AGENT_DISTRIBUTIONS, AGENT_PACKAGES, AGENT_PROGRAMS
    from journeyman.tools.workbench import tools_environment
    from journeyman.trials.regrade import regrade_run
    from journeyman.trials.rubric_judge import open_judge
    from journeyman.trials.run_tasks import RunTasks
    from journeyman.trials.world_documents import is_office_directory

    asked = open_judge(judge, judge_keys) if judge else nullcontext()
    tier = strict_tier(frozenset(waive))
    with scratch(LABEL) as room, asked as opened:
        made = run / "environment"  # many runs have one, found again by its digest
        place, found = made if made.is_dir() else room, RunTasks(run, tasks)
        if any(map(is_office_directory, found.paths.values())):
            environment = tools_environment(place)
        else:
            environment = build_environment(
                place, distributions=AGENT_DISTRIBUTIONS, packages=AGENT_PACKAGES, programs=AGENT_PROGRAMS
            )
        with BatchVerifier(tier.provider, environment, LABEL, waive=tier.waive, judge=opened) as verifier:
            report = regrade_run(run, verifier, tasks=found, only_tasks=only_tasks, only_trials=only_trials)
    code = GateFailed.exit_code if report.num_verifier_errors else 0
    for reason, keys in report.skipped.items():
        warn(f"not graded, {len(keys)}: {reason}; first: {keys[0]}")
    if as_json:
        print_json(
            {
                "graded": len(report.trials),
                "changed": [asdict(trial) for trial in report.changed],
                "moves": report.moves(),
                "verifier_errors": report.num_verifier_errors,
                "skipped": report.skipped,
                "judge": opened.report() if opened is not None else None,
                "place": str(report.place),
            }
        )
        return code
    for trial in report.changed[:SHOWN]:
        before = trial.before or {"kind": "no verdict", "reward": None}
        after = trial.after
        why = f"  {after['explain']}" if after["explain"] else ""
        click.echo(f"{trial.key}  {before['kind']} {before['reward']} -> {after['kind']} {after['reward']}{why}")
    if len(report.changed) > SHOWN:
        click.echo(f"... and {len(report.changed) - SHOWN} more")
    for move, count in report.moves().items():
        click.echo(f"{count:>7}  {move}")
    if opened is not None:
        click.echo("judge: " + ", ".join(f"{name} {value}" for name, value in opened.report().items()))
    counts = f"{len(report.trials)} graded, {len(report.changed)} changed, {report.num_verifier_errors} verifier errors"
    click.echo(f"{counts}: {report.place}")
    return code
