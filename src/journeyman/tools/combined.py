"""Several tool sets as one, e.g. those of a sandbox and those of servers. Knows nothing about any of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from journeyman.errors import InputError, nearest
from journeyman.tools.protocol import Observation
from journeyman.tools.toolset import ToolSet


class CombinedTools:
    """Implements ``ToolSet``.

    Args:
        sets: at least one; offered in this order, and closed with this set.

    Raises:
        InputError: two of them offer a tool of the same name; nothing was closed.
    """

    def __init__(self, *sets: ToolSet) -> None:
        self.sets = sets
        self._places: dict[str, ToolSet] = {}
        for tools in sets:
            for name in tools.schemas:
                if name in self._places:
                    hint = "set prefix = true for the server that offers it"
                    raise InputError("tools", f"two of the sets offer a tool {name!r}", hint=hint)
                self._places[name] = tools

    @property
    def schemas(self) -> Mapping[str, Mapping[str, Any]]:
        """See ``ToolSet.schemas``."""
        return {name: schema for tools in self.sets for name, schema in tools.schemas.items()}

    @property
    def descriptions(self) -> Mapping[str, str]:
        """See ``ToolSet.descriptions``."""
        return {name: text for tools in self.sets for name, text in tools.descriptions.items()}

    @property
    def contracts(self) -> Mapping[str, str]:
        """Name -> contract, of those sets that give any."""
        return {name: word for tools in self.sets for name, word in getattr(tools, "contracts", {}).items()}

    def call(self, name: str, arguments: Mapping[str, Any], *, deadline_s: float = 60.0) -> Observation:
        """See ``ToolSet.call``."""
        tools = self._places.get(name)
        if tools is None:
            near = nearest(name, self._places)
            hint = f"did you mean {near}?" if near else f"there are {', '.join(self._places)}"
            return Observation(f"error: no tool {name!r}; {hint}", is_error=True)
        return tools.call(name, arguments, deadline_s=deadline_s)

    def drop_connection(self, name: str) -> None:
        """End the connection behind a tool, where its set has one; for faults."""
        drop = getattr(self._places.get(name), "drop_connection", None)
        if drop is not None:
            drop(name)

    def forget(self) -> None:
        """A fresh context begins: for sets that keep what the policy has seen."""
        for tools in self.sets:
            forget = getattr(tools, "forget", None)
            if forget is not None:
                forget()

    def close(self) -> None:
        """Close every set, the last one first."""
        for tools in reversed(self.sets):
            tools.close()
