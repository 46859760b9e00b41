"""An observation as a result of the protocol and back, and a system fault as an error and back.

What the protocol has no field for travels in ``_meta``, which other programs ignore.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from journeyman.errors import SystemFault
from journeyman.tools.mcp.errors import McpFault, McpHostFailed, McpSandboxFailed
from journeyman.tools.protocol import Observation

if TYPE_CHECKING:
    from mcp.shared.exceptions import MCPError
    from mcp_types import CallToolResult

OWN_NAME = "journeyman"
"""What a server of ours calls itself."""

OBSERVATION_META = "journeyman/observation"
"""Of a result: ``injected`` and ``spill`` where they are not None."""

DEADLINE_META = "journeyman/deadline_s"
"""Of a call: seconds that the caller will wait."""

FAULT_CODE = -32050
"""JSON-RPC code of a call whose machinery broke; ``data`` holds ``cause`` and ``type``."""

MAX_CHARS = 200_000
"""Of one answer. The harness cuts by tokens; this only bounds what a strange server can make us hold."""


def to_result(observation: Observation) -> CallToolResult:
    """The result that a client gets."""
    from mcp_types import CallToolResult, TextContent

    beside = {"injected": observation.injected, "spill": observation.spill}
    meta = {key: value for key, value in beside.items() if value is not None}
    return CallToolResult(
        content=[TextContent(type="text", text=observation.text.encode(errors="replace").decode())],
        is_error=observation.is_error,
        **({"_meta": {OBSERVATION_META: meta}} if meta else {}),
    )


def to_observation(result: CallToolResult, elapsed_s: float = 0.0) -> Observation:
    """The observation that a result stands for: its texts, and a note for whatever is no text. Never empty-handed."""
    meta = (result.meta or {}).get(OBSERVATION_META)
    meta = meta if isinstance(meta, Mapping) else {}
    text = "\n".join(_text(block) for block in result.content)
    if not result.content:
        is_given = result.structured_content is not None
        text = json.dumps(result.structured_content, ensure_ascii=False) if is_given else "(no content)"
    if len(text) > MAX_CHARS:
        text = f"{text[:MAX_CHARS]}\n[{len(text) - MAX_CHARS} characters left out]"
    injected, spill = meta.get("injected"), meta.get("spill")
    return Observation(
        text,
        is_error=result.is_error,
        injected=injected if isinstance(injected, str) else None,
        spill=spill if isinstance(spill, str) else None,
        elapsed_s=elapsed_s,
    )


def to_error(fault: SystemFault) -> MCPError:
    """The error that tells a client that the machinery broke."""
    from mcp.shared.exceptions import MCPError

    return MCPError(FAULT_CODE, str(fault), {"cause": fault.cause, "type": type(fault).__name__})


def fault_of(server: str, error: MCPError) -> McpFault | None:
    """The system fault behind an error, or None when it is of another kind."""
    if error.code != FAULT_CODE or not isinstance(error.data, Mapping):
        return None
    kind = McpSandboxFailed if error.data.get("cause") == "sandbox_failed" else McpHostFailed
    return kind(server, error.message)


def _text(block: Any) -> str:
    """One block of content as text."""
    if block.type == "text":
        return str(block.text)
    if block.type in ("image", "audio"):
        return f"[{block.type} of type {block.mime_type}, {len(block.data) * 3 // 4} bytes, not shown]"
    if block.type == "resource":
        inner = block.resource
        return (
            str(inner.text)
            if hasattr(inner, "text")
            else f"[resource {inner.uri} of type {inner.mime_type}, not shown]"
        )
    return f"[{block.type} {getattr(block, 'uri', '')}]"
