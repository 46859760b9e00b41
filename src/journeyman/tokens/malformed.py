"""The words a parser answers with: a call, and the eleven ways in which a turn can be malformed.

What to do about each kind is the harness's policy; a malformed call never ends a trial by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

MalformedKind = Literal[
    "unclosed",
    "bad_json",
    "multi_json",
    "unknown_tool",
    "missing_param",
    "wrong_type",
    "duplicate_param",
    "text_after_call",
    "call_in_think",
    "no_wrapper",
    "truncated_by_length",
]
"""unclosed: no closing tag before the end of the turn; bad_json: the body is no call object; multi_json: several
objects in one tag; unknown_tool: name not offered; missing_param, wrong_type: arguments violate the schema (a parameter
it does not know included); duplicate_param: a key twice; text_after_call: text after the last call; call_in_think: a
call inside thinking; no_wrapper: a call without its tags; truncated_by_length: sampling stopped at its limit before the
turn was over."""

MALFORMED_KINDS: tuple[MalformedKind, ...] = get_args(MalformedKind)

Span = tuple[int, int]
"""Half-open range of positions in the ids of the turn."""


@dataclass(frozen=True)
class Call:
    """A tool call that can be executed.

    Attributes:
        name: an offered tool.
        arguments: JSON values that satisfy the tool's schema.
        span: the tokens that spell it, its tags included where it has them to itself.
        repaired: something was put right for execution only; the ids stay as sampled.
    """

    name: str
    arguments: Mapping[str, Any]
    span: Span
    repaired: bool = False


@dataclass(frozen=True)
class Malformed:
    """One defect of a turn.

    Attributes:
        kind: one of the eleven classes.
        span: the tokens it concerns.
        detail: one clause that a model can act on.
    """

    kind: MalformedKind
    span: Span
    detail: str


@dataclass(frozen=True)
class ParsedTurn:
    """What one sampled turn says.

    Attributes:
        calls: executable calls in order, repaired ones included.
        malformed: every defect, also of calls that were repaired; empty for a clean turn.
        text: the text outside of calls, for display.
        content: the text outside of calls and thinking, for display.
        reasoning: the tokens of its thinking, tags included, or None.
    """

    calls: tuple[Call, ...]
    malformed: tuple[Malformed, ...]
    text: str
    content: str = ""
    reasoning: Span | None = None


Policy = Literal["execute", "error_result", "regenerate"]
"""execute: run what was repaired and flag it (ids stay as sampled); error_result: answer with the defect; regenerate:
discard the turn as a segment of its own and sample again. Without a complete call, execute becomes error_result."""

DEFAULT_POLICY: dict[MalformedKind, Policy] = {
    "unclosed": "execute",
    "bad_json": "regenerate",
    "multi_json": "execute",
    "unknown_tool": "error_result",
    "missing_param": "error_result",
    "wrong_type": "error_result",
    "duplicate_param": "error_result",
    "text_after_call": "execute",
    "call_in_think": "error_result",
    "no_wrapper": "execute",
    "truncated_by_length": "error_result",
}
"""What a harness does about each class unless it says otherwise."""
