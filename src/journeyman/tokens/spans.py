"""Find the tool calls in the ids of one sampled turn, with the tokens each one spans.

Tags count only as special ids: a ``<tool_call>`` spelled with ordinary tokens is text. Decoding serves the reading of
arguments; the ids stay as they were sampled.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from journeyman.tokens.calls_hermes import CallDefect, RawCall, check_schema, read_calls, read_object
from journeyman.tokens.malformed import Call, Malformed, ParsedTurn, Span
from journeyman.tokens.tokenizer import Tokenizer

__all__ = ["Call", "Malformed", "ParsedTurn", "Span", "parse_turn"]

Schemas = Mapping[str, Mapping[str, Any]]
_THINK = re.compile(r"</?think>")
_BARE_CALL = re.compile(r'\{\s*"(?:name|arguments)"')


def parse_turn(ids: Sequence[int], tokenizer: Tokenizer, schemas: Schemas, *, truncated: bool = False) -> ParsedTurn:
    """Read one assistant turn in Hermes format. Total: any ids give an answer, never an exception.

    Args:
        ids: the sampled ids, with or without the final ``<|im_end|>``.
        tokenizer: the one whose vocabulary the ids belong to.
        schemas: per offered tool the JSON schema of its parameters.
        truncated: sampling stopped at its length limit.
    """
    turn = _Turn(ids, tokenizer, schemas, truncated)
    blocks = turn.blocks()
    for start, end, closed in blocks:
        turn.read_block(start, end, closed)
    if blocks:
        turn.note_text_after(blocks[-1][1])
    elif truncated:
        turn.malformed.append(Malformed("truncated_by_length", (0, turn.end), "the turn was cut before a call"))
    else:
        turn.read_bare_calls()
    outside = "".join(turn.text(a, b) for a, b in turn.gaps(blocks))
    text = outside.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return ParsedTurn(tuple(turn.calls), tuple(turn.malformed), text)


class _Turn:
    """One turn being read: its ids, their bytes, and what was found so far."""

    def __init__(self, ids: Sequence[int], tokenizer: Tokenizer, schemas: Schemas, truncated: bool) -> None:
        self.ids, self.schemas, self.truncated = ids, schemas, truncated
        self.open, self.close = tokenizer.special("<tool_call>"), tokenizer.special("</tool_call>")
        stop = tokenizer.special("<|im_end|>")
        self.end = len(ids) - 1 if ids and ids[-1] == stop else len(ids)
        self.pieces = [tokenizer.token_bytes(token) for token in ids[: self.end]]
        self.calls: list[Call] = []
        self.malformed: list[Malformed] = []

    def text(self, start: int, end: int) -> str:
        """Tokens as text; each byte that is no UTF-8 becomes one lone surrogate, so that offsets stay exact."""
        return b"".join(self.pieces[start:end]).decode("utf-8", "surrogateescape")

    def blocks(self) -> list[tuple[int, int, bool]]:
        """(first token, end, closed) of each tagged call, tags included."""
        found: list[tuple[int, int, bool]] = []
        start = -1
        for at in range(self.end):
            if self.ids[at] == self.open:
                if start >= 0:
                    found.append((start, at, False))
                start = at
            elif self.ids[at] == self.close and start >= 0:
                found.append((start, at + 1, True))
                start = -1
        return [*found, (start, self.end, False)] if start >= 0 else found

    def gaps(self, blocks: Sequence[tuple[int, int, bool]]) -> list[Span]:
        edges = [0, *(edge for start, end, _ in blocks for edge in (start, end)), self.end]
        return list(zip(edges[::2], edges[1::2], strict=True))

    def read_block(self, start: int, end: int, closed: bool) -> None:
        if self.thinking_at(start):
            self.malformed.append(Malformed("call_in_think", (start, end), "a call inside thinking is not executed"))
            return
        if not closed and self.truncated and end == self.end:
            self.malformed.append(Malformed("truncated_by_length", (start, end), "the turn was cut inside a call"))
            return
        body_start = start + 1
        body = self.text(body_start, end - 1 if closed else end)
        try:
            raw = read_calls(body)
        except CallDefect as defect:
            kind = defect.kind if closed or defect.kind == "duplicate_param" else "unclosed"
            self.malformed.append(Malformed(kind, (start, end), defect.detail))
            return
        if not closed:
            self.malformed.append(Malformed("unclosed", (start, end), "</tool_call> is missing"))
        if len(raw) > 1:
            self.malformed.append(Malformed("multi_json", (start, end), f"{len(raw)} calls in one <tool_call>"))
        for call in raw:
            span = (start, end) if len(raw) == 1 else self.token_span(body, body_start, call)
            self.accept(call, span, repaired=not closed or len(raw) > 1)

    def accept(self, raw: RawCall, span: Span, *, repaired: bool) -> None:
        try:
            check_schema(raw.name, raw.arguments, self.schemas)
        except CallDefect as defect:
            self.malformed.append(Malformed(defect.kind, span, defect.detail))
            return
        self.calls.append(Call(raw.name, raw.arguments, span, repaired or raw.repaired))

    def token_span(self, text: str, first: int, raw: RawCall) -> Span:
        """Tokens that hold characters ``raw.start`` to ``raw.end`` of ``text``, which begins at token ``first``."""
        ends = list(accumulate(len(piece) for piece in self.pieces[first:]))
        byte_start = len(text[: raw.start].encode("utf-8", "surrogateescape"))
        byte_last = len(text[: raw.end].encode("utf-8", "surrogateescape")) - 1
        return first + bisect_right(ends, byte_start), first + bisect_right(ends, byte_last) + 1

    def thinking_at(self, position: int) -> bool:
        """True inside a ``<think>`` that is still open before this token."""
        tags = _THINK.findall(self.text(0, position))
        return bool(tags) and tags[-1] == "<think>"

    def note_text_after(self, start: int) -> None:
        if self.text(start, self.end).strip():
            self.malformed.append(Malformed("text_after_call", (start, self.end), "text after the last call"))
            if self.truncated:
                self.malformed.append(Malformed("truncated_by_length", (start, self.end), "cut in the text after it"))

    def read_bare_calls(self) -> None:
        """Calls without tags: executed, as a repair, if there is exactly one."""
        text = self.text(0, self.end)
        found: list[RawCall] = []
        at = 0
        while match := _BARE_CALL.search(text, at):
            try:
                _, end = read_object(text, match.start())
                raw = read_calls(text[match.start() : end])[0]
            except CallDefect:
                at = match.end()
                continue
            found.append(RawCall(raw.name, raw.arguments, match.start(), end, True))
            at = end
        if not found:
            if "<function=" in text:
                self.malformed.append(Malformed("no_wrapper", (0, self.end), "a call needs <tool_call> around it"))
            return
        spans = [self.token_span(text, 0, raw) for raw in found]
        if any(self.thinking_at(span[0]) for span in spans):
            self.malformed.append(Malformed("call_in_think", spans[0], "a call inside thinking is not executed"))
            return
        whole = (spans[0][0], spans[-1][1])
        self.malformed.append(Malformed("no_wrapper", whole, f"{len(found)} call(s) without <tool_call> around"))
        if len(found) == 1:
            self.accept(found[0], spans[0], repaired=True)
