"""``journeyman dry-run``: run every task before training, and say whose fault each failure was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from journeyman.cli.breakdown import traceback_kept_in
from journeyman.cli.offered import judged, offered
from journeyman.cli.verb import print_json, progress, verb

RUN = click.argument("run", type=click.Path(path_type=Path))


class DryRun(click.Group):
    """A group whose first word may be left out: ``dry-run TASKS`` is ``dry-run run TASKS``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, self._with_verb(args))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        return super().resolve_command(ctx, self._with_verb(args))

    def _with_verb(self, args: list[str]) -> list[str]:
        if not args or args[0] in self.commands or args[0] in ("-h", "--help"):
            return args
        return ["run", *args]


@click.group("dry-run", cls=DryRun, short_help="Run every task before training; say whose fault each failure was.")
def dry_run() -> None:
    """Run every task before training, and say whose fault each failure was.

    \b
    Example:  journeyman dry-run tasks/train --policy oracle --out runs/dry
    The word `run` may be left out.
    """


@verb(
    "run",
    "Run every task, classify failures, judge the gate; the word `run` may be left out.",
    "journeyman dry-run run tasks/train --policy oracle --out runs/dry",
    "journeyman dry-run run tasks/train --policy models/warm --harness code --concurrency 64 --out runs/dry-code",
    "journeyman dry-run run --against runs/dry-code --out runs/dry-code-2",
)
@click.argument("tasks", required=False, type=click.Path(path_type=Path))
@click.option("--policy", help="oracle, noop, random, or a model: DIR, hf:ORG/NAME@REV.  [default: oracle]")
@click.option("--harness", metavar="NAME", help="Which loop, with which tools.  [default: toolbelt]")
@click.option("--concurrency", type=click.IntRange(1), default=16, show_default=True, help="Trials alive at once.")
@click.option("--samples", type=click.IntRange(1), help="Trials per task.  [default: 1]")
@click.option("--seed", type=int, help="Of sampling and of random actions.  [default: 0]")
@click.option("--temperature", type=click.FloatRange(0), help="Of a model.  [default: 1.0]")
@click.option("--context-tokens", type=click.IntRange(0), help="Context of a model; 0: what harness and model allow.")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="The run directory; goes on where it is.")
@click.option(
    "--gate", type=click.FloatRange(0, 1), default=0.01, show_default=True, help="Largest non-model error rate."
)
@click.option(
    "--abort-at",
    type=click.FloatRange(0, 1),
    default=0.20,
    show_default=True,
    help="Share of broken trials to stop at.",
)
@click.option("--against", type=click.Path(path_type=Path), help="An earlier run to pair with; gives the defaults.")
@click.option("--waive", multiple=True, metavar="LIMIT", help="A sandbox limit that may be missing.")
@offered
@judged
def run(
    tasks: Path | None,
    concurrency: int,
    out: Path,
    gate: float,
    abort_at: float,
    against: Path | None,
    waive: tuple[str, ...],
    as_json: bool,
    policy: str | None,
    harness: str | None,
    samples: int | None,
    seed: int | None,
    temperature: float | None,
    context_tokens: int | None,
    mcp: Path | None,
    faults: Path | None,
    **choices: Any,
) -> int:
    """Run every task at or below TASKS at training concurrency, each trial once, and audit what came of it.

    Prints whose fault each failure was, the non-model error rate with its interval, the slowest operations, errors by
    tool and argument shape, context exhaustion, drops, and the top defects with their first trials. Exit code 1 when
    the gate failed, 4 when so many trials broke that it could not be judged. Killed, the same command goes on.
    """
    from journeyman.cli.tasks import task_directories
    from journeyman.ladder.dryrun.command import Wishes, dry_run_of

    given = {
        "policy": policy,
        "harness": harness,
        "samples": samples,
        "seed": seed,
        "temperature": temperature,
        "context_tokens": context_tokens,
        "mcp": str(mcp.absolute()) if mcp else None,
        "faults": str(faults.absolute()) if faults else None,
        **{name: value or None for name, value in choices.items()},
    }
    wishes = Wishes(
        task_directories(tasks) if tasks else (), {k: v for k, v in given.items() if v is not None}, against
    )
    with traceback_kept_in(out):
        done = dry_run_of(
            wishes, out, concurrency=concurrency, gate=gate, abort_at=abort_at, waive=frozenset(waive), say=progress
        )
    if as_json:
        print_json(done.as_json())
    else:
        for line in done.lines():
            click.echo(line)
        click.echo(f"report: {out / 'report.md'}")
    return done.exit_code


@verb(
    "triage",
    "Confirm or change the class of each failure of a dry run.",
    "journeyman dry-run triage runs/dry",
    "journeyman dry-run triage runs/dry --set dry-run/train-0000-00-look/0=verifier",
)
@RUN
@click.option("--set", "said", multiple=True, metavar="TRIAL=CLASS", help="Class of one failure; asks nothing.")
def triage(run: Path, said: tuple[str, ...], as_json: bool) -> int:
    """Go through the failures of RUN that nobody has looked at, and keep what you say of each.

    Return confirms the classifier's class, `skip` leaves a failure open, `quit` ends. What was said before the end is
    kept. Prints how far the classifier agrees with you (percent and Cohen's kappa) and writes the report again.
    """
    from journeyman.errors import InputError
    from journeyman.ladder.dryrun.audit import audit_again
    from journeyman.ladder.dryrun.evidence import read_evidence
    from journeyman.ladder.dryrun.showing import describe
    from journeyman.ladder.dryrun.triage import agreement_line, set_classes
    from journeyman.trials.dryrun import CLASSES

    evidence = read_evidence(run)
    findings = list(evidence.findings.values())
    if said:
        words = dict(word.rpartition("=")[::2] for word in said)
        if "" in words:
            raise InputError("--set", "is no TRIAL=CLASS", allowed=f"TRIAL={'|'.join(CLASSES)}")
        set_classes(run, findings, words)
    elif not as_json:
        for finding in [f for f in findings if f.trial_id not in evidence.triage]:
            click.echo("\n".join(describe(finding)))
            answer = click.prompt("class", default=finding.failure, type=click.Choice([*CLASSES, "skip", "quit"]))
            if answer == "quit":
                break
            if answer != "skip":
                set_classes(run, findings, {finding.trial_id: answer})
    report = audit_again(run)
    if as_json:
        print_json(report["triage"])
    else:
        click.echo(agreement_line(report["triage"]))
        click.echo(f"report: {run / 'report.md'}")
    return 0


@verb(
    "show",
    "Show one trial of a dry run: actions, verdict, and whose fault.",
    "journeyman dry-run show runs/dry dry-run/train-0000-00-look/0",
)
@RUN
@click.argument("trial")
def show(run: Path, trial: str, as_json: bool) -> int:
    """Print what TRIAL of RUN was asked, what it did, how it was graded and what the classifier says."""
    from journeyman.ladder.dryrun.evidence import read_evidence
    from journeyman.ladder.dryrun.showing import show_trial

    evidence = read_evidence(run)
    lines = list(show_trial(evidence, trial))
    if as_json:
        finding = evidence.findings.get(trial)
        print_json({"record": evidence.records[trial], "finding": finding.as_json() if finding else None})
    else:
        click.echo("\n".join(lines))
    return 0


for command in (run, triage, show):
    dry_run.add_command(command)
