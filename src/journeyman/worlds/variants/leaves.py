"""The single values of an answer: where they stand, and answers with one of them changed."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

Path = tuple[str | int, ...]


def leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every value that is no object and no list, in order."""
    if isinstance(value, dict):
        for key in value:
            yield from leaves(value[key], (*path, key))
    elif isinstance(value, list | tuple):
        for index, one in enumerate(value):
            yield from leaves(one, (*path, index))
    else:
        yield path, value


def lists(value: Any, path: Path = ()) -> Iterator[tuple[Path, list[Any]]]:
    """Every list, outer ones first."""
    if isinstance(value, list):
        yield path, value
    if isinstance(value, dict | list):
        for key, one in value.items() if isinstance(value, dict) else enumerate(value):
            yield from lists(one, (*path, key))


def at(value: Any, path: Path) -> Any:
    """What stands at a path."""
    for key in path:
        value = value[key]
    return value


def changed(value: Any, path: Path, new: Any) -> Any:
    """A copy with another value at a path."""
    made = copy.deepcopy(value)
    if not path:
        return new
    at(made, path[:-1])[path[-1]] = new
    return made


def mapped(value: Any, change: Callable[[Path, Any], Any], path: Path = ()) -> Any:
    """A copy with every single value replaced by what ``change`` makes of it."""
    if isinstance(value, dict):
        return {key: mapped(one, change, (*path, key)) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [mapped(one, change, (*path, index)) for index, one in enumerate(value)]
    return change(path, value)


def is_number(value: Any) -> bool:
    """Whether a value is a number and not a truth value."""
    return isinstance(value, int | float) and not isinstance(value, bool)
