"""The parts of a task directory, each read with all its problems collected instead of raised one at a time."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from journeyman.errors import InputError, Problem, nearest
from journeyman.tasks.task_toml import TaskToml, unknown_keys
from journeyman.tasks.toml_text import line_of


def read_config(path: Path, problems: list[Problem]) -> tuple[TaskToml | None, dict[str, Any], tuple[str, ...]]:
    """``task.toml`` as model and as raw tables, with a warning per unknown key; what is wrong goes to ``problems``."""
    try:
        text = path.read_bytes().decode("utf-8")
        raw = tomllib.loads(text)
    except FileNotFoundError:
        problems.append(Problem("task.toml", "task.toml", "this file is missing"))
    except (UnicodeDecodeError, OSError) as error:
        problems.append(Problem("task.toml", "task.toml", f"cannot be read: {error}"))
    except tomllib.TOMLDecodeError as error:
        problems.append(Problem("task.toml", "task.toml", f"is not TOML: {error}"))
    else:
        return _validated(text, raw, problems)
    return None, {}, ()


def _validated(
    text: str, raw: dict[str, Any], problems: list[Problem]
) -> tuple[TaskToml | None, dict[str, Any], tuple[str, ...]]:
    try:
        config = TaskToml.model_validate(raw)
    except ValidationError as error:
        for row in error.errors(include_url=False):
            problems.append(_problem(text, row))
        return None, raw, ()
    warnings = []
    for key, allowed in unknown_keys(config):
        near = nearest(key.rpartition(".")[2], allowed)
        hint = f" Did you mean {near}?" if near else ""
        warnings.append(f"{_place(text, tuple(key.split('.')))}: unknown key {key} is ignored.{hint}")
    return config, raw, tuple(warnings)


def _problem(text: str, row: Any) -> Problem:
    """One pydantic error as a row of the panel: the value found and what is allowed."""
    location = tuple(part for part in row["loc"] if isinstance(part, int) or part.isidentifier())
    message = row["msg"].removeprefix("Value error, ")
    if row["type"] != "missing" and not isinstance(row["input"], dict | list):
        message = f"got {row['input']!r}; {message[0].lower()}{message[1:]}"
    suggestion = None
    if row["type"] == "literal_error" and isinstance(row["input"], str):
        suggestion = nearest(row["input"], re.findall(r"'([^']*)'", row["ctx"]["expected"]))
    return Problem(".".join(map(str, location)), _place(text, location), message, suggestion)


def _place(text: str, location: tuple[str | int, ...]) -> str:
    line = line_of(text, location)
    return "task.toml" if line is None else f"task.toml:{line}"


def read_instruction(path: Path, problems: list[Problem], name: str = "instruction.md") -> str:
    """Text of an ``instruction.md`` called ``name``; what is wrong goes to ``problems``."""
    try:
        text = path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        problems.append(Problem("instruction", name, "this file is missing"))
        return ""
    except (UnicodeDecodeError, OSError) as error:
        problems.append(Problem("instruction", name, f"cannot be read: {error}"))
        return ""
    if not text.strip():
        problems.append(Problem("instruction", name, "is empty; allowed: the text the policy is given"))
    return text


def prior_context(path: Path, problems: list[Problem], name: str = "trajectory.json") -> None:
    """Check the ATIF trajectory that a task may ship as prior context; what is wrong goes to ``problems``."""
    if path.exists():
        from journeyman.tasks.atif import parse_atif

        try:
            parse_atif(path.read_bytes(), name)
        except (InputError, OSError) as error:
            problems.append(Problem("trajectory", name, str(error).removeprefix(f"{name}: ")))


def verifier_script(directory: Path, config: TaskToml | None) -> Path:
    """Where the verifier's script lies below ``directory``: ``tests/test.sh``, or ``.bat`` for Windows."""
    is_windows = config is not None and (config.verifier.environment or config.environment).os == "windows"
    return directory / "tests" / ("test.bat" if is_windows else "test.sh")


def leaving_links(directory: Path) -> list[Problem]:
    """A problem for each link whose target lies outside the task directory."""
    root = directory.resolve()
    return [
        Problem("files", os.path.relpath(link, directory), "is a link that leaves the task directory")
        for link in _links(directory)
        if not Path(link).resolve().is_relative_to(root)
    ]


def _links(directory: str | os.PathLike[str]) -> Iterator[str]:
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.is_symlink():
                yield entry.path
            elif entry.is_dir(follow_symlinks=False):
                yield from _links(entry.path)
