"""``/v1/messages``: what a request says, and an answer as one document or as events. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from journeyman.engines.capture.messages import Answered, Asked, Message, Said, check_turns, text_of
from journeyman.errors import InputError

FINISH = {"stop": "end_turn", "length": "max_tokens", "abort": "end_turn"}
HIDDEN = ("thinking", "redacted_thinking")


def read(body: Mapping[str, Any]) -> Asked:
    """A request.

    Raises:
        InputError: names the field that cannot be used.
    """
    given = body.get("messages")
    if not isinstance(given, list):
        raise InputError("messages", "is no list")
    messages: list[Message] = []
    for index, message in enumerate(given):
        messages += _turns(message, f"messages[{index}]")
    check_turns(messages)
    system = text_of(body.get("system"), "system") if body.get("system") else None
    return Asked(
        system,
        tuple(_tool(tool) for tool in body.get("tools") or () if "input_schema" in tool),
        tuple(messages),
        body.get("max_tokens"),
        body.get("temperature"),
        body.get("top_p"),
        bool(body.get("stream")),
        str(body.get("model") or ""),
    )


def _tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    function = {"name": tool["name"], "description": tool.get("description") or "", "parameters": tool["input_schema"]}
    return {"type": "function", "function": function}


def _turns(message: Mapping[str, Any], where: str) -> list[Message]:
    """One message of theirs: its tool results are turns of their own, before its text."""
    role, content = message.get("role"), message.get("content")
    if role not in ("user", "assistant"):
        raise InputError(f"{where}.role", f"is {role!r}", allowed="user, assistant")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list(content or ())
    results = [
        Message("tool", text_of(block.get("content"), f"{where}.content"), answers=str(block.get("tool_use_id") or ""))
        for block in blocks
        if block.get("type") == "tool_result"
    ]
    calls = tuple(
        Said(str(block.get("id") or ""), str(block.get("name") or ""), block.get("input") or {})
        for block in blocks
        if block.get("type") == "tool_use"
    )
    rest = [block for block in blocks if block.get("type") not in ("tool_result", "tool_use", *HIDDEN)]
    text = text_of(rest, f"{where}.content")
    if role == "assistant":
        return [Message("assistant", text, calls)]
    return [*results, *([Message("user", text)] if rest or not results else [])]


def write(asked: Asked, answered: Answered, created: int) -> dict[str, Any]:
    """The answer as one document."""
    return {**_frame(asked, answered), "content": _blocks(answered), "usage": _usage(answered), **_stop(answered)}


def events(asked: Asked, answered: Answered, created: int) -> Iterator[str]:
    """The answer as server-sent events, each named as the protocol names it."""

    def event(kind: str, **fields: Any) -> str:
        return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields}, ensure_ascii=False)}\n\n"

    opening = {**_frame(asked, answered), "content": [], "stop_reason": None, "stop_sequence": None}
    yield event("message_start", message={**opening, "usage": {**_usage(answered), "output_tokens": 0}})
    for index, block in enumerate(_blocks(answered)):
        empty, delta = _in_parts(block)
        yield event("content_block_start", index=index, content_block=empty)
        yield event("content_block_delta", index=index, delta=delta)
        yield event("content_block_stop", index=index)
    yield event("message_delta", delta=_stop(answered), usage={"output_tokens": answered.sampled_tokens})
    yield event("message_stop")


def error(status: int, text: str) -> dict[str, Any]:
    """An error as the protocol words it."""
    kind = "invalid_request_error" if status < 500 else "api_error"
    return {"type": "error", "error": {"type": kind, "message": text}}


def _frame(asked: Asked, answered: Answered) -> dict[str, Any]:
    return {"id": f"msg_{answered.id}", "type": "message", "role": "assistant", "model": asked.model}


def _blocks(answered: Answered) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    if answered.reasoning is not None:
        blocks.append({"type": "thinking", "thinking": answered.reasoning, "signature": ""})
    if answered.text or not answered.calls:
        blocks.append({"type": "text", "text": answered.text})
    blocks += [{"type": "tool_use", "id": c.id, "name": c.name, "input": c.arguments} for c in answered.calls]
    return blocks


def _in_parts(block: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """A block as it starts, and the one delta that fills it."""
    if block["type"] == "tool_use":
        written = json.dumps(block["input"], ensure_ascii=False)
        return {**block, "input": {}}, {"type": "input_json_delta", "partial_json": written}
    kind = block["type"]
    return {**block, kind: ""}, {"type": f"{kind}_delta", kind: block[kind]}


def _stop(answered: Answered) -> dict[str, Any]:
    return {"stop_reason": "tool_use" if answered.calls else FINISH[answered.finish], "stop_sequence": None}


def _usage(answered: Answered) -> dict[str, int]:
    return {"input_tokens": answered.prompt_tokens, "output_tokens": answered.sampled_tokens}
