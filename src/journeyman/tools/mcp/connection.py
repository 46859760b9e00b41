"""One server as the tools of one trial see it: called, and brought back when it ends.

Lives on the loop of ``McpTools``. A call that was in flight when a server ended is repeated only where the server says
that repeating it changes nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TextIO

from journeyman.tools.mcp.errors import McpServerLost, McpServerSilent
from journeyman.tools.mcp.link import Link
from journeyman.tools.mcp.servers import McpServer
from journeyman.tools.mcp.wire import DEADLINE_META, fault_of, to_observation
from journeyman.tools.protocol import Observation

if TYPE_CHECKING:
    from mcp.shared.exceptions import MCPError
    from mcp_types import Tool

LEAVE_S = 7.0
"""In which a connection can be left; the SDK ends a program that ignores the end of its input after 4 s."""

OWN_GRACE_S = 2.0
"""A server of ours keeps the deadline itself, so that its own words about it are waited for."""

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


class Connection:
    """The connection to one server. ``num_listings`` grows whenever ``tools`` may have changed."""

    def __init__(self, server: McpServer, patience: Patience) -> None:
        self.server, self.patience = server, patience
        self.num_reconnects = self.num_listings = 0
        self._link: Link | None = None
        self._spare: Link | None = None
        self._links: set[asyncio.Task[None]] = set()
        self._coming_back: asyncio.Task[None] | None = None
        self._is_closing = False
        self._stderr: TextIO = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed by ``close``

    @property
    def tools(self) -> Mapping[str, Tool]:
        """What the server offered last, by its own names."""
        return self._link.tools if self._link is not None else {}

    async def connect(self, limit_s: float) -> None:
        """Reach the server and list its tools. Raises ConnectionError, TimeoutError or OSError."""
        link = self._new_link()
        await link.opened(limit_s)
        self._adopt(link)

    async def call(self, tool: str, arguments: Mapping[str, Any], deadline_s: float) -> Observation:
        """Call a tool by the server's own name for it. Raises McpFault; all else is an observation."""
        from mcp.shared.exceptions import MCPError
        from mcp_types import REQUEST_TIMEOUT

        started = time.monotonic()
        meta: Any = {}
        for attempt in range(2):
            link = await self._alive(deadline_s - (time.monotonic() - started))
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
            self._lose(link)
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
        if link is None or not link.is_alive or not link.is_listing_stale:
            return
        with contextlib.suppress(Exception), anyio.fail_after(limit_s):  # the call that follows finds out what is wrong
            await link.list_again()
            self.num_listings += 1

    def drop(self) -> None:
        """End the connection as a broken network or a killed server would."""
        if self._link is not None:
            self._lose(self._link)

    async def close(self) -> None:
        """End the connection and the server, if it was started for it."""
        self._is_closing = True
        if self._coming_back is not None:
            self._coming_back.cancel()
            await asyncio.gather(self._coming_back, return_exceptions=True)
        for link in (self._link, self._spare):
            if link is not None:
                link.leave()
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

    def _new_link(self) -> Link:
        link = Link(self.server, self._stderr)
        self._links.add(link.task)
        link.task.add_done_callback(self._links.discard)
        return link

    def _adopt(self, link: Link) -> None:
        """From now on this link is the server; where a stand-by is asked for, the next one is started beside it."""
        self._link, self._spare = link, None
        self.num_listings += 1
        link.on_end(lambda: self._come_back() if link is self._link else None)
        if self.server.has_standby and not self._is_closing:
            self._spare = self._new_link()

    async def _alive(self, limit_s: float) -> Link | None:
        """The link, brought back if it ended; None when that takes longer than ``limit_s``. Raises McpServerLost."""
        if self._link is not None and self._link.is_alive:
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
        is_needed = not self._is_closing and not (self._link is not None and self._link.is_alive)
        if is_needed and (self._coming_back is None or self._coming_back.done()):
            self._coming_back = asyncio.create_task(self._reconnect())
            self._coming_back.add_done_callback(lambda task: task.cancelled() or task.exception())

    async def _reconnect(self) -> None:
        if self.num_reconnects == self.patience.max_reconnects:
            raise McpServerLost(self.server.name, f"it ended {self.num_reconnects + 1} times in this trial")
        self.num_reconnects += 1
        until, wait_s = time.monotonic() + self.patience.reconnect_s, _FIRST_WAIT_S
        log.info("tool server %r ended; it is started again", self.server.name)
        while True:
            link, self._spare = self._spare or self._new_link(), None
            try:
                await link.opened(max(0.1, until - time.monotonic()))
                self._adopt(link)
                return
            except (OSError, TimeoutError) as error:
                if time.monotonic() + wait_s > until:
                    raise McpServerLost(self.server.name, f"{error}; {self.last_words()}") from error
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, _LONGEST_WAIT_S)

    async def _late(self, link: Link, tool: str, deadline_s: float) -> Observation:
        """After a missed deadline: the policy's business while the server lives, else a fault and a new server."""
        import anyio

        assert link.session is not None
        try:
            with anyio.fail_after(self.patience.ping_s):
                await link.session.send_ping()
        except Exception as error:
            self._lose(link)
            raise McpServerSilent(self.server.name, tool, deadline_s) from error
        return _error(f"{tool} did not answer within {deadline_s:g} s; the call was cancelled")

    def _is_lost(self, link: Link, error: MCPError) -> bool:
        """Whether an error means that the connection or its session is over."""
        from mcp_types import CONNECTION_CLOSED, INVALID_REQUEST

        if link.ended.is_set() or error.code == CONNECTION_CLOSED:
            return True
        return self.server.transport != "stdio" and abs(error.code) == -INVALID_REQUEST

    def _lose(self, link: Link) -> None:
        link.cut()
        if link is self._link:
            self._come_back()


def _error(text: str) -> Observation:
    return Observation(f"error: {text}", is_error=True)
