"""What every ``ToolSet`` around another one passes on as it is; such a set overrides ``call``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from journeyman.tools.toolset import ToolSet


class AroundTools:
    """Everything of a ``ToolSet`` but ``call``.

    Args:
        tools: the real ones; closed with this set.
    """

    def __init__(self, tools: ToolSet) -> None:
        self.tools = tools

    @property
    def schemas(self) -> Mapping[str, Mapping[str, Any]]:
        """As the real tools give them."""
        return self.tools.schemas

    @property
    def descriptions(self) -> Mapping[str, str]:
        """As the real tools give them."""
        return self.tools.descriptions

    @property
    def contracts(self) -> Mapping[str, str]:
        """As the real tools give them; empty where they give none."""
        return getattr(self.tools, "contracts", {})

    def forget(self) -> None:
        """A fresh context begins: for real tools that keep what the policy has seen."""
        forget = getattr(self.tools, "forget", None)
        if forget is not None:
            forget()

    def close(self) -> None:
        """Close the real tools."""
        self.tools.close()
