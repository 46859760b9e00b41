"""One layer over another: tables merge, the rest is replaced, a union that changes ``type`` sheds its former keys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from journeyman.config.layers import Leaf, Tree
from journeyman.config.slots import Slot


def merge(lower: Tree, upper: Tree, slot: Slot | None, path: tuple[str, ...], notices: list[str]) -> Tree:
    """``upper`` laid over ``lower``; neither is changed.

    Args:
        slot: what may stand here, so that unions are recognised; None below an unknown key.
        path: where this is, for notices.
        notices: receives one line for each key dropped because its union changed ``type``.
    """
    merged = dict(_shed(lower, upper, slot, path, notices) if slot and slot.tags else lower)
    for key, value in upper.items():
        below = merged.get(key)
        if isinstance(value, dict) and isinstance(below, dict):
            child = slot.child(key, types_of(merged) | types_of(upper)) if slot else None
            merged[key] = merge(below, value, child, (*path, key), notices)
        else:
            merged[key] = value
    return merged


def types_of(tree: Tree) -> dict[str, Any]:
    """The ``type`` key of a table as plain data: all that ``Slot.child`` asks of it."""
    tag = tree.get("type")
    return {"type": tag.value} if isinstance(tag, Leaf) else {}


def leaves(tree: Tree, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Leaf]]:
    """Every leaf below ``tree`` with its path."""
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from leaves(value, (*path, key))
        else:
            yield (*path, key), value


def _shed(lower: Tree, upper: Tree, slot: Slot, path: tuple[str, ...], notices: list[str]) -> Tree:
    """``lower`` without what only its former union member had: defaults silently, written keys with a notice."""
    old, new = types_of(lower).get("type"), types_of(upper).get("type")
    if not isinstance(old, str) or not isinstance(new, str) or old == new or new not in slot.tags:
        return lower
    kept = _written(lower)
    for key in [key for key in kept if key not in slot.tags[new].model_fields]:
        for at, leaf in leaves({key: kept.pop(key)}, path):
            notices.append(f"{'.'.join(at)} ({leaf.source.text}) dropped: {'.'.join(path)} is now {new}")
    return kept


def _written(tree: Tree) -> Tree:
    """The tree without its defaults, which belong to the former member even where names are equal."""
    kept: Tree = {}
    for key, value in tree.items():
        if isinstance(value, dict):
            if below := _written(value):
                kept[key] = below
        elif value.source.kind != "default":
            kept[key] = value
    return kept
