"""``/v1/chat/completions``: what a request says, and an answer as one document or as events. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from journeyman.engines.capture.messages import Answered, Asked, Message, Said, check_turns, text_of
from journeyman.errors import InputError

FINISH = {"stop": "stop", "length": "length", "abort": "stop"}


def read(body: Mapping[str, Any]) -> Asked:
    """A request.

    Raises:
        InputError: names the field that cannot be used.
    """
    given = body.get("messages")
    if not isinstance(given, list):
        raise InputError("messages", "is no list")
    system: list[str] = []
    messages: list[Message] = []
    for index, message in enumerate(given):
        where = f"messages[{index}]"
        role, text = message.get("role"), text_of(message.get("content"), f"{where}.content")
        if role in ("system", "developer"):
            if messages:
                messages.append(Message("user", text))
            else:
                system.append(text)
        elif role == "user":
            messages.append(Message("user", text))
        elif role == "assistant":
            calls = tuple(_said(call) for call in message.get("tool_calls") or ())
            messages.append(Message("assistant", text, calls))
        elif role == "tool":
            messages.append(Message("tool", text, answers=str(message.get("tool_call_id") or "")))
        else:
            raise InputError(f"{where}.role", f"is {role!r}", allowed="system, developer, user, assistant, tool")
    check_turns(messages)
    return Asked(
        "\n\n".join(system) if system else None,
        tuple(tool for tool in body.get("tools") or () if tool.get("type") == "function"),
        tuple(messages),
        body.get("max_completion_tokens") or body.get("max_tokens"),
        body.get("temperature"),
        body.get("top_p"),
        bool(body.get("stream")),
        str(body.get("model") or ""),
    )


def _said(call: Mapping[str, Any]) -> Said:
    function = call.get("function") or {}
    written = function.get("arguments") or "{}"
    try:
        arguments = json.loads(written) if isinstance(written, str) else written
    except ValueError:
        arguments = written
    return Said(str(call.get("id") or ""), str(function.get("name") or ""), arguments)


def write(asked: Asked, answered: Answered, created: int) -> dict[str, Any]:
    """The answer as one document."""
    message: dict[str, Any] = {"role": "assistant", "content": answered.text or None, **_calls(answered)}
    if answered.reasoning is not None:
        message["reasoning_content"] = answered.reasoning
    choice = {"index": 0, "message": message, "finish_reason": _finish(answered)}
    return {**_frame(asked, answered, created, "chat.completion"), "choices": [choice], "usage": _usage(answered)}


def events(asked: Asked, answered: Answered, created: int) -> Iterator[str]:
    """The answer as server-sent events, the last of them ``[DONE]``."""
    frame = _frame(asked, answered, created, "chat.completion.chunk")

    def event(delta: Mapping[str, Any], finish: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return f"data: {json.dumps({**frame, 'choices': [choice]}, ensure_ascii=False)}\n\n"

    yield event({"role": "assistant", "content": ""})
    if answered.reasoning is not None:
        yield event({"reasoning_content": answered.reasoning})
    if answered.text:
        yield event({"content": answered.text})
    for index, call in enumerate(_calls(answered).get("tool_calls", ())):
        yield event({"tool_calls": [{"index": index, **call}]})
    yield event({}, _finish(answered))
    yield f"data: {json.dumps({**frame, 'choices': [], 'usage': _usage(answered)})}\n\n"
    yield "data: [DONE]\n\n"


def error(status: int, text: str) -> dict[str, Any]:
    """An error as the protocol words it."""
    code = "context_length_exceeded" if "needs a context of" in text else None
    kind = "invalid_request_error" if status < 500 else "server_error"
    return {"error": {"message": text, "type": kind, "code": code}}


def _frame(asked: Asked, answered: Answered, created: int, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{answered.id}", "object": kind, "created": created, "model": asked.model}


def _calls(answered: Answered) -> dict[str, Any]:
    calls = [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": json.dumps(call.arguments, ensure_ascii=False)},
        }
        for call in answered.calls
    ]
    return {"tool_calls": calls} if calls else {}


def _finish(answered: Answered) -> str:
    return "tool_calls" if answered.calls else FINISH[answered.finish]


def _usage(answered: Answered) -> dict[str, int]:
    prompt, sampled = answered.prompt_tokens, answered.sampled_tokens
    return {"prompt_tokens": prompt, "completion_tokens": sampled, "total_tokens": prompt + sampled}
