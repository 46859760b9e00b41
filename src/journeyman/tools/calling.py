"""One call: arguments checked against the schema, refusals turned into text, output bounded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from journeyman.tools.calc import TOOL as CALC
from journeyman.tools.lookup import TOOL as LOOKUP
from journeyman.tools.protocol import MAX_OBSERVATION_CHARS, Observation, Tool, ToolContext, ToolRefusal
from journeyman.tools.read_file import TOOL as READ_FILE

TOOLS: dict[str, Tool] = {tool.name: tool for tool in (LOOKUP, CALC, READ_FILE)}
"""Name -> tool. The final answer is no tool: it belongs to the harness."""

MALFORMED = "malformed call"


def call(name: str, arguments: Mapping[str, Any], context: ToolContext) -> Observation:
    """Run one tool. Same files and arguments, same observation.

    Args:
        name: key of ``TOOLS``; an unknown one is a malformed call.
        arguments: as parsed from the policy's text; anything its schema does not allow is a malformed call.
        context: files and cache of the trial.

    Raises:
        SystemFault: the machinery broke. Nothing that the policy wrote can cause this.
    """
    tool = TOOLS.get(name)
    if tool is None or not _fits(arguments, tool.schema):
        return Observation(f"error: {MALFORMED}", is_error=True)
    try:
        return Observation(_cut(tool.function(context, **arguments)))
    except ToolRefusal as refusal:
        return Observation(f"error: {refusal}", is_error=True)


def _fits(arguments: Any, schema: Mapping[str, Any]) -> bool:
    return (
        isinstance(arguments, Mapping)
        and all(key in schema["properties"] and isinstance(value, str) for key, value in arguments.items())
        and all(key in arguments for key in schema["required"])
    )


def _cut(text: str) -> str:
    if len(text) <= MAX_OBSERVATION_CHARS:
        return text
    return f"{text[:MAX_OBSERVATION_CHARS]}\n[{len(text) - MAX_OBSERVATION_CHARS} characters left out]"
