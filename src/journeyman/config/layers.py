"""What the user wrote: files, environment and flags as trees whose leaves remember where they came from.

A tree maps keys to trees or leaves. Nothing is converted here: a flag's leaf still holds the text of the command line.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel

from journeyman.config.lines import key_lines, line_of
from journeyman.config.slots import Slot
from journeyman.errors import Problem, nearest

ENV_PREFIX = "JOURNEYMAN_"
#: Variables with the prefix that are no recipe: they describe the machine, and no result may depend on them.
MACHINE_VARIABLES = frozenset({"JOURNEYMAN_BWRAP"})
_FLAG = re.compile(r"--[A-Za-z]")


@dataclass(frozen=True)
class Source:
    """Where a leaf came from. ``base`` is the directory that a file's relative paths start at."""

    kind: Literal["default", "file", "env", "flag"]
    text: str
    base: Path | None = None


@dataclass(frozen=True)
class Leaf:
    """A value as it was written. ``is_bare`` marks a flag that was given no value."""

    value: Any
    source: Source
    is_bare: bool = False


Tree = dict[str, "Leaf | Tree"]
DEFAULT = Source("default", "default")


@dataclass
class Given:
    """The words of a command line, read: one tree per file, one for all flags, and what could not be read."""

    files: list[Tree] = field(default_factory=list)
    flags: Tree = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    unreadable: bool = False


def default_tree(model_class: type[BaseModel]) -> Tree:
    """The defaults of a model, section by section; required fields are absent."""
    tree: Tree = {}
    for name, info in model_class.model_fields.items():
        if info.is_required():
            models = Slot.of(info.annotation).models
            if len(models) == 1:
                tree[name] = default_tree(models[0])
        elif not info.default_factory_takes_validated_data:
            tree[name] = _default(info.get_default(call_default_factory=True))
    return tree


def _default(value: Any) -> Leaf | Tree:
    if isinstance(value, BaseModel):
        return {name: _default(getattr(value, name)) for name in type(value).model_fields}
    if isinstance(value, dict) and value:
        return {str(key): _default(entry) for key, entry in value.items()}
    return Leaf(value, DEFAULT)


def read_file(path: Path) -> Tree:
    """A TOML file as a tree; its leaves know their line. OSError and ``tomllib.TOMLDecodeError`` pass through."""
    text = path.read_text(encoding="utf-8")
    lines = key_lines(text)

    def grow(value: Any, at: tuple[str, ...]) -> Leaf | Tree:
        if isinstance(value, dict) and value:
            return {key: grow(entry, (*at, key)) for key, entry in value.items()}
        line = line_of(at, lines)
        return Leaf(value, Source("file", f"{path}:{line}" if line else str(path), path.parent))

    return {key: grow(value, (key,)) for key, value in tomllib.loads(text).items()}


def env_tree(env: Mapping[str, str]) -> Tree:
    """Variables ``JOURNEYMAN_A__B`` as a tree; the key of a free table keeps no capital letters."""
    tree: Tree = {}
    for name in sorted(env):
        if name.startswith(ENV_PREFIX) and name != ENV_PREFIX and name not in MACHINE_VARIABLES:
            path = tuple(name[len(ENV_PREFIX) :].lower().split("__"))
            _put(tree, path, Leaf(env[name], Source("env", name)))
    return tree


def read_tokens(tokens: Sequence[str], root: Slot) -> Given:
    """Read the words after a verb: ``@ file``, ``--a.b value``, ``--a.b=value``, ``--flag``, ``--no-flag``."""
    given = Given()
    rest = list(tokens)
    while rest:
        word = rest.pop(0)
        if word == "@" and (not rest or _FLAG.match(rest[0])):
            given.problems.append(Problem("@", "command line", "a file name must follow"))
        elif word.startswith("@"):
            _add_file(given, Path(word[1:] or rest.pop(0)))
        elif _FLAG.match(word):
            _add_flag(given, word, rest, root)
        else:
            hint = f"@ {word}" if word.endswith(".toml") else None
            given.problems.append(Problem(word, "command line", "unexpected word.", hint))
    return given


def _add_file(given: Given, path: Path) -> None:
    try:
        given.files.append(read_file(path))
        return
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"\(at line (\d+), column \d+\)", str(error))
        where = f"{path}:{found.group(1)}" if found else str(path)
        given.problems.append(Problem("TOML syntax", where, str(error)))
    except UnicodeDecodeError:
        given.problems.append(Problem("TOML syntax", str(path), "is not UTF-8 text"))
    except OSError as error:
        message, suggestion = f"cannot be read: {error.strerror or error}", None
        if isinstance(error, FileNotFoundError):
            beside = [str(other) for other in path.parent.glob("*.toml")] if path.parent.is_dir() else []
            suggestion = nearest(str(path), beside)
            message = "no such file." if suggestion else "no such file"
        given.problems.append(Problem("recipe file", str(path), message, suggestion))
    given.unreadable = True


def _add_flag(given: Given, word: str, rest: list[str], root: Slot) -> None:
    name, equals, value = word[2:].partition("=")
    path = _field_path(name, root)
    flag = Source("flag", f"--{name}")
    negated = None if _is_field(path, root) else _negated(name, root)
    if negated:
        if equals:
            given.problems.append(Problem(".".join(negated), flag.text, f'takes no value, got "{value}"'))
        else:
            _put(given.flags, negated, Leaf("false", flag, is_bare=True))
    elif equals:
        _put(given.flags, path, Leaf(value, flag))
    elif not rest or rest[0].startswith("@") or _FLAG.match(rest[0]):
        _put(given.flags, path, Leaf("true", flag, is_bare=True))
    else:
        _put(given.flags, path, Leaf(rest.pop(0), flag))


def _field_path(name: str, root: Slot) -> tuple[str, ...]:
    """Kebab-case words as field names; the keys of a free table stay as written."""
    slot: Slot | None = root
    path: list[str] = []
    for part in name.split("."):
        is_free = slot is not None and slot.entry is not None and not slot.models
        key = part if is_free else part.replace("-", "_")
        path.append(key)
        slot = slot.any_child(key) if slot else None
    return tuple(path)


def _is_field(path: tuple[str, ...], root: Slot) -> bool:
    slot: Slot | None = root
    for key in path:
        slot = slot.any_child(key) if slot else None
    return slot is not None


def _negated(name: str, root: Slot) -> tuple[str, ...] | None:
    """The field that ``--no-a.b`` or ``--a.no-b`` switches off, or None."""
    head, _, last = name.rpartition(".")
    candidates = [name.removeprefix("no-")] if name.startswith("no-") else []
    if head and last.startswith("no-"):
        candidates.append(f"{head}.{last.removeprefix('no-')}")
    for candidate in candidates:
        path = _field_path(candidate, root)
        if _is_field(path, root):
            return path
    return None


def _put(tree: Tree, path: tuple[str, ...], leaf: Leaf) -> None:
    for key in path[:-1]:
        below = tree.get(key)
        if not isinstance(below, dict):
            below = tree[key] = {}
        tree = below
    tree[path[-1]] = leaf
