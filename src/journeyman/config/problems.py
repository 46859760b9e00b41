"""What is wrong with a recipe, in words: one row for each error pydantic found."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from journeyman.config.layers import Leaf, Tree
from journeyman.config.merge import leaves
from journeyman.config.slots import Slot
from journeyman.errors import Problem, nearest

_SHOWN = 60  # characters of a value in a row: enough to recognise it
_LISTED = 12  # allowed keys in a row; more are found with `config schema`


def rows_of(error: ValidationError, root: Slot, data: Mapping[str, Any], tree: Tree) -> list[Problem]:
    """One row per dotted path, in the order of the model; a field whose alternatives all fail has one row."""
    rows: dict[str, Problem] = {}
    for detail in error.errors(include_url=False):
        row = _row(detail, root, data, tree)
        rows.setdefault(row.path, row)
    return list(rows.values())


@dataclass(frozen=True)
class _Place:
    """Where an error is: its dotted path, what may stand there, and the table around it with what that may hold."""

    path: tuple[str, ...]
    slot: Slot | None
    parent: Slot | None
    table: Mapping[str, Any]


def _row(detail: ErrorDetails, root: Slot, data: Mapping[str, Any], tree: Tree) -> Problem:
    place = _walk(detail["loc"], root, data)
    path, slot = place.path, place.slot
    kind, value = detail["type"], detail["input"]
    if kind == "extra_forbidden":
        return _unknown(place, root, tree)
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        tags = list(slot.tags) if slot else []
        found = value.get("type") if isinstance(value, Mapping) else None
        return _choice((*path, "type"), found, tags, tree)
    if kind == "missing":
        expected = f"; expected {words}" if slot and (words := slot.describe()) else ""
        return Problem(".".join(path), "not set", f"is required{expected}")
    if slot is not None and slot.choices and not isinstance(value, Mapping | list):
        return _choice(path, value, slot.choices, tree)
    if kind in ("value_error", "assertion_error"):
        cause = detail.get("ctx", {}).get("error", detail["msg"])
        got = "" if isinstance(value, Mapping | BaseModel) else f"got {_show(value)}; "
        return Problem(".".join(path) or "recipe", _source(path, tree) if path else "all layers", f"{got}{cause}")
    expected = slot.describe() if slot else ""
    message = f"expected {expected}" if expected else detail["msg"]
    return Problem(".".join(path), _source(path, tree), f"got {_show(value)}; {message}")


def _unknown(place: _Place, root: Slot, tree: Tree) -> Problem:
    """A key that is not there: the near name beside it, the union member that has it, or the same name elsewhere."""
    path, dotted, source = place.path, ".".join(place.path), _source(place.path, tree)
    model = place.parent.model(place.table) if place.parent else None
    known = sorted(model.model_fields) if model else []
    if close := nearest(path[-1], known):
        return Problem(dotted, source, "unknown key.", ".".join((*path[:-1], close)))
    tags = place.parent.tags if place.parent else {}
    if owners := [tag for tag, member in tags.items() if path[-1] in member.model_fields]:
        chosen = f"{'.'.join(path[:-1])}.type"
        return Problem(dotted, source, f"unknown key while {chosen} is {place.table.get('type')}; {owners[0]} has it")
    elsewhere = [other for other in _all_paths(root) if other[-1] == path[-1]]
    if len(elsewhere) == 1:
        return Problem(dotted, source, "unknown key.", ".".join(elsewhere[0]))
    listed = ", ".join(known[:_LISTED]) + (", ..." if len(known) > _LISTED else "")
    return Problem(dotted, source, f"unknown key; allowed: {listed}" if known else "unknown key")


def _choice(path: tuple[str, ...], value: Any, allowed: list[Any], tree: Tree) -> Problem:
    words = [str(choice) for choice in allowed]
    close = nearest(value, words) if isinstance(value, str) else None
    got = "is required" if value is None else f"got {_show(value)}"
    source = _source(path, tree) if value is not None else "not set"
    return Problem(".".join(path), source, f"{got}; allowed: {', '.join(words)}" + ("." if close else ""), close)


def _walk(loc: tuple[int | str, ...], root: Slot, data: Mapping[str, Any]) -> _Place:
    """The place a pydantic location means: union tags and type labels in it are no keys."""
    path: list[str] = []
    slot, parent = root, None
    value: Any = data
    table: Mapping[str, Any] = {}
    for part in loc:
        inside = value if isinstance(value, Mapping) else {}
        if isinstance(part, int):
            child = slot.item
            below = value[part] if isinstance(value, list | tuple) and part < len(value) else None
        elif part in slot.tags and inside.get("type") == part:
            continue
        else:
            child, below = slot.child(part, inside), inside.get(part)
            if child is None:
                return (
                    _Place((*path, part), None, slot, inside)
                    if part in inside
                    else _Place(tuple(path), slot, parent, table)
                )
        if child is None:
            break
        path.append(str(part))
        slot, parent, value, table = child, slot, below, inside
    return _Place(tuple(path), slot, parent, table)


def _source(path: tuple[str, ...], tree: Tree) -> str:
    """Where the value at ``path`` was written; for a table, its first written leaf."""
    node: Leaf | Tree | None = tree
    for key in path:
        if not isinstance(node, dict):
            break
        node = node.get(key)
    if isinstance(node, Leaf):
        return node.source.text
    texts = [leaf.source.text for _, leaf in leaves(node)] if isinstance(node, dict) else []
    return next((text for text in texts if text != "default"), texts[0] if texts else "not set")


def _all_paths(slot: Slot, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for model in slot.models:
        for name in model.model_fields:
            yield (*path, name)
            if below := Slot.of(model.model_fields[name].annotation):
                yield from _all_paths(below, (*path, name))


def _show(value: Any) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except ValueError:
        text = str(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."
