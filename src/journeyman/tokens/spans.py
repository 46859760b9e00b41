"""Find the tool calls in the ids of one sampled turn, with the tokens each one spans.

Tags count only as special ids where the vocabulary has them: a ``<tool_call>`` spelled with ordinary tokens is text.
Decoding serves the reading of arguments; the ids stay as they were sampled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from journeyman.tokens.calls_hermes import CallDefect, RawCall, bare_calls, check_schema, read_calls
from journeyman.tokens.malformed import Call, Malformed, ParsedTurn, Span
from journeyman.tokens.tokenizer import Tokenizer
from journeyman.tokens.turn import Bytes, Turn, outside

__all__ = ["HERMES", "Call", "Malformed", "ParsedTurn", "Reading", "Span", "TagStyle", "parse_tagged", "parse_turn"]

Schemas = Mapping[str, Mapping[str, Any]]
Think = tuple[str, str] | None
THINK = ("<think>", "</think>")


@dataclass(frozen=True)
class TagStyle:
    """How calls are written between ``<tool_call>`` and ``</tool_call>``.

    Attributes:
        read: the calls of one body; the flag says whether its closing tag is there. Raises CallDefect.
        bare: calls that stand in a text without the tags.
        typed: arguments as the tool's schema types them, from a call as written.
        foreign: a text that shows a call which cannot be read without its tags.
    """

    read: Callable[[str, bool, Schemas], list[RawCall]]
    bare: Callable[[str, Schemas], list[RawCall]]
    typed: Callable[[RawCall, Schemas], RawCall]
    foreign: str


HERMES = TagStyle(
    read=lambda body, closed, schemas: read_calls(body),
    bare=lambda text, schemas: bare_calls(text),
    typed=lambda raw, schemas: raw,
    foreign="<function=",
)


def parse_turn(ids: Sequence[int], tokenizer: Tokenizer, schemas: Schemas, *, truncated: bool = False) -> ParsedTurn:
    """Read one assistant turn in Hermes format. Total: any ids give an answer, never an exception.

    Args:
        ids: the sampled ids, with or without the final ``<|im_end|>``.
        tokenizer: the one whose vocabulary the ids belong to.
        schemas: per offered tool the JSON schema of its parameters.
        truncated: sampling stopped at its length limit.
    """
    turn = Turn(ids, tokenizer, (tokenizer.special("<|im_end|>"),))
    return parse_tagged(turn, HERMES, schemas, truncated, THINK, False)


def parse_tagged(
    turn: Turn, style: TagStyle, schemas: Schemas, truncated: bool, think: Think, opened: bool
) -> ParsedTurn:
    """Read a turn whose calls stand between ``<tool_call>`` tags; arguments as for ``parse_turn``.

    Args:
        turn: the turn.
        style: how a call is written between the tags.
        schemas, truncated: as for ``parse_turn``.
        think: the tags of thinking, or None.
        opened: the prompt stands inside the thinking already.
    """
    reading = Reading(turn, schemas, truncated, think, opened, style.typed)
    blocks = _blocks(turn)
    for start, end, inner in blocks:
        _read_block(reading, style, start, end, inner)
    if blocks:
        # What follows a call in thinking is thinking, or what the thinking was for.
        if not reading.thinking.at(blocks[-1][0]):
            reading.note_text_after(blocks[-1][1])
    elif truncated:
        reading.note("truncated_by_length", (0, len(turn.raw)), "the turn was cut before a call")
    else:
        _read_bare(reading, style)
    return reading.result([(start, end) for start, end, _ in blocks])


def _blocks(turn: Turn) -> list[tuple[int, int, Bytes]]:
    """(start, end, body) of each tagged call in bytes; an unclosed one ends where its body ends."""
    opens = [(*place, True) for place in turn.tag("<tool_call>")]
    closes = [(*place, False) for place in turn.tag("</tool_call>")]
    found: list[tuple[int, int, Bytes]] = []
    begin: Bytes | None = None
    for start, end, is_open in sorted(opens + closes):
        if is_open:
            if begin is not None:
                found.append((begin[0], start, (begin[1], start)))
            begin = (start, end)
        elif begin is not None:
            found.append((begin[0], end, (begin[1], start)))
            begin = None
    if begin is not None:
        found.append((begin[0], len(turn.raw), (begin[1], len(turn.raw))))
    return found


def _read_block(reading: Reading, style: TagStyle, start: int, end: int, body: Bytes) -> None:
    closed = body[1] < end
    if reading.thinking.at(start):
        reading.note("call_in_think", (start, end), "a call inside thinking is not executed")
        return
    if not closed and reading.truncated and end == len(reading.turn.raw):
        reading.note("truncated_by_length", (start, end), "the turn was cut inside a call")
        return
    text = reading.turn.text(*body)
    try:
        raw = style.read(text, closed, reading.schemas)
    except CallDefect as defect:
        kind = defect.kind if closed or defect.kind == "duplicate_param" else "unclosed"
        reading.note(kind, (start, end), defect.detail)
        return
    if not closed:
        reading.note("unclosed", (start, end), "</tool_call> is missing")
    if len(raw) > 1:
        reading.note("multi_json", (start, end), f"{len(raw)} calls in one <tool_call>")
    for call in raw:
        place = (start, end) if len(raw) == 1 else place_in(text, body[0], call)
        if closed and call.missing:
            reading.note("unclosed", place, f"{call.missing} is missing")
        reading.accept(call, place, repaired=not closed or len(raw) > 1)


def _read_bare(reading: Reading, style: TagStyle) -> None:
    """Calls without tags: executed, as a repair, if there is exactly one."""
    text = reading.turn.text(0, len(reading.turn.raw))
    found = style.bare(text, reading.schemas)
    if not found:
        if style.foreign in text:
            reading.note("no_wrapper", (0, len(reading.turn.raw)), "a call needs <tool_call> around it")
        return
    places = [place_in(text, 0, raw) for raw in found]
    if any(reading.thinking.at(start) for start, _ in places):
        reading.note("call_in_think", places[0], "a call inside thinking is not executed")
        return
    whole = (places[0][0], places[-1][1])
    reading.note("no_wrapper", whole, f"{len(found)} call(s) without <tool_call> around")
    if len(found) == 1:
        reading.accept(found[0], places[0], repaired=True)


def place_in(text: str, first: int, raw: RawCall) -> Bytes:
    """Bytes of a call in ``text``, which begins at byte ``first``."""
    start = first + len(text[: raw.start].encode("utf-8", "surrogateescape"))
    return start, start + len(text[raw.start : raw.end].encode("utf-8", "surrogateescape"))


class Reading:
    """A turn being read: what was found so far. Places are bytes; what leaves here are token spans."""

    def __init__(
        self,
        turn: Turn,
        schemas: Schemas,
        truncated: bool,
        think: Think,
        opened: bool,
        typed: Callable[[RawCall, Schemas], RawCall],
    ) -> None:
        self.turn, self.schemas, self.truncated, self.typed = turn, schemas, truncated, typed
        self.thinking = turn.thinking(think, opened)
        self.calls: list[Call] = []
        self.malformed: list[Malformed] = []

    def note(self, kind: Any, place: Bytes, detail: str) -> None:
        """Keep a defect."""
        self.malformed.append(Malformed(kind, self.turn.span(*place), detail))

    def accept(self, raw: RawCall, place: Bytes, *, repaired: bool) -> None:
        """Keep a call if it satisfies its tool's schema, else the defect."""
        try:
            raw = self.typed(raw, self.schemas)
            check_schema(raw.name, raw.arguments, self.schemas)
        except CallDefect as defect:
            self.note(defect.kind, place, defect.detail)
            return
        self.calls.append(Call(raw.name, raw.arguments, self.turn.span(*place), repaired or raw.repaired))

    def note_text_after(self, start: int) -> None:
        """Keep that text follows the last call, if it does."""
        place = (start, len(self.turn.raw))
        if self.turn.text(*place).strip():
            self.note("text_after_call", place, "text after the last call")
            if self.truncated:
                self.note("truncated_by_length", place, "cut in the text after it")

    def result(self, taken: Sequence[Bytes]) -> ParsedTurn:
        """The answer; ``taken`` are the bytes of calls and of what surrounds them."""
        end = len(self.turn.raw)
        thought = self.thinking.whole
        apart = outside([*taken, thought] if thought else taken, end)
        return ParsedTurn(
            tuple(self.calls),
            tuple(self.malformed),
            self.turn.shown(outside(taken, end)),
            self.turn.shown(apart),
            self.turn.span(*thought) if thought else None,
        )
