"""The pair of message streams to one server, by transport, and the end of them as an event."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, TextIO

from journeyman.sandbox.leash import leashed
from journeyman.tools.mcp.servers import McpServer, Transport

Streams = AbstractAsyncContextManager[tuple[Any, Any]]


def _stdio(server: McpServer, stderr: TextIO) -> Streams:
    from mcp.client.stdio import StdioServerParameters, stdio_client

    command = str(server.command)
    path = server.env.get("PATH", os.environ.get("PATH", os.defpath))
    place = str(Path(server.cwd or ".", command)) if os.sep in command else command
    if server.cwd is not None and not Path(server.cwd).is_dir():
        raise FileNotFoundError(f"its working directory {server.cwd} does not exist")
    if shutil.which(place, path=path) is None:
        raise FileNotFoundError(f"there is no program {command!r}{'' if os.sep in command else ' on PATH'}")
    words = [command, *server.args]
    if sys.platform == "linux":  # elsewhere the SDK's own end of a program has to do
        words = leashed(words)
    parameters = StdioServerParameters(command=words[0], args=words[1:], env=dict(server.env), cwd=server.cwd)
    return stdio_client(parameters, errlog=stderr)


def _http(server: McpServer, stderr: TextIO) -> Streams:
    return _streamable(server)


@asynccontextmanager
async def _streamable(server: McpServer) -> AsyncIterator[tuple[Any, Any]]:
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    limits = httpx2.Timeout(30.0, read=None)  # how long an answer may take is said by each call
    async with (
        httpx2.AsyncClient(headers=dict(server.headers), timeout=limits) as client,
        streamable_http_client(str(server.url), http_client=client) as streams,
    ):
        yield streams[0], streams[1]


def _sse(server: McpServer, stderr: TextIO) -> Streams:
    from mcp.client.sse import sse_client

    return sse_client(str(server.url), headers=dict(server.headers))


TRANSPORTS: dict[Transport, Callable[[McpServer, TextIO], Streams]] = {"stdio": _stdio, "http": _http, "sse": _sse}
"""Transport -> how its streams are opened. A program is started on a leash, so that it cannot outlive this process."""


@asynccontextmanager
async def watched(read: Any, ended: asyncio.Event) -> AsyncIterator[Any]:
    """The same messages; ``ended`` is set when the other side has closed them, before anybody tries to use it."""
    import anyio

    send, receive = anyio.create_memory_object_stream[Any](0)

    async def pump() -> None:
        async with send:
            try:
                async for message in read:
                    await send.send(message)
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                return
            finally:
                ended.set()

    async with anyio.create_task_group() as group:
        group.start_soon(pump)
        try:
            yield receive
        finally:
            receive.close()
            group.cancel_scope.cancel()
