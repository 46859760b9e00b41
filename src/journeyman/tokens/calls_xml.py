"""Qwen's XML calls: ``<function=NAME>`` with ``<parameter=KEY>`` values that are raw text, closing tags included."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from journeyman.tokens.calls_hermes import CallDefect, RawCall
from journeyman.tokens.spans import TagStyle
from journeyman.tokens.typed_values import typed_call

_FUNCTION = re.compile(r"<function=([^>\n]*)>")
_PARAMETER = re.compile(r"<parameter=([^>\n]*)>")
_PARAMETER_LINE = re.compile(r"\n<parameter=([^>\n]*)>")
_CLOSE_VALUE = re.compile(r"</parameter>(?=\s*(?:<parameter=|</function>|<function=|$))")
_END_FUNCTION = "</function>"
_WHITE = re.compile(r"\s*")

Schemas = Mapping[str, Mapping[str, Any]]


def read_calls(body: str, closed: bool, schemas: Schemas) -> list[RawCall]:
    """The calls of one ``<tool_call>`` body, their arguments still text.

    Args:
        body: between the tags.
        closed: ``</tool_call>`` is there; then a missing inner closing tag is repaired.
        schemas: their parameter names tell a missing ``</parameter>`` from a value that spells a tag.

    Raises:
        CallDefect: bad_json (the body is no call) or duplicate_param; then none of them is executable.
    """
    calls: list[RawCall] = []
    at = _skip(body, 0)
    while at < len(body):
        call = _read_function(body, at, closed, schemas)
        calls.append(call)
        at = _skip(body, call.end)
    if not calls:
        raise CallDefect("bad_json", "the call is empty")
    return calls


def bare_calls(text: str, schemas: Schemas) -> list[RawCall]:
    """Complete functions that stand in a text without the tags."""
    found: list[RawCall] = []
    at = 0
    while match := _FUNCTION.search(text, at):
        try:
            found.append(_read_function(text, match.start(), False, schemas))
            at = found[-1].end
        except CallDefect:
            at = match.end()
    return found


def _skip(text: str, at: int) -> int:
    match = _WHITE.match(text, at)
    return match.end() if match else at


def _read_function(body: str, at: int, closed: bool, schemas: Schemas) -> RawCall:
    head = _FUNCTION.match(body, at)
    if head is None or not head.group(1).strip():
        raise CallDefect("bad_json", "a call begins with <function=NAME>")
    name = head.group(1).strip()
    known = schemas.get(name, {}).get("properties", {})
    arguments: dict[str, str] = {}
    missing, start = "", at
    at = _skip(body, head.end())
    while not body.startswith(_END_FUNCTION, at):
        parameter = _PARAMETER.match(body, at)
        if parameter is None:
            if not closed or (at < len(body) and not _FUNCTION.match(body, at)):
                raise CallDefect("bad_json", f"{name}: a parameter is written <parameter=NAME>VALUE</parameter>")
            return RawCall(name, arguments, start, at, True, _END_FUNCTION)
        key = parameter.group(1).strip()
        if key in arguments:
            raise CallDefect("duplicate_param", f'parameter "{key}" occurs twice')
        value, at, lacks = _read_value(body, parameter.end(), known, {*arguments, key}, closed)
        arguments[key], missing = value, lacks or missing
        at = _skip(body, at)
    return RawCall(name, arguments, start, at + len(_END_FUNCTION), bool(missing), missing)


def _read_value(
    body: str, start: int, known: Collection[str], seen: Collection[str], closed: bool
) -> tuple[str, int, str]:
    """(value, position after it, the tag it lacks or "")."""
    close = _CLOSE_VALUE.search(body, start)
    limit = close.start() if close else len(body)
    for line in _PARAMETER_LINE.finditer(body, start, limit):
        if line.group(1).strip() in known and line.group(1).strip() not in seen:
            return _inner(body[start : line.start()]), line.start() + 1, "</parameter>"
    if close:
        return _inner(body[start : close.start()]), close.end(), ""
    end = body.find(_END_FUNCTION, start)
    if end < 0 and not closed:
        raise CallDefect("bad_json", "the call ends inside a parameter")
    end = len(body) if end < 0 else end
    return _inner(body[start:end]), end, "</parameter>"


def _inner(value: str) -> str:
    """A value without the one line break that the format puts on either side."""
    return value.removeprefix("\n").removesuffix("\n")


XML = TagStyle(read=read_calls, bare=bare_calls, typed=typed_call, foreign="<function=")
