"""Packs of words and numbers that worlds are made from: plain TOML, read once per process."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def pack(name: str) -> dict[str, Any]:
    """The pack of this name, e.g. ``industries``. Raises FileNotFoundError. Treat it as read-only."""
    return tomllib.loads((files(__package__) / f"{name}.toml").read_text(encoding="utf-8"))
