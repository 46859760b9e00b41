"""Serve a tool set over standard streams or HTTP until the client, the parent process or a signal ends it.

Standard streams: the end of the input, SIGTERM, SIGINT or the death of the parent end the server, whichever comes
first. HTTP: SIGTERM and SIGINT, and the death of the parent where that is asked for.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import os
import signal
import socket
import sys
from collections.abc import Callable
from typing import Any

from journeyman.errors import InputError
from journeyman.tools.mcp.facade import facade
from journeyman.tools.toolset import ToolSet

LOOPBACK = ("127.0.0.1", "::1", "localhost")
PATH = "/mcp"
PARENT_POLL_S = 0.5
INTERRUPTED = 130


def serve_stdio(tools: ToolSet, close: Callable[[], None]) -> int:
    """Serve one client over standard input and output; returns when its input ends.

    Args:
        tools: what is served.
        close: gives everything back; also called when a signal or the parent's death ends this process, which then
            exits at once, since a thread still waits for input.
    """
    try:
        asyncio.run(_stdio(tools, close))
    finally:
        close()
    return 0


async def _stdio(tools: ToolSet, close: Callable[[], None]) -> None:
    from mcp.server.stdio import stdio_server

    server, loop = facade(tools), asyncio.get_running_loop()
    told: asyncio.Future[int] = loop.create_future()

    def tell(code: int) -> None:
        if not told.done():
            told.set_result(code)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, tell, INTERRUPTED if number == signal.SIGINT else 128 + number)
    watch = asyncio.create_task(_when_orphaned(os.getppid(), lambda: tell(0)))
    async with stdio_server() as (read, write):
        run = asyncio.create_task(server.run(read, write, server.create_initialization_options()))
        run.add_done_callback(lambda _: tell(0))
        await told
        if not run.done():
            try:
                close()
            finally:
                os._exit(told.result())
        await run
    watch.cancel()


async def _when_orphaned(parent: int, end: Callable[[], None]) -> None:
    """Call ``end`` when the parent process is gone."""
    while os.getppid() == parent:
        await asyncio.sleep(PARENT_POLL_S)
    end()


def serve_http(
    tools: ToolSet, host: str, port: int, *, token: str | None = None, with_parent: bool = False, as_json: bool = False
) -> int:
    """Serve any number of clients, which share the tools and their state, over streamable HTTP; prints the address.

    Args:
        tools: what is served.
        host: address; others than loopback need a token.
        port: 0 for any free one.
        token: that requests must carry as ``Authorization: Bearer``; None asks for none.
        with_parent: end when the parent process does.
        as_json: print ``{"url": ...}``.

    Raises:
        InputError: the address cannot be used.
    """
    if host not in LOOPBACK and not token:
        raise InputError("--http", f"{host} is open to others", hint="give --token too, then it is allowed")
    try:
        listener = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        raise InputError("--http", f"{host}:{port} cannot be used: {error.strerror or error}") from error
    with listener:
        shown = f"[{host}]" if ":" in host else host
        url = f"http://{shown}:{listener.getsockname()[1]}{PATH}"
        sys.stdout.write((json.dumps({"url": url}) if as_json else f"{url}  (Ctrl-C ends)") + "\n")
        sys.stdout.flush()
        before = signal.signal(signal.SIGTERM, _interrupt)  # uvicorn hands the signal on once it has closed
        try:
            asyncio.run(_http(tools, host, listener, token, with_parent))
        except KeyboardInterrupt:
            pass
        finally:
            signal.signal(signal.SIGTERM, before)
    return 0


async def _http(tools: ToolSet, host: str, listener: socket.socket, token: str | None, with_parent: bool) -> None:
    import uvicorn

    app: Any = facade(tools).streamable_http_app(streamable_http_path=PATH, host=host)
    if token:
        app = _guarded(app, token)
    config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=2)
    server = uvicorn.Server(config)

    def end() -> None:
        server.should_exit = True

    watch = asyncio.create_task(_when_orphaned(os.getppid(), end)) if with_parent else None
    await server.serve(sockets=[listener])
    if watch is not None:
        watch.cancel()


def _guarded(app: Any, token: str) -> Any:
    """The application for requests that carry the token; others get 401."""

    async def guard(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            given = dict(scope["headers"]).get(b"authorization", b"").removeprefix(b"Bearer ")
            if not hmac.compare_digest(given, token.encode()):
                await send(
                    {"type": "http.response.start", "status": 401, "headers": [(b"www-authenticate", b"Bearer")]}
                )
                await send({"type": "http.response.body", "body": b"this server wants its token"})
                return
        await app(scope, receive, send)

    return guard


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt
