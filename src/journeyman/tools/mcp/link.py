"""One life of a connection to a server: opened, introduced, its tools listed, and left as it was entered.

One task owns it from its first to its last message, because the SDK's contexts may only be left by the task that
entered them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, TextIO

from journeyman.tools.mcp.servers import McpServer
from journeyman.tools.mcp.transport import TRANSPORTS, watched
from journeyman.tools.mcp.wire import OWN_NAME

if TYPE_CHECKING:
    from mcp.client.session import ClientSession
    from mcp_types import Tool

MAX_PAGES = 100


class Link:
    """A connection while it lasts.

    Args:
        server: what to reach.
        stderr: where a started program's standard error goes.

    Attributes:
        session: the SDK's; None until ``open`` has returned.
        tools: by the server's own names, as listed last.
        is_own: the server is one of ours.
        is_listing_stale: the server has said that its tools changed.
        ended: set when the other side closed, or when it is to be left.
        task: its owner; done when everything has been left.
    """

    def __init__(self, server: McpServer, stderr: TextIO) -> None:
        import anyio

        self.server, self._stderr = server, stderr
        self.session: ClientSession | None = None
        self.tools: dict[str, Tool] = {}
        self.is_own = self.is_listing_stale = False
        self.ended = asyncio.Event()
        self._scope = anyio.CancelScope()
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.task: asyncio.Task[None] = asyncio.create_task(self._own())

    @property
    def is_alive(self) -> bool:
        return self.session is not None and not self.ended.is_set()

    async def opened(self, limit_s: float) -> None:
        """Wait until the server has listed its tools. Raises ConnectionError or TimeoutError; it is over then."""
        try:
            async with asyncio.timeout(limit_s):
                await asyncio.shield(self._ready)
        except TimeoutError:
            raise TimeoutError(f"it did not answer within {limit_s:g} s") from None
        finally:
            if not self.is_alive:
                self._ready.cancel()
                self.cut()
        if not self.is_alive:
            raise ConnectionError("it ended again at once")

    async def list_again(self) -> None:
        """Ask for the tools once more."""
        if self.session is not None:
            self.is_listing_stale = False
            self.tools = await _listed(self.session)

    def leave(self) -> None:
        """End it in the order in which it was entered: say goodbye, close the input of a program, wait for its end."""
        self.ended.set()

    def cut(self) -> None:
        """End it without a word."""
        self.ended.set()
        self._scope.cancel()

    def on_end(self, then: Callable[[], None]) -> None:
        """Call ``then`` when everything has been left."""
        self.task.add_done_callback(lambda _: then())

    async def _own(self) -> None:
        from mcp.client.session import ClientSession
        from mcp_types import Implementation

        from journeyman import __version__

        problem = "it was given up"
        with self._scope:
            try:
                async with AsyncExitStack() as stack:
                    streams = TRANSPORTS[self.server.transport](self.server, self._stderr)
                    read, write = await stack.enter_async_context(streams)
                    read = await stack.enter_async_context(watched(read, self.ended))
                    about = Implementation(name=OWN_NAME, version=__version__)
                    session = ClientSession(read, write, message_handler=self._noticed, client_info=about)
                    await stack.enter_async_context(session)
                    await _introduce(session)
                    self.tools = await _listed(session)
                    self.is_own = session.server_info is not None and session.server_info.name == OWN_NAME
                    self.session = session
                    if not self._ready.done():
                        self._ready.set_result(None)
                    await self.ended.wait()
            except Exception as error:
                problem = _reason(error)
        self.ended.set()
        if not self._ready.done():
            self._ready.set_exception(ConnectionError(problem))
            self._ready.exception()  # whoever waits is told; nobody else need complain

    async def _noticed(self, message: Any) -> None:
        from mcp_types import ToolListChangedNotification

        if isinstance(message, ToolListChangedNotification):
            self.is_listing_stale = True


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
