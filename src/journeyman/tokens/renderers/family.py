"""What a model family is to a renderer: its special tokens as data, and the few rules in which families differ."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Literal

from journeyman.tokens.runs import Parts

CallStyle = Literal["hermes", "xml", "glm", "llama", "harmony"]
ToolSchema = Mapping[str, Any]
"""A tool as chat templates take it: ``{"type": "function", "function": {name, description, parameters}}``."""


@dataclass(frozen=True)
class ToolResult:
    """What a tool answered.

    Attributes:
        text: as the policy reads it; ordinary text whatever it spells.
        name: the tool, for families that name it in the result.
    """

    text: str
    name: str = ""


@dataclass(frozen=True)
class ToolUse:
    """A call in a demonstrated turn."""

    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class Demonstration:
    """An assistant turn somebody wrote. ``reasoning`` None: the turn has no thinking of its own."""

    content: str = ""
    calls: tuple[ToolUse, ...] = ()
    reasoning: str | None = None


@dataclass(frozen=True)
class Opening:
    """What stands before the first sampled token.

    Attributes:
        system: text of the system turn, or None for the family's default.
        users: texts of the user turns, at least one.
        tools: schemas of the offered tools.
        thinking: whether the model is asked to think.
        today: the trial's date, for families that state one.
    """

    system: str | None
    users: tuple[str, ...]
    tools: tuple[ToolSchema, ...] = ()
    thinking: bool = True
    today: date | None = None


@dataclass(frozen=True)
class TurnEnd:
    """Where a sampled turn stopped without closing itself.

    Attributes:
        thinking: inside its thinking.
        last_special: the last special token it holds, or None.
    """

    thinking: bool
    last_special: str | None


@dataclass(frozen=True)
class Family:
    """One way to write conversations as tokens.

    Attributes:
        name: key in ``FAMILIES``.
        models: whose template it is, in words.
        specials: spellings that the vocabulary must hold as single tokens.
        stops: special tokens at which sampling stops.
        closes: those after which the template begins the next turn; another stop gets the forced end as well.
        call_style: how calls are written.
        opening: everything before the generation prompt.
        user: one user turn; the flag says whether the model is asked to think.
        results: the turn that holds all results of one assistant turn.
        generation: the generation prompt; the flag says whether the model is asked to think.
        demonstration: what the model would have sampled after the generation prompt, its stop included.
        forced: what ends a turn that did not close itself.
        separator: what the template puts between a closed turn and the next.
        think: tags of thinking, or None.
        opens_thinking: the generation prompt of a thinking model stands inside the thinking already.
        stop_is_next_role: the stop token is the start of the next turn, and is not written twice.
        reads_date: the opening states today's date.
        deviations: where the official template does otherwise, each in one sentence.
        text_checked: the official template that tests compare with.
        vocabulary_checked: the package whose real vocabulary tests compare ids on; "" means ids unverified.
    """

    name: str
    models: str
    specials: tuple[str, ...]
    stops: tuple[str, ...]
    closes: tuple[str, ...]
    call_style: CallStyle
    opening: Callable[[Opening], Parts]
    user: Callable[[str, bool], Parts]
    results: Callable[[Sequence[ToolResult]], Parts]
    generation: Callable[[bool], str]
    demonstration: Callable[[Demonstration, bool], Parts]
    forced: Callable[[TurnEnd], str]
    separator: str = ""
    think: tuple[str, str] | None = None
    opens_thinking: bool = False
    stop_is_next_role: bool = False
    reads_date: bool = False
    deviations: tuple[str, ...] = field(default=())
    text_checked: str = ""
    vocabulary_checked: str = ""


def as_json(value: Any, indent: int | None = None) -> str:
    """JSON as ``tojson`` of chat templates writes it."""
    return json.dumps(value, ensure_ascii=False, indent=indent)
