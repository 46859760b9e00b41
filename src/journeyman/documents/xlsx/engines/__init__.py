"""Calculation engines behind one shape: a workbook's bytes and the wanted cells in, one result per cell out.

An engine is a module with ``evaluate(data, cells, clock, epoch) -> dict`` and ``knows(function) -> bool``. A result is
(kind, value): ``n`` float, ``s`` text, ``b`` boolean, ``e`` an error as spreadsheets write it, or ``?`` with the reason
where the engine does not support the formula, which is no value.
"""

from __future__ import annotations

import importlib
from types import ModuleType

Result = tuple[str, "float | str | bool"]
Place = tuple[str, int, int]

ENGINES = {"formualizer": "embedded", "ironcalc": "second", "libreoffice": "office"}
"""Name -> module of this folder."""


def engine(name: str) -> ModuleType:
    """The module of an engine. Raises KeyError."""
    return importlib.import_module(f".{ENGINES[name]}", __package__)
