"""``worlds check DIR --quality N``: how good the verifiers of sampled tasks are, as one table and ``quality.json``."""

from __future__ import annotations

from pathlib import Path

import click

from journeyman.cli.verb import print_json, progress, warn

STEADY_TASKS = 10
"""Tasks of the sample whose deliverables are graded again."""


def check_quality(
    directory: Path,
    count: int,
    *,
    seed: int,
    times: int,
    jobs: int,
    waive: tuple[str, ...],
    judge: str,
    judge_keys: tuple[str, ...],
    as_json: bool,
) -> int:
    """Measure, print, write DIR/quality.json; exit code 1 when a bound is missed."""
    from contextlib import nullcontext

    from journeyman.cli.bar import bar
    from journeyman.durable import write_json
    from journeyman.errors import GateFailed
    from journeyman.evals.verifiers import lines_of, quality_of
    from journeyman.trials.rubric_judge import open_judge
    from journeyman.trials.worldgates.quality import examine_tasks, sampled
    from journeyman.trials.worldgates.steadiness import grade_again

    limits, place = frozenset(waive), directory / "environments"
    paths = sampled(directory, count, seed)
    with bar("tasks examined") as step:
        tested = examine_tasks(paths, place, seed=seed, jobs=jobs, waive=limits, progress=step)
    steady = None
    if times:
        progress(f"grading {min(len(paths), STEADY_TASKS)} tasks {times} times")
        with open_judge(judge, judge_keys) if judge else nullcontext() as opened:
            steady = grade_again(paths[:STEADY_TASKS], place, times, seed=seed, waive=limits, judge=opened)
    quality = quality_of(tested, steady)
    write_json(directory / "quality.json", quality.as_json())
    for finding in quality.findings:
        warn(finding)
    if as_json:
        print_json(quality.as_json())
    else:
        click.echo("\n".join(lines_of(quality)))
        for template, found in quality.survivors.items():
            click.echo("\n".join(f"alive in {template}: {what}" for what in found))
        for name in steady.unsteady if steady is not None else ():
            click.echo(f"unsteady: {name}")
        click.echo(f"{quality.tasks} tasks of {quality.worlds} worlds: {directory / 'quality.json'}")
    return 0 if quality.is_met else GateFailed.exit_code
