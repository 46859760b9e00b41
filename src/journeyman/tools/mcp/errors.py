"""What breaks at the boundary to a tool server. None of it is the policy's doing, none of it becomes a reward.

McpFault (cause tool_host_failed)
  McpConnectFailed   servers that could not be reached when the trial started
  McpServerLost      a server ended and could not be brought back
  McpServerSilent    a server passed a deadline and then did not even answer a ping
  McpHostFailed      the server says that its own machinery broke; McpSandboxFailed when that was its sandbox
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from journeyman.errors import SystemFault


class McpFault(SystemFault):
    """Base of the errors of tool servers."""

    cause: ClassVar[str] = "tool_host_failed"


class McpConnectFailed(McpFault):
    """Servers did not start or answer, or would not say what they offer; every one of them is named.

    Args:
        reasons: server -> why.
    """

    def __init__(self, reasons: Mapping[str, str]) -> None:
        self.reasons = dict(reasons)
        super().__init__("; ".join(f"tool server {name!r}: {reason}" for name, reason in self.reasons.items()))


class McpServerLost(McpFault):
    """A server that had answered ended and did not come back.

    Args:
        server: its name.
        reason: of the last attempt.
    """

    def __init__(self, server: str, reason: str) -> None:
        self.server, self.reason = server, reason
        super().__init__(f"tool server {server!r} was lost: {reason}")


class McpServerSilent(McpFault):
    """A server let a call pass its deadline and then answered no ping.

    Args:
        server: its name.
        tool: that was called.
        limit_s: seconds that it was allowed.
    """

    def __init__(self, server: str, tool: str, limit_s: float) -> None:
        self.server, self.tool, self.limit_s = server, tool, limit_s
        super().__init__(f"tool server {server!r} hangs: no answer to {tool} within {limit_s:g} s, and none to a ping")


class McpHostFailed(McpFault):
    """The machinery behind the tools of a server of ours broke there.

    Args:
        server: its name.
        detail: what it said.
    """

    def __init__(self, server: str, detail: str) -> None:
        self.server, self.detail = server, detail
        super().__init__(f"tool server {server!r}: {detail}")


class McpSandboxFailed(McpHostFailed):
    """The sandbox behind the tools of a server of ours failed there."""

    cause: ClassVar[str] = "sandbox_failed"
