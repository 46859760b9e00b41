"""The error types every room shares, and the exit code each one ends the program with.

Users get ``InputError`` or ``ConfigError`` (exit 2), ``EnvironmentMissing`` (3) or ``GateFailed`` (1). Everything that
breaks outside the model's responsibility is a ``SystemFault`` (4): it carries its row of the error table
(``trials/outcome.py``) as ``cause`` and can never become a reward. Rooms add their own subclasses; code decides by
type, never by text.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar


def nearest(value: str, allowed: Iterable[str]) -> str | None:
    """The allowed word most like ``value`` (difflib ratio >= 0.6), or None."""
    found = difflib.get_close_matches(value, list(allowed), n=1, cutoff=0.6)
    return found[0] if found else None


class JourneymanError(Exception):
    """Base of every error that the command line prints without a traceback."""

    exit_code: ClassVar[int] = 1


class GateFailed(JourneymanError):
    """A run finished and one of its gates did not pass."""

    exit_code = 1


class InputError(JourneymanError):
    """A file, argument or field given by the user cannot be used. Nothing was started or half-written.

    Args:
        where: file path, flag or ``file:field`` that holds the bad value.
        problem: what is wrong, in one clause, with the value that was found.
        allowed: what would be accepted.
        hint: the next command or the nearest match.
    """

    exit_code = 2

    def __init__(self, where: str, problem: str, *, allowed: str | None = None, hint: str | None = None) -> None:
        self.where, self.problem, self.allowed, self.hint = where, problem, allowed, hint
        parts = [f"{where}: {problem}"]
        if allowed:
            parts.append(f"allowed: {allowed}")
        if hint:
            parts.append(hint)
        super().__init__("; ".join(parts))


class StorageError(InputError):
    """A result could not be made durable: unwritable directory, full disk, read-only mount."""


@dataclass(frozen=True)
class Problem:
    """One row of a configuration error panel.

    Attributes:
        path: dotted path of the field, e.g. ``train.optim.lr``.
        source: ``file.toml:14``, a flag, or an environment variable.
        message: value found and what is allowed.
        suggestion: nearest match, or None.
    """

    path: str
    source: str
    message: str
    suggestion: str | None = None


class ConfigError(JourneymanError):
    """All problems of one configuration at once; nothing was started."""

    exit_code = 2

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = problems
        super().__init__(panel(problems))


def panel(problems: list[Problem]) -> str:
    """The error panel as aligned plain text, one row per problem."""
    count = f"{len(problems)} problem{'s' if len(problems) != 1 else ''} in the configuration"
    path_width = max((len(p.path) for p in problems), default=0)
    source_width = max((len(p.source) for p in problems), default=0)
    rows = [
        f"  {p.path:<{path_width}}  {p.source:<{source_width}}  {p.message}"
        + (f" Did you mean {p.suggestion}?" if p.suggestion else "")
        for p in problems
    ]
    return "\n".join([count, *rows])


class EnvironmentMissing(JourneymanError):
    """The machine lacks something: an extra, a sandbox capability, a device. The message says how to get it."""

    exit_code = 3


class SystemFault(JourneymanError):
    """Something outside the policy broke. ``cause`` names the row of the error table; it is never a reward."""

    exit_code = 4
    cause: ClassVar[str] = "unclassified"


class DeadlinePassed(SystemFault):
    """An operation did not end by its deadline.

    Args:
        what: the operation.
        limit_s: seconds it was allowed.
    """

    def __init__(self, what: str, limit_s: float) -> None:
        self.what, self.limit_s = what, limit_s
        super().__init__(f"{what} did not end within {limit_s:g} s")
