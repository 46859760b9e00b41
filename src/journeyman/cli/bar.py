"""A progress bar on stderr, on a terminal only; elsewhere the steps are lines of the log, which ``--quiet`` hides."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import click

from journeyman.cli.verb import progress


@contextmanager
def bar(what: str) -> Iterator[Callable[[int, int, str], None]]:
    """A function that is told (done, total, what was done).

    Args:
        what: word for what is counted.
    """
    with ExitStack() as stack:
        shown: list[Any] = []

        def step(done: int, total: int, said: str) -> None:
            if not sys.stderr.isatty():
                if said:
                    progress(f"{done} of {total} {what}: {said}")
                return
            if not shown:
                made = click.progressbar(length=total, label=what, file=sys.stderr, show_pos=True)
                shown.append(stack.enter_context(made))
            shown[0].update(done - shown[0].pos)

        yield step
