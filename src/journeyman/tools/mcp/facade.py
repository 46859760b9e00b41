"""A tool set as a server of the protocol: same names, schemas, answers and deadlines as in process.

Calls run one after another on one thread, because a tool set belongs to one trial. A system fault becomes an error of
the protocol that names its cause, so that the client can tell it from an answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

from journeyman.errors import SystemFault
from journeyman.tools.mcp.wire import DEADLINE_META, OWN_NAME, to_error, to_result
from journeyman.tools.toolset import ToolSet

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server
    from mcp_types import CallToolRequestParams, CallToolResult, ListToolsResult, ToolAnnotations

DEADLINE_S = 60.0
DEADLINES_S: Mapping[str, float] = {"code_exec": 300.0}
"""Of a call whose client names none."""

MAX_DEADLINE_S = 3600.0

HINTS: Mapping[str, Mapping[str, bool]] = {
    "pure": {"read_only_hint": True, "idempotent_hint": True},
    "probe": {"read_only_hint": True, "idempotent_hint": False},
    "idempotent": {"read_only_hint": False, "idempotent_hint": True},
    "unsafe": {"read_only_hint": False, "idempotent_hint": False},
}
"""Contract of a tool -> what clients are told, which decides whether they repeat a call that got lost."""


def facade(tools: ToolSet) -> Server[Any]:
    """The server. It neither opens nor closes the tools."""
    from mcp.server.lowlevel import Server
    from mcp_types import CallToolResult, ListToolsResult, TextContent, Tool

    from journeyman import __version__

    contracts: Mapping[str, str] = getattr(tools, "contracts", {})
    thread = ThreadPoolExecutor(1, thread_name_prefix="mcp-tools")
    offered = [
        Tool(
            name=name,
            description=tools.descriptions[name],
            input_schema=dict(schema),
            annotations=_hints(contracts.get(name)),
        )
        for name, schema in tools.schemas.items()
    ]

    async def list_tools(context: Any, params: Any) -> ListToolsResult:
        return ListToolsResult(tools=offered)

    async def call_tool(context: Any, params: CallToolRequestParams) -> CallToolResult:
        limit_s = _deadline_s(params)
        call = partial(tools.call, params.name, params.arguments or {}, deadline_s=limit_s)
        try:
            return to_result(await asyncio.get_running_loop().run_in_executor(thread, call))
        except SystemFault as fault:
            raise to_error(fault) from fault
        except KeyError:
            text = f"error: there is no tool {params.name}"
            return CallToolResult(content=[TextContent(type="text", text=text)], is_error=True)

    return Server(OWN_NAME, version=__version__, on_list_tools=list_tools, on_call_tool=call_tool)


def _hints(contract: str | None) -> ToolAnnotations | None:
    from mcp_types import ToolAnnotations

    return ToolAnnotations(**HINTS[contract]) if contract is not None else None


def _deadline_s(params: CallToolRequestParams) -> float:
    """Seconds that a call may take: the client's wish, or the tool's own."""
    wish = (params.meta or {}).get(DEADLINE_META)
    if isinstance(wish, int | float) and not isinstance(wish, bool) and 0 < wish <= MAX_DEADLINE_S:
        return float(wish)
    return DEADLINES_S.get(params.name, DEADLINE_S)
