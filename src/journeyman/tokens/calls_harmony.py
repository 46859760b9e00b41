"""gpt-oss's calls: a message whose head names a function as its recipient; the analysis channel is thinking."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from journeyman.tokens.calls_hermes import CallDefect, RawCall, bare_calls, read_object
from journeyman.tokens.malformed import ParsedTurn
from journeyman.tokens.spans import Reading, Think, place_in
from journeyman.tokens.turn import Bytes, Turn, outside

_MARKS = ("<|start|>", "<|end|>", "<|message|>", "<|channel|>", "<|constrain|>", "<|return|>", "<|call|>")
_RECIPIENT = re.compile(r"\bto=(?:functions\.)?([^\s<]+)")

Schemas = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Message:
    """One message of a turn: its head as text, its body in bytes, and the mark that ended it ("" at the turn's end)."""

    head: str
    whole: Bytes
    body: Bytes
    ended_by: str

    @property
    def channel(self) -> str:
        """The word after ``<|channel|>``."""
        words = self.head.split("<|channel|>", 1)
        return words[1].split("<|")[0].split()[0] if len(words) > 1 and words[1].split("<|")[0].split() else ""

    @property
    def recipient(self) -> str | None:
        """The function it is for."""
        match = _RECIPIENT.search(self.head)
        return match.group(1) if match and match.group(1) != "assistant" else None


def parse_harmony(turn: Turn, schemas: Schemas, truncated: bool, think: Think, opened: bool) -> ParsedTurn:
    """Read one turn. Total: any ids give an answer.

    Args:
        turn: the turn; it begins after ``<|start|>assistant``.
        schemas: per offered tool the JSON schema of its parameters.
        truncated: sampling stopped at its length limit.
        think, opened: as for tagged styles; here the channel says what is thinking.
    """
    reading = Reading(turn, schemas, truncated, None, False, lambda raw, _: raw)
    messages = _messages(turn)
    called: list[Message] = []
    for message in messages:
        if message.recipient is not None:
            called.append(message)
            _read_call(reading, message, is_last=message is messages[-1])
    if called and called[-1].whole[1] < len(turn.raw):
        _note_after(reading, [m for m in messages if m.whole[0] >= called[-1].whole[1]])
    elif not called:
        _without_call(reading, messages)
    return _result(reading, messages)


def _messages(turn: Turn) -> list[Message]:
    marks = sorted((*place, name) for name in _MARKS for place in turn.tag(name))
    messages: list[Message] = []
    begin, body_at = 0, -1
    for start, end, name in marks:
        if name == "<|message|>" and body_at < 0:
            body_at = end
        elif name == "<|start|>" and body_at < 0:
            begin = start if begin < start else begin
        elif name in ("<|end|>", "<|return|>", "<|call|>") or (name == "<|start|>" and body_at >= 0):
            stop = start if name == "<|start|>" else end
            messages.append(_message(turn, begin, body_at, start, stop, name))
            begin, body_at = stop, -1
    if begin < len(turn.raw):
        ended = "<|call|>" if turn.stopped and turn.ids[-1] == turn.tokenizer.special("<|call|>") else ""
        messages.append(_message(turn, begin, body_at, len(turn.raw), len(turn.raw), ended or _stop(turn)))
    return messages


def _stop(turn: Turn) -> str:
    return "<|return|>" if turn.stopped else ""


def _message(turn: Turn, begin: int, body_at: int, body_end: int, stop: int, ended_by: str) -> Message:
    head_end = body_at if body_at >= 0 else body_end
    return Message(turn.text(begin, head_end), (begin, stop), (head_end, body_end), ended_by)


def _read_call(reading: Reading, message: Message, *, is_last: bool) -> None:
    turn = reading.turn
    if message.channel == "analysis":
        reading.note("call_in_think", message.whole, "a call on the analysis channel is not executed")
        return
    if not message.ended_by and is_last and reading.truncated:
        reading.note("truncated_by_length", message.whole, "the turn was cut inside a call")
        return
    closed = message.ended_by == "<|call|>"
    body = turn.text(*message.body)
    found: list[RawCall] = []
    at = len(body) - len(body.lstrip())
    try:
        while at < len(body) or not found:
            value, end = read_object(body, at)
            if not isinstance(value, dict):
                raise CallDefect("bad_json", "the arguments are not an object")
            found.append(RawCall(message.recipient or "", value, at, end, False))
            at = end + len(body[end:]) - len(body[end:].lstrip())
    except CallDefect as defect:
        kind = defect.kind if closed or defect.kind == "duplicate_param" else "unclosed"
        reading.note(kind, message.whole, defect.detail)
        return
    if not closed:
        reading.note("unclosed", message.whole, "<|call|> is missing")
    if len(found) > 1:
        reading.note("multi_json", message.whole, f"{len(found)} objects in one call")
    for raw in found:
        place = message.whole if len(found) == 1 else place_in(body, message.body[0], raw)
        reading.accept(raw, place, repaired=not closed or len(found) > 1)


def _note_after(reading: Reading, messages: list[Message]) -> None:
    if any(reading.turn.text(*message.body).strip() for message in messages):
        reading.note_text_after(messages[0].whole[0])


def _without_call(reading: Reading, messages: list[Message]) -> None:
    turn = reading.turn
    if reading.truncated and not turn.stopped:
        reading.note("truncated_by_length", (0, len(turn.raw)), "the turn was cut before a call")
        return
    for message in messages:
        text = turn.text(*message.body)
        found = bare_calls(text, ("arguments", "parameters"))
        places = [place_in(text, message.body[0], raw) for raw in found]
        if found and message.channel == "analysis":
            reading.note("call_in_think", places[0], "a call inside thinking is not executed")
        elif found:
            reading.note("no_wrapper", (places[0][0], places[-1][1]), "a call is a message to=functions.NAME")
            if len(found) == 1:
                reading.accept(found[0], places[0], repaired=True)


def _result(reading: Reading, messages: list[Message]) -> ParsedTurn:
    turn = reading.turn
    thought = [m for m in messages if m.channel == "analysis"]
    shown = [m.body for m in messages if m.recipient is None]
    content = [m.body for m in messages if m.recipient is None and m.channel != "analysis"]
    taken = [m.whole for m in messages if m.recipient is not None]
    return ParsedTurn(
        tuple(reading.calls),
        tuple(reading.malformed),
        turn.shown(shown if messages else outside(taken, len(turn.raw))),
        turn.shown(content),
        turn.span(thought[0].whole[0], thought[-1].whole[1]) if thought else None,
    )
