"""``journeyman tokens``: what was sampled, token by token, and what keeping text instead would have cost."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from journeyman.cli.agree import agree
from journeyman.cli.verb import print_json, verb

if TYPE_CHECKING:
    from journeyman.tokens.audit import AuditReport
    from journeyman.tokens.model_audit import ModelAudit
    from journeyman.tokens.tokenizer import Tokenizer

SHOWN = 5
"""Changed turns that are printed."""
COLOURS = {"sampled": "green", "forced": "red", "prompt": "blue", "demonstration": "magenta"}


@click.group(short_help="Look at tokens, and check how they are written.")
def tokens() -> None:
    """Tokens as the truth of every conversation.

    \b
    Example:  journeyman tokens audit runs/quickstart
    """


@verb(
    "audit",
    "What re-tokenising would have changed; is a renderer right for a model.",
    "journeyman tokens audit runs/quickstart",
    "journeyman tokens audit --model models/qwen3",
)
@click.argument("run", required=False)
@click.option(
    "--model", type=click.Path(path_type=Path), help="A model directory: check its renderer instead of a run."
)
@click.option("--family", help="The renderer to check, when the chat template of --model is not recognised.")
@click.option("--tokenizer", type=click.Path(path_type=Path), help="Directory of the run's tokenizer, if not in RUN.")
def audit(run: str | None, model: Path | None, family: str | None, tokenizer: Path | None, as_json: bool) -> int:
    """Read every trial stored in RUN (a directory or a URL), or the tokenizer and the chat template of a model.

    Nothing is modified. Exit code 1 when a comparison of --model differs.
    """
    from journeyman.errors import InputError

    if (run is None) == (model is None):
        raise InputError("tokens audit", "needs a run directory or --model DIR", hint="one of the two")
    if model is not None:
        from journeyman.tokens.model_audit import audit_model

        return _show_model(audit_model(model, family), as_json)
    from journeyman.tokens.audit import retokenised
    from journeyman.trials.store import open_run

    assert run is not None
    vocabulary = _tokenizer(run, tokenizer)
    with open_run(run) as stored:
        keys = [row.key for row in stored.trials()]
        report = retokenised(((stored.trajectory(key), stored.segments(key)) for key in keys), vocabulary)
    return _show_audit(report, keys, vocabulary, run, as_json)


@verb("show", "Print one trial token by token.", "journeyman tokens show train/0/0 --run runs/quickstart")
@click.argument("trial")
@click.option("--run", default=".", help="The run, a directory or a URL (default: here).")
@click.option("--attempt", type=int, help="Which attempt; the last one by default.")
@click.option("--tokenizer", type=click.Path(path_type=Path), help="Directory of the run's tokenizer, if not in --run.")
def show(trial: str, run: str, attempt: int | None, tokenizer: Path | None, as_json: bool) -> int:
    """Print every token of TRIAL (its id or its key): source, mask, logprob, weight version, text."""
    from journeyman.tokens.listing import token_lines
    from journeyman.trials.store import open_run

    vocabulary = _tokenizer(run, tokenizer)
    with open_run(run) as stored:
        row = stored.row(trial, attempt=attempt)
        lines = list(token_lines(stored.trajectory(row.key), vocabulary))
    if as_json:
        print_json({"trial": row.key, "place": row.place, "tokens": [dataclasses.asdict(line) for line in lines]})
        return 0
    click.echo(f"{'at':>6} {'turn':>4} {'source':<13} {'mask':>4} {'logprob':>9} {'version':>7} {'id':>7}  text")
    for line in lines:
        logprob = "" if line.logprob is None else f"{line.logprob:.4f}"
        version = "" if line.version is None else str(line.version)
        text = (
            f"{line.at:>6} {line.turn:>4} {line.source:<13} {int(line.mask):>4} {logprob:>9} {version:>7} {line.id:>7}"
            f"  {line.text}"
        )
        click.secho(text, fg=COLOURS.get(line.source) if sys.stdout.isatty() else None)
    click.echo(f"{len(lines)} tokens, {sum(line.mask for line in lines)} trained on: {row.key} in {run}, {row.place}")
    return 0


def _tokenizer(run: str, given: Path | None) -> Tokenizer:
    from journeyman.errors import InputError
    from journeyman.tokens.tokenizer import Tokenizer

    for path in [given] if given else [Path(run, "tokenizer"), Path(run)]:
        if given or (path / "tokenizer.json").is_file():
            return Tokenizer(path)
    if "://" not in run and not Path(run).is_dir():
        raise InputError(run, "is not a directory", allowed="a run directory or a URL of one")
    raise InputError(run, "holds no tokenizer", hint="say where it lies: --tokenizer DIR")


def _show_audit(report: AuditReport, keys: list[str], vocabulary: Tokenizer, run: str, as_json: bool) -> int:
    growth = report.growth
    if as_json:
        document: dict[str, Any] = dataclasses.asdict(report)
        document["changed"] = [{**c, "trial": keys[c["context"]]} for c in document["changed"]]
        shares = {"changed_share": report.changed_share, "fork_share": report.fork_share}
        print_json({**document, **shares, "repeated": growth.repeated})
        return 0
    rows = [
        ("trials", f"{report.contexts}", f"{report.turns} sampled turns, {report.tokens} sampled tokens"),
        ("changed turns", f"{len(report.changed)}", f"{report.changed_share:.2%} of turns, had text been kept"),
        ("moved seams", f"{report.seams}", "turns whose first token would have merged with the prompt's last"),
        ("forks avoided", f"{report.would_fork}", f"{report.fork_share:.2%} of trials would have broken in two rows"),
        ("forks", f"{report.forks}", "segments after the first: contexts continued from another place"),
        ("forced ends", f"{report.forced_turns}", f"{report.forced_tokens} tokens inserted at boundaries, mask 0"),
        ("prompt growth", f"{growth.repeated:.1f}x", f"{growth.sent} prompt tokens in {growth.calls} calls, "
         f"{growth.stored} stored, longest {growth.longest}"),
    ]  # fmt: skip
    for name, figure, meaning in rows:
        click.echo(f"{name:<14} {figure:>9}  {meaning}")
    for item in report.changed[:SHOWN]:
        was, would = (vocabulary.decode(ids[item.at : item.at + 3]) for ids in (item.sampled, item.retokenised))
        click.echo(
            f"  {keys[item.context]} turn {item.turn} token {item.at}: sampled "
            f"{list(item.sampled[item.at : item.at + 3])} {json.dumps(was, ensure_ascii=False)}, would be "
            f"{list(item.retokenised[item.at : item.at + 3])} {json.dumps(would, ensure_ascii=False)}"
        )
    click.echo(f"audited {report.contexts} trials: {run}")
    return 0


def _show_model(found: ModelAudit, as_json: bool) -> int:
    from journeyman.errors import GateFailed

    code = GateFailed.exit_code if any(check.verdict == "differs" for check in found.checks) else 0
    if as_json:
        print_json({**dataclasses.asdict(found), "ids_verified": found.ids_verified})
        return code
    click.echo(f"family {found.family}")
    for check in found.checks:
        click.echo(f"{check.verdict:<11}  {check.name:<40}  {check.detail}")
    for stated in found.dates:
        told = "the trial's clock decides" if stated.kind == "wall clock" else "put the trial's date in the system turn"
        click.echo(f"{stated.kind:<11}  date in the template, line {stated.line}: {stated.text}; {told}")
    for text in found.deviations:
        click.echo(f"known        {text}")
    click.echo(f"{'ids verified' if found.ids_verified else 'ids unverified'}: {found.directory}")
    return code


tokens.add_command(agree)
tokens.add_command(audit)
tokens.add_command(show)
