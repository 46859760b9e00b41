"""Entry of the command line: the dict of verbs, and the one place where an error becomes an exit code."""

from __future__ import annotations

import io
import os
import sys
import traceback
from collections.abc import Sequence

import click

from journeyman import __version__
from journeyman.cli.breakdown import Breakdown, missing_extra
from journeyman.cli.capture import capture
from journeyman.cli.config import config
from journeyman.cli.docs import docs
from journeyman.cli.doctor import doctor
from journeyman.cli.dry_run import dry_run
from journeyman.cli.gc import gc
from journeyman.cli.launch import launch
from journeyman.cli.mcp import mcp
from journeyman.cli.overfit import overfit
from journeyman.cli.pack import pack
from journeyman.cli.quickstart import quickstart
from journeyman.cli.regrade import regrade
from journeyman.cli.sandbox import sandbox
from journeyman.cli.sweep import sweep
from journeyman.cli.tasks import tasks
from journeyman.cli.tokens import tokens
from journeyman.cli.train import train
from journeyman.cli.trials import trials
from journeyman.cli.view import view
from journeyman.cli.worlds import worlds
from journeyman.errors import JourneymanError
from journeyman.redact import process_redactor

VERBS: dict[str, click.Command] = {
    "quickstart": quickstart,
    "view": view,
    "capture": capture,
    "worlds": worlds,
    "tasks": tasks,
    "dry-run": dry_run,
    "trials": trials,
    "overfit": overfit,
    "train": train,
    "sweep": sweep,
    "launch": launch,
    "tokens": tokens,
    "docs": docs,
    "mcp": mcp,
    "pack": pack,
    "gc": gc,
    "regrade": regrade,
    "sandbox": sandbox,
    "config": config,
    "doctor": doctor,
}

INTERRUPTED = 130
BROKEN_PIPE = 141  # as a shell reports a process that died of SIGPIPE


class Verbs(click.Group):
    """The verbs in the order of a first visit, not of the alphabet."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


@click.group(cls=Verbs, commands=VERBS, epilog="Each verb explains itself: journeyman VERB --help")
@click.option("--debug", is_flag=True, help="Show tracebacks.")
@click.version_option(__version__, prog_name="journeyman")
@click.pass_context
def cli(ctx: click.Context, debug: bool) -> None:
    """Train agents that finish real work, and prove it.

    \b
    Start:  journeyman quickstart
    """
    ctx.obj = debug


def main(words: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code; nothing is raised.

    Args:
        words: the words after ``journeyman``; None takes them from the process.
    """
    given = list(sys.argv[1:] if words is None else words)
    try:
        code = cli.main(given, prog_name="journeyman", standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as error:
        said = io.StringIO()
        error.show(said)
        click.echo(process_redactor()(said.getvalue()), err=True, nl=False)
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted; what was reported as done is kept", err=True)
        return INTERRUPTED
    except (BrokenPipeError, SystemExit):
        # The reader has left, e.g. `| head`. click makes SystemExit(1) of it, which would read as a failed gate, and
        # Python would complain once more when it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno() if sys.__stdout__ else 1)
        return BROKEN_PIPE
    except Exception as error:
        if "--debug" in given[:1]:
            click.echo(process_redactor()(traceback.format_exc()), err=True, nl=False)
        return _report(error)
    return code if isinstance(code, int) else 0


def _report(error: Exception) -> int:
    if isinstance(error, ImportError):
        error = missing_extra(error) or error
    known = error if isinstance(error, JourneymanError) else Breakdown(error, None)
    click.echo(process_redactor()(str(known)), err=True)
    return known.exit_code


if __name__ == "__main__":
    sys.exit(main())
