"""What a chat model answered: the message as it came, and what can be read in it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from journeyman.engines.errors import EngineError


@dataclass(frozen=True)
class TokenUsage:
    """Tokens of one model call, by class.

    Attributes:
        input: all input tokens, cached ones included.
        cache_read, cache_write: parts of ``input``.
        output: all output tokens, reasoning included.
        reasoning: part of ``output``.
    """

    input: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0
    reasoning: int = 0

    def __add__(self, other: TokenUsage) -> TokenUsage:
        return TokenUsage(
            self.input + other.input,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
            self.output + other.output,
            self.reasoning + other.reasoning,
        )


@dataclass(frozen=True)
class ToolCall:
    """A call as the service reports it.

    Attributes:
        id: names the call in the result that answers it.
        name: the tool.
        text: arguments as written.
        arguments: read from ``text``; None when it is no JSON object, which is the harness's to answer.
    """

    id: str
    name: str
    text: str
    arguments: Mapping[str, Any] | None


@dataclass(frozen=True)
class ChatReply:
    """One answer.

    Attributes:
        message: as the service sent it; append it to the conversation unchanged, or hidden state such as reasoning
            signatures is lost.
        content: its text; "" when there is none.
        reasoning: its thinking where the service shows it, else None.
        calls: tool calls in order.
        finish: the service's own word, such as ``stop``, ``length`` or ``tool_calls``.
        usage: tokens; None when the service does not tell.
        dollars: by the price table; None when the price or the usage is unknown.
        model: as the service names what answered.
        tries: requests sent until this answer.
        seconds: from the first try to the answer, waiting included.
    """

    message: Mapping[str, Any]
    content: str
    reasoning: str | None
    calls: tuple[ToolCall, ...]
    finish: str
    usage: TokenUsage | None
    dollars: float | None
    model: str
    tries: int
    seconds: float


def message_of(body: Any) -> tuple[Mapping[str, Any], str]:
    """The message and finish reason of a chat completion.

    Raises:
        EngineError: the body is none.
    """
    try:
        choice = body["choices"][0]
        message = choice["message"]
        if not isinstance(message, dict):
            raise TypeError("message is no object")
    except (KeyError, IndexError, TypeError) as error:
        raise EngineError(f"the service's answer is no chat completion: {str(body)[:200]}") from error
    return message, str(choice.get("finish_reason") or "")


def content_of(message: Mapping[str, Any]) -> str:
    """The text of a message, whose content may be a string, a list of parts, or nothing."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "".join(str(part.get("text") or "") for part in parts if isinstance(part, dict))


def reasoning_of(message: Mapping[str, Any]) -> str | None:
    """The thinking, under either name that services give it."""
    for name in ("reasoning_content", "reasoning"):
        if isinstance(message.get(name), str):
            return str(message[name])
    return None


def calls_of(message: Mapping[str, Any]) -> tuple[ToolCall, ...]:
    """The tool calls of a message."""
    found = []
    for call in message.get("tool_calls") or ():
        function = call.get("function") or {}
        text = function.get("arguments")
        text = text if isinstance(text, str) else json.dumps(text or {})
        try:
            read = json.loads(text or "{}")
        except ValueError:
            read = None
        arguments = read if isinstance(read, dict) else None
        found.append(ToolCall(str(call.get("id") or ""), str(function.get("name") or ""), text, arguments))
    return tuple(found)


def usage_of(body: Mapping[str, Any]) -> TokenUsage | None:
    """Tokens by class; parts never exceed their whole, whatever the service says. None when it says nothing."""
    given = body.get("usage")
    if not isinstance(given, dict):
        return None
    prompt, answer = given.get("prompt_tokens_details") or {}, given.get("completion_tokens_details") or {}
    total, output = _count(given, "prompt_tokens"), _count(given, "completion_tokens")
    read = min(_count(prompt, "cached_tokens"), total)
    written = min(_count(prompt, "cache_write_tokens"), total - read)
    return TokenUsage(total, read, written, output, min(_count(answer, "reasoning_tokens"), output))


def _count(given: Mapping[str, Any], name: str) -> int:
    value = given.get(name)
    return max(0, value) if isinstance(value, int) else 0
