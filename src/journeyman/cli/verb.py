"""What every verb shares: help that starts with an example, ``--json`` and ``--quiet``, progress on stderr."""

from __future__ import annotations

import functools
import json
import logging
import sys
from collections.abc import Callable, Sequence
from typing import Any

import click

from journeyman.redact import process_redactor

LOGGER = "journeyman"

#: For verbs that take the words of a recipe: what click does not know is left to ``journeyman.config``.
RECIPE_WORDS = {"ignore_unknown_options": True, "allow_extra_args": True}


class Verb(click.Command):
    """A command whose help shows its examples before anything else."""

    examples: Sequence[str] = ()

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Example" if len(self.examples) == 1 else "Examples"):
            for example in self.examples:
                formatter.write(f"  $ {example}\n")  # never wrapped: it is there to be copied
        super().format_help_text(ctx, formatter)


def verb(
    name: str, summary: str, *examples: str, settings: dict[str, Any] | None = None
) -> Callable[[Callable[..., int]], Verb]:
    """Make a function a verb.

    The function takes its click parameters as keywords, among them ``as_json``, and returns the exit code. What rooms
    log below ``journeyman`` goes to stderr while it runs; ``--quiet`` leaves warnings and errors.

    Args:
        name: the word on the command line.
        summary: one line for the list of verbs.
        examples: command lines, shown first.
        settings: click's context settings, e.g. ``RECIPE_WORDS``.
    """

    def wrap(function: Callable[..., int]) -> Verb:
        @functools.wraps(function)
        def run(*args: Any, quiet: bool, **parameters: Any) -> int:
            show_progress(quiet=quiet)
            return function(*args, **parameters)

        command = click.command(name, cls=Verb, short_help=summary, context_settings=settings)(run)
        command.examples = examples
        command.params += [
            click.Option(["as_json", "--json"], is_flag=True, help="One JSON document on stdout and nothing else."),
            click.Option(["--quiet"], is_flag=True, help="No progress; warnings and errors only."),
        ]
        return command

    return wrap


class Redacted(logging.Formatter):
    """Plain lines without the secrets that this process holds."""

    def format(self, record: logging.LogRecord) -> str:
        return process_redactor()(super().format(record))


def show_progress(*, quiet: bool) -> None:
    """Send what the rooms log to stderr, one plain line each."""
    logger = logging.getLogger(LOGGER)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Redacted())
    logger.handlers = [handler]
    logger.setLevel(logging.WARNING if quiet else logging.INFO)
    logger.propagate = False


def progress(text: str) -> None:
    """A line that says what is being done; ``--quiet`` hides it."""
    logging.getLogger(LOGGER).info("%s", text)


def warn(text: str) -> None:
    """A line on stderr that ``--quiet`` does not hide: a problem found, a key dropped."""
    logging.getLogger(LOGGER).warning("%s", text)


def print_json(document: Any) -> None:
    """The one JSON document of a ``--json`` run, without the secrets that this process holds."""
    click.echo(process_redactor()(json.dumps(document, indent=1, ensure_ascii=False, default=str)))
