"""Arguments against the schema of a tool: what does not fit is said in words that a policy can act on.

Only the part of JSON schema that ``SURFACE`` and common servers use is looked at: ``type``, ``properties``,
``required``, ``additionalProperties``, ``items``, ``enum``, ``const``, ``oneOf`` told apart by a constant ``type``,
``minItems``, ``minimum`` and ``maximum``. Other keywords hold nothing back.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from journeyman.documents.node import nearest_of

TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list, tuple),
    "object": (Mapping,),
    "null": (type(None),),
}
_SHOWN = 80
"""Characters of a wrong value that a message shows."""

MAX_PROBLEMS = 8
"""Problems that one answer names."""


def fitted(arguments: Any, schema: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Arguments as the tool takes them, and what is wrong with them.

    Nulls for optional arguments are left out, whole floats become integers; nothing else is changed.

    Args:
        arguments: as parsed from the policy's text, of any type.
        schema: of an object.

    Returns:
        (the arguments, problems); the arguments are of use only when there is no problem.
    """
    if not isinstance(arguments, Mapping):
        return {}, [f"the arguments must be an object, got {_kind(arguments)}"]
    problems: list[str] = []
    value = _object(dict(arguments), schema, "", problems)
    return value, problems[:MAX_PROBLEMS]


def _object(value: dict[str, Any], schema: Mapping[str, Any], place: str, problems: list[str]) -> dict[str, Any]:
    properties: Mapping[str, Any] = schema.get("properties") or {}
    required: Sequence[str] = schema.get("required") or ()
    value = {key: one for key, one in value.items() if not (one is None and _is_dropped(key, properties, required))}
    for key in required:
        if key not in value:
            problems.append(f"{_at(place, key)} is missing")
    if schema.get("additionalProperties") is False:
        for key in [key for key in value if key not in properties]:
            near = nearest_of(str(key), [one for one in properties if one not in value] or properties, 1)
            hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(properties) or 'none'}"
            problems.append(f"{_at(place, str(key))} does not exist; {hint}")
    return {
        key: _value(one, properties[key], _at(place, key), problems) if key in properties else one
        for key, one in value.items()
    }


def _is_dropped(key: str, properties: Mapping[str, Any], required: Sequence[str]) -> bool:
    return key in properties and key not in required and "null" not in _types(properties[key])


def _types(schema: Mapping[str, Any]) -> tuple[str, ...]:
    kind = schema.get("type")
    return () if kind is None else (kind,) if isinstance(kind, str) else tuple(kind)


def _value(value: Any, schema: Mapping[str, Any], place: str, problems: list[str]) -> Any:
    types = _types(schema)
    if types and not any(_is(value, kind) for kind in types):
        if "integer" in types and isinstance(value, float) and value.is_integer():
            value = int(value)
        else:
            problems.append(
                f"{place} must be {' or '.join(types)}, got {_kind(value)} {_show(value)}{_hint(value, types)}"
            )
            return value
    if "oneOf" in schema and isinstance(value, Mapping):
        return _alternative(dict(value), schema["oneOf"], place, problems)
    if "enum" in schema and value not in schema["enum"]:
        near = nearest_of(str(value), [str(one) for one in schema["enum"]], 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        problems.append(f"{place} is {_show(value)}; allowed: {', '.join(map(str, schema['enum']))}{hint}")
    if isinstance(value, Mapping) and ("properties" in schema or "required" in schema):
        return _object(dict(value), schema, place, problems)
    if isinstance(value, list | tuple):
        if len(value) < schema.get("minItems", 0):
            problems.append(f"{place} needs at least {schema['minItems']} entry")
        items = schema.get("items")
        if isinstance(items, Mapping):
            return [_value(one, items, f"{place}[{at}]", problems) for at, one in enumerate(value)]
    if isinstance(value, int | float) and not isinstance(value, bool):
        _bounds(value, schema, place, problems)
    return value


def _bounds(value: float, schema: Mapping[str, Any], place: str, problems: list[str]) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        problems.append(f"{place} must be a finite number")
    elif value < schema.get("minimum", -math.inf):
        problems.append(f"{place} is {value}, at least {schema['minimum']} is allowed")
    elif value > schema.get("maximum", math.inf):
        problems.append(f"{place} is {value}, at most {schema['maximum']} is allowed")


def _alternative(
    value: dict[str, Any], alternatives: Sequence[Mapping[str, Any]], place: str, problems: list[str]
) -> Any:
    """The alternative whose constant ``type`` is the value's; alternatives without one hold nothing back."""
    by_type = {one.get("properties", {}).get("type", {}).get("const"): one for one in alternatives}
    if None in by_type:
        return value
    kind = value.get("type")
    if kind in by_type:
        return _object(value, by_type[kind], place, problems)
    near = nearest_of(str(kind), [str(one) for one in by_type], 1)
    hint = f"did you mean {near[0]}?" if near else f"allowed: {', '.join(map(str, by_type))}"
    problems.append(f"{_at(place, 'type')} is {_show(kind)}; {hint}")
    return value


def _is(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, TYPES.get(kind, (object,)))


def _kind(value: Any) -> str:
    return next((kind for kind in TYPES if _is(value, kind)), type(value).__name__)


def _show(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _hint(value: Any, types: Sequence[str]) -> str:
    if isinstance(value, str) and {"array", "object"} & set(types):
        return "; give the JSON value itself, not a text of it"
    if isinstance(value, str) and {"integer", "number"} & set(types):
        return "; without quotation marks"
    return ""


def _at(place: str, key: str) -> str:
    return f"{place}.{key}" if place else key
