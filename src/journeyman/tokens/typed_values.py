"""Arguments that were written as bare text, typed by the tool's schema and by nothing else."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from journeyman.tokens.calls_hermes import CallDefect, RawCall, read_object

_CONSTANTS = {"true": True, "True": True, "false": False, "False": False, "null": None, "None": None}


def typed_call(raw: RawCall, schemas: Mapping[str, Mapping[str, Any]]) -> RawCall:
    """A call whose argument texts became values. What does not fit its type stays text, for the schema to refuse.

    Strings stay raw; None and null are null where the schema allows it. A value that only lenient reading finds
    ("03" for an integer, a Python literal for an object) marks the call as repaired.
    """
    properties = schemas.get(raw.name, {}).get("properties", {})
    values: dict[str, Any] = {}
    repaired = raw.repaired
    for name, text in raw.arguments.items():
        values[name], lenient = typed_value(text, properties.get(name, {}))
        repaired = repaired or lenient
    return replace(raw, arguments=values, repaired=repaired)


def typed_value(text: str, schema: Mapping[str, Any]) -> tuple[Any, bool]:
    """The value a text stands for, and whether it took lenience to read it. An unknown type is a string."""
    kinds = schema.get("type", "string")
    allowed = [kinds] if isinstance(kinds, str) else list(kinds)
    bare = text.strip()
    if "null" in allowed and bare in ("null", "None"):
        return None, False
    if "string" in allowed or not allowed:
        return text, False
    if bare in _CONSTANTS:
        return _CONSTANTS[bare], False
    try:
        value, end = read_object(bare, 0)
        if end == len(bare):
            return value, False
    except CallDefect:
        pass
    return _lenient(bare, allowed, text)


def _lenient(bare: str, allowed: list[str], text: str) -> tuple[Any, bool]:
    try:
        if "integer" in allowed:
            return int(bare), True
        value = float(bare) if "number" in allowed else ast.literal_eval(bare)
        json.dumps(value, allow_nan=False)
        return value, True
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return text, False
