"""The options that several verbs share: what a policy is offered besides its harness's tools, and who judges."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

Function = Callable[..., Any]


def offered(function: Function) -> Function:
    """Adds ``--mcp``, ``--faults`` and ``--task-servers``."""
    options = (
        click.option(
            "--mcp", type=click.Path(path_type=Path), metavar="FILE", help="Tool servers: an mcpServers configuration."
        ),
        click.option(
            "--faults",
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="Faults to inject: an injected_errors.json.",
        ),
        click.option(
            "--task-servers",
            "task_servers",
            is_flag=True,
            help="Start the tool servers that tasks name: their programs run outside any sandbox.",
        ),
    )
    return _with(function, options)


def judged(function: Function) -> Function:
    """Adds ``--judge`` and ``--judge-key``."""
    options = (
        click.option(
            "--judge", default="", metavar="openai:URL#NAME", help="Who answers the criteria of rubric tasks."
        ),
        click.option(
            "--judge-key",
            "judge_keys",
            multiple=True,
            metavar="VARIABLE",
            help="Environment variable with a key of the judge; may be repeated.  [default: OPENAI_API_KEY, if set]",
        ),
    )
    return _with(function, options)


def _with(function: Function, options: tuple[Callable[[Function], Function], ...]) -> Function:
    for option in reversed(options):
        function = option(function)
    return function
