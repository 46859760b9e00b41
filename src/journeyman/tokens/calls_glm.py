"""GLM's calls: a name, then ``<arg_key>`` and ``<arg_value>`` pairs; strings are raw text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from journeyman.tokens.calls_hermes import CallDefect, RawCall
from journeyman.tokens.spans import TagStyle
from journeyman.tokens.typed_values import typed_call

_NAME = re.compile(r"\s*([^\s<>]+)\s*")
_KEY = re.compile(r"\s*<arg_key>(.*?)</arg_key>\s*<arg_value>", re.DOTALL)
_CLOSE_VALUE = re.compile(r"</arg_value>(?=\s*(?:<arg_key>|$))")
_NEXT_KEY = re.compile(r"\s*<arg_key>")
_BARE = re.compile(r"([^\s<>]+)\s*(?:<arg_key>[^<]*</arg_key>\s*<arg_value>.*?</arg_value>\s*)+", re.DOTALL)

Schemas = Mapping[str, Mapping[str, Any]]


def read_calls(body: str, closed: bool, schemas: Schemas) -> list[RawCall]:
    """The one call of a ``<tool_call>`` body, its arguments still text.

    Raises:
        CallDefect: bad_json (the body is no call) or duplicate_param.
    """
    name = _NAME.match(body)
    if name is None:
        raise CallDefect("bad_json", "a call begins with the name of its tool")
    arguments: dict[str, str] = {}
    missing, at = "", name.end()
    while key := _KEY.match(body, at):
        if key.group(1) in arguments:
            raise CallDefect("duplicate_param", f'parameter "{key.group(1)}" occurs twice')
        close = _CLOSE_VALUE.search(body, key.end())
        if close is None:
            following = _NEXT_KEY.search(body, key.end())
            if following is None and not closed:
                raise CallDefect("bad_json", "the call ends inside a value")
            end = following.start() if following else len(body.rstrip("\n"))
            arguments[key.group(1)], at, missing = body[key.end() : end], end, "</arg_value>"
        else:
            arguments[key.group(1)], at = body[key.end() : close.start()], close.end()
    if body[at:].strip():
        raise CallDefect("bad_json", f"{name.group(1)}: an argument is an <arg_key> and an <arg_value>")
    return [RawCall(name.group(1), arguments, name.start(1), len(body.rstrip()), bool(missing), missing)]


def bare_calls(text: str, schemas: Schemas) -> list[RawCall]:
    """Calls with arguments that stand in a text without the tags."""
    found: list[RawCall] = []
    for match in _BARE.finditer(text):
        try:
            (call,) = read_calls(match.group().rstrip(), False, schemas)
        except CallDefect:
            continue
        found.append(RawCall(call.name, call.arguments, match.start(), match.start() + call.end, True))
    return found


GLM = TagStyle(read=read_calls, bare=bare_calls, typed=typed_call, foreign="<arg_key>")
