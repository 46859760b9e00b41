"""A conversation as both protocols mean it: a head of system text and tools, then turns that can be compared."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from journeyman.digest import sha256_json
from journeyman.errors import InputError
from journeyman.tokens.renderers.family import ToolSchema


@dataclass(frozen=True)
class Said:
    """A call that an assistant turn makes.

    Attributes:
        id: ties it to its result; ours for our own turns.
        name, arguments: the tool and its arguments; text where they are no JSON object.
    """

    id: str
    name: str
    arguments: Mapping[str, Any] | str


@dataclass(frozen=True)
class Message:
    """One turn.

    Attributes:
        role: who speaks.
        text: what is said, without thinking.
        calls: of an assistant turn.
        answers: of a tool turn, the id of the call it answers.
    """

    role: Literal["user", "assistant", "tool"]
    text: str
    calls: tuple[Said, ...] = ()
    answers: str = ""

    @property
    def key(self) -> str:
        """Equal for turns that mean the same: programs trim text and write JSON anew."""
        calls = [[call.name, _canonical(call.arguments)] for call in self.calls]
        return sha256_json([self.role, self.text.strip(), calls])


@dataclass(frozen=True)
class Asked:
    """A request.

    Attributes:
        system: all system text, or None.
        tools: schemas as chat templates take them.
        messages: the turns.
        max_tokens, temperature, top_p: as asked; None: the endpoint's own.
        stream: answer as events.
        model: name to report back.
    """

    system: str | None
    tools: tuple[ToolSchema, ...]
    messages: tuple[Message, ...]
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    stream: bool = False
    model: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def head(self) -> str:
        """Equal for requests whose prompts begin alike."""
        return sha256_json([self.system, list(self.tools)])

    @property
    def schemas(self) -> dict[str, Mapping[str, Any]]:
        """Parameters by tool."""
        return {tool["function"]["name"]: tool["function"].get("parameters") or {} for tool in self.tools}


@dataclass(frozen=True)
class Answered:
    """What goes back.

    Attributes:
        text, reasoning: of the turn, for display; reasoning None without any.
        calls: executable ones.
        finish: why it ended.
        prompt_tokens, sampled_tokens: counts.
        id: names the answer.
    """

    text: str
    reasoning: str | None
    calls: tuple[Said, ...]
    finish: Literal["stop", "length", "abort"]
    prompt_tokens: int
    sampled_tokens: int
    id: str

    @property
    def message(self) -> Message:
        """The turn as a program will send it back."""
        return Message("assistant", self.text, self.calls)


def check_turns(messages: Sequence[Message]) -> None:
    """Raise InputError for a conversation that nobody could answer."""
    if not messages:
        raise InputError("messages", "hold no user turn")
    spoken = [message.role for message in messages]
    if "tool" in spoken and "assistant" not in spoken[: spoken.index("tool")]:
        raise InputError("messages", "hold a tool result before any assistant turn")
    if spoken[0] != "user":
        raise InputError("messages", f"begin with the role {spoken[0]!r}", allowed="user, after the system text")
    if messages[-1].role == "assistant":
        raise InputError("messages", "end with an assistant turn", hint="a prefilled answer cannot be recorded")


def text_of(content: Any, where: str) -> str:
    """Text of a content field: a string, nothing, or parts of type text.

    Raises:
        InputError: a part of another type, such as an image.
    """
    if content is None or isinstance(content, str):
        return content or ""
    pieces = []
    for part in content if isinstance(content, list) else [content]:
        if not isinstance(part, dict) or part.get("type") not in ("text", "input_text"):
            kind = part.get("type") if isinstance(part, dict) else type(part).__name__
            raise InputError(where, f"holds a part of type {kind!r}", allowed="text")
        pieces.append(str(part.get("text") or ""))
    return "\n".join(pieces)


def _canonical(arguments: Mapping[str, Any] | str) -> str:
    if isinstance(arguments, str):
        return arguments.strip()
    return json.dumps(arguments, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
