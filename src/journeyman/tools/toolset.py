"""The tools one trial is offered, whatever stands behind them: a sandbox, a server, a fault injector around either."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from journeyman.tools.protocol import Observation


class ToolSet(Protocol):
    """What a harness needs to know of tools. One per trial; not shared between threads."""

    @property
    def schemas(self) -> Mapping[str, Mapping[str, Any]]:
        """Name -> JSON schema of the arguments, in the order in which the tools are offered."""
        ...

    @property
    def descriptions(self) -> Mapping[str, str]:
        """Name -> what the policy is told the tool does."""
        ...

    def call(self, name: str, arguments: Mapping[str, Any], *, deadline_s: float = 60.0) -> Observation:
        """Run one tool.

        Whatever the policy can act on (a bad argument, a missing file, a parser that gave up) is text with
        ``is_error``; it is never an exception.

        Raises:
            SystemFault: the machinery broke or missed the deadline (cause ``tool_host_failed`` or ``sandbox_failed``).
        """
        ...

    def close(self) -> None:
        """Give back what the set holds; a second call does nothing."""
        ...


@runtime_checkable
class Reconnecting(Protocol):
    """Tools behind servers that may die and are started again."""

    @property
    def num_reconnects(self) -> Mapping[str, int]:
        """Server -> how often it came back."""
        ...
