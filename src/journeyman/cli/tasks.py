"""``journeyman tasks check``: can these task directories be used?"""

from __future__ import annotations

from pathlib import Path

import click

from journeyman.cli.verb import print_json, verb, warn


@click.group(short_help="Check task directories.")
def tasks() -> None:
    """Work with task directories (the Harbor layout).

    \b
    Example:  journeyman tasks check tasks/train
    """


@verb("check", "Check task directories: every problem at once.", "journeyman tasks check tasks/train")
@click.argument("directory", type=click.Path(path_type=Path))
def check(directory: Path, as_json: bool) -> int:
    """Read every task directory at or below DIRECTORY and print all problems. Exit code 2 when there is one."""
    from journeyman.errors import InputError
    from journeyman.tasks.task import load_task

    problems: dict[str, str] = {}
    warnings: dict[str, list[str]] = {}
    found = task_directories(directory)
    for path in found:
        try:
            warnings[str(path)] = list(load_task(path).warnings)
        except InputError as error:
            problems[str(path)] = str(error)
    for name, lines in warnings.items():
        for line in lines:
            warn(f"{name}: {line}")
    for text in problems.values():
        warn(text)
    if as_json:
        given = {name: lines for name, lines in warnings.items() if lines}
        print_json({"tasks": len(found), "problems": problems, "warnings": given})
    else:
        click.echo(f"{len(found)} tasks, {len(problems)} with problems: {directory}")
    return InputError.exit_code if problems else 0


def task_directories(directory: Path) -> list[Path]:
    """``directory`` itself when it is a task, else its sub-directories, sorted.

    Raises:
        InputError: it is no directory, or holds nothing that could be a task.
    """
    from journeyman.errors import InputError

    if not directory.is_dir():
        raise InputError(str(directory), "is not a directory", allowed="a task directory or a directory of them")
    if (directory / "task.toml").exists() or (directory / "instruction.md").exists():
        return [directory]
    found = sorted(path for path in directory.iterdir() if path.is_dir() and not path.name.startswith("."))
    if not found:
        raise InputError(str(directory), "holds no task directory", hint="make some: journeyman worlds build")
    return found


tasks.add_command(check)
