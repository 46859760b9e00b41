"""Hermes calls: JSON objects ``{"name": ..., "arguments": {...}}``, compact or spaced, checked against tool schemas."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from journeyman.errors import nearest
from journeyman.tokens.malformed import MalformedKind

_WHITE = " \t\r\n"
_TYPES: dict[str, Callable[[Any], bool]] = {
    "string": lambda v: isinstance(v, str),
    "boolean": lambda v: isinstance(v, bool),
    "integer": lambda v: isinstance(v, int) and not isinstance(v, bool),
    "number": lambda v: isinstance(v, int | float) and not isinstance(v, bool),
    "array": lambda v: isinstance(v, list),
    "object": lambda v: isinstance(v, dict),
    "null": lambda v: v is None,
}


class CallDefect(Exception):
    """A body that yields no executable call; carries its class and what to tell the model."""

    def __init__(self, kind: MalformedKind, detail: str) -> None:
        self.kind, self.detail = kind, detail
        super().__init__(f"{kind}: {detail}")


@dataclass(frozen=True)
class RawCall:
    """A call object as written.

    Attributes:
        name, arguments: as parsed, schema not yet checked.
        start, end: half-open range of characters in the body.
        repaired: something was put right, e.g. arguments that came as a JSON string were opened.
        missing: the closing tag that was missing inside the body, or "".
    """

    name: str
    arguments: dict[str, Any]
    start: int
    end: int
    repaired: bool
    missing: str = ""


def _refuse_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise CallDefect("duplicate_param", f'key "{key}" occurs twice')
        result[key] = value
    return result


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_refuse_duplicates, parse_constant=_refuse_constant)


def read_object(text: str, start: int) -> tuple[Any, int]:
    """One JSON value at ``start`` and the position after it.

    Raises:
        CallDefect: it is no JSON, nests too deep, repeats a key or holds half a surrogate pair.
    """
    try:
        value, end = _DECODER.raw_decode(text, start)
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise CallDefect("bad_json", str(error) or "nested too deep") from error
    return value, end


_BARE_CALL = re.compile(r'\{\s*"(?:name|arguments|parameters)"')


def bare_calls(text: str, keys: Sequence[str] = ("arguments",)) -> list[RawCall]:
    """Call objects that stand in a text without tags; what does not parse is skipped."""
    found: list[RawCall] = []
    at = 0
    while match := _BARE_CALL.search(text, at):
        try:
            value, end = read_object(text, match.start())
            found.append(replace(as_call(value, match.start(), end, keys), repaired=True))
            at = end
        except CallDefect:
            at = match.end()
    return found


def read_calls(body: str) -> list[RawCall]:
    """All call objects of one tag's body, white space between them allowed.

    Raises:
        CallDefect: bad_json or duplicate_param; then none of them is executable.
    """
    calls: list[RawCall] = []
    at = _skip_white(body, 0)
    while at < len(body):
        value, end = read_object(body, at)
        calls.append(as_call(value, at, end))
        at = _skip_white(body, end)
    if not calls:
        raise CallDefect("bad_json", "the call is empty")
    return calls


def _skip_white(text: str, at: int) -> int:
    while at < len(text) and text[at] in _WHITE:
        at += 1
    return at


def as_call(value: Any, start: int, end: int, keys: Sequence[str] = ("arguments",)) -> RawCall:
    """The call an object means; ``keys`` are the names under which its arguments may stand.

    Raises:
        CallDefect: it means none.
    """
    key = next((key for key in keys if isinstance(value, dict) and key in value), None)
    if key is None or not isinstance(value.get("name"), str):
        raise CallDefect("bad_json", f'a call is an object with "name" and "{keys[0]}"')
    arguments, repaired = value[key], False
    if isinstance(arguments, str):
        arguments, after = read_object(arguments, _skip_white(arguments, 0))
        if _skip_white(value[key], after) < len(value[key]):
            raise CallDefect("bad_json", f'"{key}" is a string with more than one JSON value')
        repaired = True
    if not isinstance(arguments, dict):
        raise CallDefect("bad_json", f'"{key}" is not an object')
    return RawCall(value["name"], arguments, start, end, repaired)


def check_schema(name: str, arguments: Mapping[str, Any], schemas: Mapping[str, Mapping[str, Any]]) -> None:
    """Check a call against the offered tools.

    Args:
        name, arguments: the call as parsed.
        schemas: per offered tool the JSON schema of its parameters (type object, with properties and required).

    Raises:
        CallDefect: unknown_tool, missing_param or wrong_type, with the field and what is allowed.
    """
    if name not in schemas:
        near = nearest(name, schemas)
        hint = f". Did you mean {near}?" if near else ""
        raise CallDefect("unknown_tool", f'no tool "{name}"; tools: {", ".join(sorted(schemas))}{hint}')
    properties: Mapping[str, Any] = schemas[name].get("properties", {})
    required: Sequence[str] = schemas[name].get("required", ())
    for field in required:
        if field not in arguments:
            raise CallDefect("missing_param", f'{name} needs "{field}"')
    for field, value in arguments.items():
        if field not in properties:
            if schemas[name].get("additionalProperties", False):
                continue
            raise CallDefect("wrong_type", f'{name} has no parameter "{field}"; parameters: {", ".join(properties)}')
        _check_value(name, field, value, properties[field])


def _check_value(name: str, field: str, value: Any, schema: Mapping[str, Any]) -> None:
    kinds = schema.get("type", [])
    allowed = [kinds] if isinstance(kinds, str) else list(kinds)
    if allowed and not any(_TYPES[kind](value) for kind in allowed):
        raise CallDefect("wrong_type", f'{name}: "{field}" must be {" or ".join(allowed)}, got {json.dumps(value)}')
    if "enum" in schema and value not in schema["enum"]:
        options = ", ".join(map(str, schema["enum"]))
        raise CallDefect("wrong_type", f'{name}: "{field}" must be one of {options}, got {json.dumps(value)}')
