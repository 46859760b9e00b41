"""``McpTools``: any servers of the Model Context Protocol as the tools of one trial.

The protocol's SDK is asynchronous, a harness is not: a thread of its own holds the connections. Servers that are given
as programs are started here, one each per trial, and end with it.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Coroutine, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from journeyman.documents.node import nearest_of
from journeyman.errors import EnvironmentMissing, InputError
from journeyman.tools.mcp.connection import OWN_GRACE_S, Connection, Patience
from journeyman.tools.mcp.errors import McpConnectFailed, McpServerSilent
from journeyman.tools.mcp.servers import McpServer, servers_of
from journeyman.tools.protocol import Observation

T = TypeVar("T")

CONNECT_DEADLINE_S = 60.0
"""For all servers together, which start side by side."""

SLACK_S = 5.0
"""Beyond every other bound, for a loop that is busy."""

CLOSE_DEADLINE_S = 10.0
DEFAULT_PATIENCE = Patience()


class McpTools:
    """A ``ToolSet`` over tool servers.

    Args:
        config: servers, or a document that ``servers_of`` reads: ``mcpServers`` objects, Harbor's list.
        where: file or field of that document, for errors.
        connect_deadline_s: in which every server must have listed its tools.
        patience: how much a server may fail during the trial.

    Attributes:
        servers: what the configuration names.

    Raises:
        InputError: the configuration cannot be used, or two servers offer a tool of the same name.
        McpConnectFailed: servers that cannot be reached, all of them by name; nothing was left running.
        EnvironmentMissing: the SDK is not installed.
    """

    def __init__(
        self,
        config: Any,
        *,
        where: str = "mcpServers",
        connect_deadline_s: float = CONNECT_DEADLINE_S,
        patience: Patience = DEFAULT_PATIENCE,
    ) -> None:
        self.patience = patience
        self.servers = _servers(config, where)
        _require_sdk()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="mcp-tools", daemon=True)
        self._is_closed = False
        self._connections: dict[str, Connection] = {}
        self._places: dict[str, tuple[Connection, str]] = {}
        self._thread.start()
        try:
            self._run(self._connect(connect_deadline_s), connect_deadline_s + SLACK_S)
            self._place()
        except BaseException:
            self.close()
            raise

    @property
    def schemas(self) -> Mapping[str, Mapping[str, Any]]:
        """Name -> JSON schema of the arguments, server by server in the order of the configuration."""
        return {name: tool.input_schema for name, tool in self._tools().items()}

    @property
    def descriptions(self) -> Mapping[str, str]:
        """Name -> what the server says that the tool does."""
        return {name: tool.description or "" for name, tool in self._tools().items()}

    @property
    def num_reconnects(self) -> Mapping[str, int]:
        """Server -> how often it had to be brought back."""
        return {name: connection.num_reconnects for name, connection in self._connections.items()}

    @property
    def contracts(self) -> Mapping[str, str]:
        """Name -> contract, as far as the server declares one; a tool without hints is ``unsafe``."""
        found = {}
        for name, tool in self._tools().items():
            hints = tool.annotations
            reads, repeats = bool(hints and hints.read_only_hint), bool(hints and hints.idempotent_hint)
            found[name] = "pure" if reads and repeats else "probe" if reads else "idempotent" if repeats else "unsafe"
        return found

    def call(self, name: str, arguments: Mapping[str, Any], *, deadline_s: float = 60.0) -> Observation:
        """See ``ToolSet.call``.

        A server that ends during the call is started again at once. The call is repeated once, within its deadline,
        where the server declares it harmless (``readOnlyHint``, ``idempotentHint``), else reported as a tool error. A
        call that misses its deadline is a tool error while its server answers a ping.

        Raises:
            McpServerLost, McpServerSilent, McpHostFailed: the machinery broke.
        """
        if self._is_closed:
            raise RuntimeError("these tools are closed")
        started = time.monotonic()
        place = self._places.get(name)
        if place is None:
            near = nearest_of(name, self._places)
            hint = f"did you mean {', '.join(near)}?" if near else f"there are {', '.join(self._places)}"
            return Observation(f"error: no tool {name!r}; {hint}", is_error=True)
        connection, tool = place
        try:
            limit_s = deadline_s + OWN_GRACE_S + self.patience.ping_s + SLACK_S
            seen = self._run(self._call(connection, tool, arguments, deadline_s), limit_s)
        except TimeoutError:
            raise McpServerSilent(connection.server.name, tool, deadline_s) from None
        return replace(seen, elapsed_s=time.monotonic() - started)

    def drop_connection(self, name: str) -> None:
        """End the connection behind a tool, for faults and tests; the next call has to bring it back."""
        connection, _ = self._places[name]
        self._loop.call_soon_threadsafe(connection.drop)

    def close(self) -> None:
        """End every connection and every server that was started; a second call does nothing."""
        if self._is_closed:
            return
        self._is_closed = True
        with contextlib.suppress(TimeoutError):
            self._run(self._close(), CLOSE_DEADLINE_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(CLOSE_DEADLINE_S)
        if not self._thread.is_alive():
            self._loop.close()

    def _tools(self) -> dict[str, Any]:
        """Public name -> what its server says of the tool; one that a restarted server no longer has is left out."""
        placed = self._places.items()
        return {name: connection.tools[tool] for name, (connection, tool) in placed if tool in connection.tools}

    def _run(self, work: Coroutine[Any, Any, T], limit_s: float) -> T:
        """Run on the loop's thread and wait; TimeoutError when even that does not end."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result(limit_s)
        except BaseException:
            future.cancel()
            raise

    async def _connect(self, limit_s: float) -> None:
        self._connections = {server.name: Connection(server, self.patience) for server in self.servers}
        done = await asyncio.gather(
            *(connection.connect(limit_s) for connection in self._connections.values()), return_exceptions=True
        )
        failed: dict[str, str] = {}
        for connection, outcome in zip(self._connections.values(), done, strict=True):
            if isinstance(outcome, BaseException):
                words = connection.last_words()
                failed[connection.server.name] = f"{outcome}{f' ({words})' if words else ''}"
            elif not connection.tools:
                failed[connection.server.name] = "it offers no tools"
        if failed:
            raise McpConnectFailed(failed)

    async def _call(
        self, connection: Connection, tool: str, arguments: Mapping[str, Any], deadline_s: float
    ) -> Observation:
        await connection.refresh(deadline_s)
        if tool not in connection.tools:
            return Observation(f"error: its server no longer offers {tool}", is_error=True)
        num_listings = connection.num_listings
        seen = await connection.call(tool, arguments, deadline_s)
        if connection.num_listings != num_listings:
            self._place()
        return seen

    async def _close(self) -> None:
        await asyncio.gather(*(connection.close() for connection in self._connections.values()), return_exceptions=True)

    def _place(self) -> None:
        """Which public name stands for which tool of which server."""
        places: dict[str, tuple[Connection, str]] = {}
        for connection in self._connections.values():
            server = connection.server
            for tool in connection.tools:
                name = f"{server.name}_{tool}" if server.has_prefix else tool
                if name in places:
                    other = places[name][0].server.name
                    raise InputError(
                        f"mcpServers.{server.name}",
                        f"offers a tool {name!r}, and so does {other!r}",
                        hint="set prefix = true for one of them",
                    )
                places[name] = (connection, tool)
        self._places = places


def _servers(config: Any, where: str) -> tuple[McpServer, ...]:
    if isinstance(config, McpServer):
        return (config,)
    if isinstance(config, list | tuple) and config and all(isinstance(server, McpServer) for server in config):
        return tuple(config)
    return servers_of(config, where=where)


def _require_sdk() -> None:
    try:
        import mcp  # noqa: F401
    except ImportError as error:
        raise EnvironmentMissing("tool servers need the protocol's SDK; pip install 'journeyman[mcp]'") from error
