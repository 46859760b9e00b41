"""What a company can be: industries, styles and places, and which of them splits keep to themselves.

Test worlds have industries and styles that no training world has, so that a score says something about new offices.
"""

from __future__ import annotations

from typing import Any

from journeyman.worlds.data import pack

HELD_OUT_INDUSTRIES = ("telecom", "laboratory_services")
HELD_OUT_STYLES = ("gazette", "typewriter")


def industries(split: str) -> tuple[str, ...]:
    """Industries that worlds of a split may have: the held-out ones for ``test`` only, the others for the rest."""
    return _of(pack("industries"), HELD_OUT_INDUSTRIES, split)


def styles(split: str) -> tuple[str, ...]:
    """Layout packs that worlds of a split may have."""
    return _of(pack("styles"), HELD_OUT_STYLES, split)


def _of(known: dict[str, Any], held_out: tuple[str, ...], split: str) -> tuple[str, ...]:
    return held_out if split == "test" else tuple(name for name in known if name not in held_out)
