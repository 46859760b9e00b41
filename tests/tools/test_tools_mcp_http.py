"""Servers over HTTP: sessions that are dropped, servers that restart, the older SSE transport, dropped connections."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from journeyman.tools.fault_rules import plan_of
from journeyman.tools.faults import FaultyTools
from journeyman.tools.mcp.connection import Patience
from journeyman.tools.mcp.errors import McpServerLost
from journeyman.tools.mcp.facade import facade
from journeyman.tools.mcp_client import McpTools
from journeyman.tools.protocol import Observation

pytest.importorskip("mcp", reason="the extra mcp is not installed")
uvicorn = pytest.importorskip("uvicorn")


class Counted:
    """Tools that note what they were asked."""

    def __init__(self) -> None:
        self.schemas = {"look": {"type": "object"}, "act": {"type": "object"}}
        self.descriptions = {"look": "Looks.", "act": "Acts."}
        self.contracts = {"look": "probe", "act": "unsafe"}
        self.calls: list[str] = []

    def call(self, name: str, arguments: Any, *, deadline_s: float = 60.0) -> Observation:
        self.calls.append(name)
        return Observation(f"{name} {len(self.calls)}")

    def close(self) -> None:
        pass


class Door:
    """In front of an application: forgets the session of the next calls, as a server that was restarted does."""

    def __init__(self, app: Any) -> None:
        self.app, self.num_drops, self.num_initialized = app, 0, 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or scope["method"] != "POST":
            return await self.app(scope, receive, send)
        message = await receive()
        request = json.loads(message["body"])
        self.num_initialized += request.get("method") == "initialize"
        if request.get("method") == "tools/call" and self.num_drops:
            self.num_drops -= 1
            error = {"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32600, "message": "Session terminated"}}
            headers = [(b"content-type", b"application/json")]
            await send({"type": "http.response.start", "status": 404, "headers": headers})
            return await send({"type": "http.response.body", "body": json.dumps(error).encode()})
        waiting = [message]

        async def replay() -> Any:
            return waiting.pop() if waiting else await receive()

        return await self.app(scope, replay, send)


@contextlib.contextmanager
def listening(app: Any, port: int = 0) -> Iterator[int]:
    """A server in a thread; its port."""
    with socket.create_server(("127.0.0.1", port)) as listener:
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join()


@contextlib.contextmanager
def client(port: int, path: str = "mcp", transport: str = "http", **patience: float) -> Iterator[McpTools]:
    config = {"web": {"transport": transport, "url": f"http://127.0.0.1:{port}/{path}"}}
    tools = McpTools(config, patience=Patience(**patience))
    try:
        yield tools
    finally:
        tools.close()


def test_a_dropped_session_is_opened_again_and_the_call_repeated_where_that_is_harmless():
    counted = Counted()
    door = Door(facade(counted).streamable_http_app())
    with listening(door) as port, client(port) as tools:
        assert tools.call("look", {}).text == "look 1"
        door.num_drops = 1
        assert tools.call("look", {}).text == "look 2"
        assert (door.num_initialized, tools.num_reconnects) == (2, {"web": 1})


def test_a_dropped_session_is_an_error_for_a_call_that_may_not_be_repeated():
    counted = Counted()
    door = Door(facade(counted).streamable_http_app())
    with listening(door) as port, client(port) as tools:
        door.num_drops = 1
        seen = tools.call("act", {})
        assert seen.is_error and "whether the call took effect is not known" in seen.text
        assert tools.call("act", {}).text == "act 1"
        assert door.num_initialized == 2


def test_a_session_that_is_dropped_again_at_once_is_an_error_and_not_a_loop():
    door = Door(facade(Counted()).streamable_http_app())
    with listening(door) as port, client(port) as tools:
        door.num_drops = 2
        assert tools.call("look", {}).is_error
        assert tools.call("look", {}).text == "look 1"


@pytest.mark.thorough
def test_a_server_that_restarts_is_found_again_and_one_that_does_not_is_named():
    counted = Counted()
    with contextlib.ExitStack() as stack:
        with listening(facade(counted).streamable_http_app()) as port:
            tools = stack.enter_context(client(port, reconnect_s=4))
            assert tools.call("look", {}).text == "look 1"
        with listening(facade(counted).streamable_http_app(), port):
            assert tools.call("look", {}).text == "look 2"
        with pytest.raises(McpServerLost, match="'web' was lost"):
            for _ in range(2):  # the first may still be the error of the call that met the closed port
                tools.call("look", {}, deadline_s=20)


def test_the_older_sse_transport_is_spoken_too():
    from mcp.server.sse import SseServerTransport
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Mount, Route

    server, messages = facade(Counted()), SseServerTransport("/messages/")

    async def stream(request: Request) -> Response:
        async with messages.connect_sse(request.scope, request.receive, request._send) as (read, write):
            await server.run(read, write, server.create_initialization_options())
        return Response()

    app = Starlette(routes=[Route("/sse", stream), Mount("/messages/", app=messages.handle_post_message)])
    with listening(app) as port, client(port, "sse", "sse") as tools:
        assert tools.call("look", {}).text == "look 1"


def test_an_injected_drop_ends_the_connection_in_earnest_and_the_next_call_brings_it_back():
    rules = {"error_rules": [{"error_type": "dropped_connection", "tool": "act", "max_occurrences": 1}]}
    door = Door(facade(Counted()).streamable_http_app())
    with listening(door) as port, client(port) as inner:
        tools = FaultyTools(inner, [plan_of(rules)])
        assert tools.call("act", {}).injected == "dropped_connection"
        assert tools.call("act", {}).text == "act 1"
        assert door.num_initialized == 2
