"""One server as the tools of one trial see it: connected, listed, called, and brought back when it ends.

Lives on the loop of ``McpTools``. One task owns a connection from its first to its last message, because the SDK's
contexts may only be left by the task that entered them. A call that was in flight when a server ended is repeated only
where the server says that repeating it changes nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TextIO

from journeyman.tools.mcp.errors import McpServerLost, McpServerSilent
from journeyman.tools.mcp.servers import McpServer
from journeyman.tools.mcp.transport import TRANSPORTS, watched
from journeyman.tools.mcp.wire import DEADLINE_META, OWN_NAME, fault_of, to_observation
from journeyman.tools.protocol import Observation

if TYPE_CHECKING:
    from mcp.client.session import ClientSession
    from mcp.shared.exceptions import MCPError
    from mcp_types import Tool

LEAVE_S = 7.0
"""In which a connection can be left; the SDK ends a program that ignores the end of its input after 4 s."""

OWN_GRACE_S = 2.0
"""A server of ours keeps the deadline itself, so that its own words about it are waited for."""

MAX_PAGES = 100
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.05, 1.0

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Patience:
    """How much a server may fail before that is a fault of the machinery.

    Attributes:
        reconnect_s: in which a server that ended must be back.
        max_reconnects: per server and trial: one that keeps dying is no tool that fails.
        ping_s: in which a server that let a call pass its deadline must answer a ping.
    """

    reconnect_s: float = 30.0
    max_reconnects: int = 20
    ping_s: float = 5.0


@dataclass(eq=False)
class _Link:
    """One life of a connection."""

    session: ClientSession | None = None
    is_own: bool = False
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    cancel: Callable[[], None] = lambda: None
    task: asyncio.Task[None] | None = None


class Connection:
    """The connection to one server. ``tools`` is what the server offered last, by its own names."""

    def __init__(self, server: McpServer, patience: Patience) -> None:
        self.server, self.patience = server, patience
        self.tools: dict[str, Tool] = {}
        self.num_reconnects = self.num_listings = 0
        self._link: _Link | None = None
        self._links: set[asyncio.Task[None]] = set()
        self._coming_back: asyncio.Task[None] | None = None
        self._is_closing = False
        self._is_listing_stale = False
        self._stderr: TextIO = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed by ``close``

    async def connect(self, limit_s: float) -> None:
        """Reach the server and list its tools, within ``limit_s``. Raises whatever stood in the way."""
        import anyio

        scope = anyio.CancelScope()
        link = _Link(cancel=scope.cancel)
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        link.task = asyncio.create_task(self._own(link, ready, scope))
        self._links.add(link.task)
        link.task.add_done_callback(self._links.discard)
        try:
            async with asyncio.timeout(limit_s):
                await asyncio.shield(ready)
        except TimeoutError:
            link.cancel()
            raise TimeoutError(f"it did not answer within {limit_s:g} s") from None
        finally:
            ready.cancel()
        self._link = link

    async def call(self, tool: str, arguments: Mapping[str, Any], deadline_s: float) -> Observation:
        """Call a tool by the server's own name for it. Raises McpFault; all else is an observation."""
        from mcp.shared.exceptions import MCPError
        from mcp_types import REQUEST_TIMEOUT

        started = time.monotonic()
        meta: Any = {}
        for attempt in range(2):
            left_s = deadline_s - (time.monotonic() - started)
            link = await self._alive(left_s)
            left_s = deadline_s - (time.monotonic() - started)
            if link is None or link.session is None or left_s <= 0:
                return _error(f"the server of {tool} is being started again; call it once more")
            try:
                meta[DEADLINE_META] = left_s
                wait_s = left_s + (OWN_GRACE_S if link.is_own else 0.0)
                result = await link.session.call_tool(tool, dict(arguments), wait_s, meta=meta)
                return to_observation(result, time.monotonic() - started)
            except MCPError as error:
                fault = fault_of(self.server.name, error)
                if fault is not None:
                    raise fault from error
                if error.code == REQUEST_TIMEOUT:
                    return await self._late(link, tool, deadline_s)
                if not self._is_lost(link, error):
                    return _error(error.message or f"{tool} was refused")
            except (RuntimeError, ValueError) as error:  # a result that the protocol or its own schema forbids
                return _error(f"{tool} gave a malformed answer: {str(error)[:500]}")
            self._end(link)
            if attempt or not self.may_repeat(tool):
                break
        return _error(f"the server of {tool} ended before it answered; whether the call took effect is not known")

    def may_repeat(self, tool: str) -> bool:
        """Whether the server declares that calling the tool twice is no different from calling it once."""
        hints = self.tools[tool].annotations if tool in self.tools else None
        return hints is not None and bool(hints.read_only_hint or hints.idempotent_hint)

    async def refresh(self, limit_s: float) -> None:
        """List the tools again if the server said that they changed."""
        import anyio

        link = self._link
        if not self._is_listing_stale or link is None or link.session is None or link.ended.is_set():
            return
        self._is_listing_stale = False
        with contextlib.suppress(Exception), anyio.fail_after(limit_s):  # the call that follows finds out what is wrong
            self._take(await _listed(link.session))

    def drop(self) -> None:
        """End the connection as a broken network or a killed server would."""
        if self._link is not None:
            self._end(self._link)

    async def close(self) -> None:
        """End the connection and the server, if it was started for it."""
        self._is_closing = True
        if self._coming_back is not None:
            self._coming_back.cancel()
            await asyncio.gather(self._coming_back, return_exceptions=True)
        if self._link is not None:
            self._link.ended.set()  # it leaves by itself: says goodbye, closes the input of a program, waits
        if self._links:
            await asyncio.wait(self._links, timeout=LEAVE_S)
        for task in self._links:
            task.cancel()
        await asyncio.gather(*self._links, return_exceptions=True)
        self._stderr.close()

    def last_words(self) -> str:
        """The end of what a started server wrote to its standard error."""
        self._stderr.seek(0)
        lines = [line.strip() for line in self._stderr.read().splitlines() if line.strip()]
        return " | ".join(lines[-3:])[-500:]

    def _take(self, tools: dict[str, Tool]) -> None:
        self.tools, self._is_listing_stale = tools, False
        self.num_listings += 1

    async def _own(self, link: _Link, ready: asyncio.Future[None], scope: Any) -> None:
        """The task of one life: open, say so, wait for the end, leave everything as it was entered."""
        with scope:
            try:
                async with AsyncExitStack() as stack:
                    streams = TRANSPORTS[self.server.transport](self.server, self._stderr)
                    read, write = await stack.enter_async_context(streams)
                    read = await stack.enter_async_context(watched(read, link.ended))
                    session = await stack.enter_async_context(_session(read, write, self._noticed))
                    await _introduce(session)
                    self._take(await _listed(session))
                    link.session = session
                    link.is_own = session.server_info is not None and session.server_info.name == OWN_NAME
                    if not ready.done():
                        ready.set_result(None)
                    await link.ended.wait()
            except Exception as error:
                if not ready.done():
                    ready.set_exception(ConnectionError(_reason(error)))
        link.ended.set()
        if not ready.done():
            ready.set_exception(ConnectionError("it was given up"))
        if link.session is not None and link is self._link:
            self._come_back()

    async def _alive(self, limit_s: float) -> _Link | None:
        """The link, brought back if it ended; None when that takes longer than ``limit_s``. Raises McpServerLost."""
        if self._link is not None and not self._link.ended.is_set():
            return self._link
        self._come_back()
        if self._coming_back is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(limit_s, 0.0)):
                    await asyncio.shield(self._coming_back)
                return self._link
        return None

    def _come_back(self) -> None:
        """Start to reconnect at once, beside whatever the policy does meanwhile; nothing when that has begun."""
        if not self._is_closing and (self._coming_back is None or self._coming_back.done()):
            if self._link is not None and not self._link.ended.is_set():
                return
            self._coming_back = asyncio.create_task(self._reconnect())
            self._coming_back.add_done_callback(lambda task: task.cancelled() or task.exception())

    async def _reconnect(self) -> None:
        if self.num_reconnects == self.patience.max_reconnects:
            raise McpServerLost(self.server.name, f"it ended {self.num_reconnects + 1} times in this trial")
        self.num_reconnects += 1
        until, wait_s = time.monotonic() + self.patience.reconnect_s, _FIRST_WAIT_S
        log.info("tool server %r ended; it is started again", self.server.name)
        while True:
            try:
                await self.connect(max(0.1, until - time.monotonic()))
                return
            except (OSError, TimeoutError) as error:
                if time.monotonic() + wait_s > until:
                    raise McpServerLost(self.server.name, f"{error}; {self.last_words()}") from error
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, _LONGEST_WAIT_S)

    async def _late(self, link: _Link, tool: str, deadline_s: float) -> Observation:
        """After a missed deadline: the policy's business while the server lives, else a fault and a new server."""
        import anyio

        assert link.session is not None
        try:
            with anyio.fail_after(self.patience.ping_s):
                await link.session.send_ping()
        except Exception as error:
            self._end(link)
            raise McpServerSilent(self.server.name, tool, deadline_s) from error
        return _error(f"{tool} did not answer within {deadline_s:g} s; the call was cancelled")

    def _is_lost(self, link: _Link, error: MCPError) -> bool:
        """Whether an error means that the connection or its session is over."""
        from mcp_types import CONNECTION_CLOSED, INVALID_REQUEST

        if link.ended.is_set() or error.code == CONNECTION_CLOSED:
            return True
        return self.server.transport != "stdio" and abs(error.code) == -INVALID_REQUEST

    def _end(self, link: _Link) -> None:
        link.ended.set()
        link.cancel()
        if link is self._link:
            self._come_back()

    async def _noticed(self, message: Any) -> None:
        from mcp_types import ToolListChangedNotification

        if isinstance(message, ToolListChangedNotification):
            self._is_listing_stale = True


def _session(read: Any, write: Any, noticed: Any) -> ClientSession:
    from mcp.client.session import ClientSession
    from mcp_types import Implementation

    from journeyman import __version__

    return ClientSession(
        read, write, message_handler=noticed, client_info=Implementation(name="journeyman", version=__version__)
    )


async def _introduce(session: ClientSession) -> None:
    """The handshake; a server that only knows the newer protocol without one is asked what it is instead."""
    from mcp.shared.exceptions import MCPError
    from mcp_types import METHOD_NOT_FOUND, UNSUPPORTED_PROTOCOL_VERSION

    try:
        await session.initialize()
    except MCPError as error:
        if error.code not in (METHOD_NOT_FOUND, UNSUPPORTED_PROTOCOL_VERSION):
            raise
        await session.discover()


async def _listed(session: ClientSession) -> dict[str, Tool]:
    """Every tool by name, all pages."""
    from mcp_types import PaginatedRequestParams

    found: dict[str, Tool] = {}
    cursor = None
    for _ in range(MAX_PAGES):
        page = await session.list_tools(params=PaginatedRequestParams(cursor=cursor) if cursor else None)
        found.update((tool.name, tool) for tool in page.tools)
        cursor = page.next_cursor
        if not cursor:
            break
    return found


def _reason(error: BaseException) -> str:
    """The first plain error inside groups, in words."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    text = str(error).strip()
    return text or type(error).__name__


def _error(text: str) -> Observation:
    return Observation(f"error: {text}", is_error=True)
