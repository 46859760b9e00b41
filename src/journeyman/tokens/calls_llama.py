"""Llama 3's calls: the turn itself is the JSON object ``{"name": ..., "parameters": {...}}``, without tags."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from journeyman.tokens.calls_hermes import CallDefect, as_call, bare_calls, read_object
from journeyman.tokens.malformed import ParsedTurn
from journeyman.tokens.spans import Reading, Think, place_in
from journeyman.tokens.turn import Bytes, Turn

PYTHON_TAG = "<|python_tag|>"
_KEYS = ("parameters", "arguments")
_JOINT = re.compile(r"[\s;]*")
_LOOKS_LIKE_A_CALL = re.compile(r'\{\s*"?(?:name|parameters|arguments|type|function)\b')

Schemas = Mapping[str, Mapping[str, Any]]


def parse_llama(turn: Turn, schemas: Schemas, truncated: bool, think: Think, opened: bool) -> ParsedTurn:
    """Read one turn. Total: any ids give an answer.

    Args:
        turn: the turn.
        schemas: per offered tool the JSON schema of its parameters.
        truncated: sampling stopped at its length limit.
        think, opened: as for tagged styles; this family has no thinking of its own.
    """
    reading = Reading(turn, schemas, truncated, think, opened, lambda raw, _: raw)
    tags = turn.tag(PYTHON_TAG)
    begin = tags[0][1] if tags else 0
    text = turn.text(begin, len(turn.raw))
    lead = len(text) - len(text.lstrip())
    if not tags and not _LOOKS_LIKE_A_CALL.match(text, lead):
        return _without_call(reading, text)
    at, taken = _read_objects(reading, text, begin, lead)
    head = [(tags[0][0], begin)] if tags else []
    if taken:
        reading.note_text_after(at)
    return reading.result([*head, *taken])


def _read_objects(reading: Reading, text: str, begin: int, at: int) -> tuple[int, list[Bytes]]:
    """Read call objects from ``at`` on; returns the byte where they end and the bytes they take."""
    turn, taken = reading.turn, list[Bytes]()
    found = []
    while at < len(text) and text[at] == "{":
        try:
            value, end = read_object(text, at)
            found.append(as_call(value, at, end, _KEYS))
        except CallDefect as defect:
            place = (begin + len(text[:at].encode("utf-8", "surrogateescape")), len(turn.raw))
            incomplete = not text.rstrip().endswith("}") and defect.kind == "bad_json"
            if reading.truncated and not turn.stopped:
                reading.note("truncated_by_length", place, "the turn was cut inside a call")
            else:
                reading.note("unclosed" if incomplete else defect.kind, place, defect.detail)
            return len(turn.raw), [*taken, place]
        taken.append(place_in(text, begin, found[-1]))
        joint = _JOINT.match(text, end)
        at = joint.end() if joint and joint.end() < len(text) and text[joint.end()] == "{" else end
    if not found:
        reading.note("bad_json", (begin, len(turn.raw)), "after <|python_tag|> stands a call object")
        return len(turn.raw), [(begin, len(turn.raw))]
    if len(found) > 1:
        reading.note("multi_json", (taken[0][0], taken[-1][1]), f"{len(found)} calls in one turn")
    for raw, place in zip(found, taken, strict=True):
        reading.accept(raw, place, repaired=len(found) > 1)
    return taken[-1][1], taken


def _without_call(reading: Reading, text: str) -> ParsedTurn:
    whole = (0, len(reading.turn.raw))
    if reading.truncated and not reading.turn.stopped:
        reading.note("truncated_by_length", whole, "the turn was cut before a call")
        return reading.result([])
    found = bare_calls(text, _KEYS)
    if not found:
        return reading.result([])
    places = [place_in(text, 0, raw) for raw in found]
    if any(reading.thinking.at(start) for start, _ in places):
        reading.note("call_in_think", places[0], "a call inside thinking is not executed")
        return reading.result([])
    reading.note("no_wrapper", (places[0][0], places[-1][1]), "a call is the whole turn, without text around it")
    if len(found) == 1:
        reading.accept(found[0], places[0], repaired=True)
    return reading.result(places)
