"""What a policy can do: one function and one schema each, bad arguments answered in words, pure reads from a cache.

Promises: a bad argument comes back as a short text that the policy can act on, broken machinery is a ``SystemFault``;
output is bounded and says what was left out; the declared contract of a tool is true. Documents are parsed in a
sandbox, never here.
"""

from __future__ import annotations

from journeyman.tools.cache import ReadCache, ReaderBroke, ReadMissing
from journeyman.tools.calling import TOOLS, call
from journeyman.tools.protocol import Observation, Tool, ToolContext, ToolRefusal
from journeyman.tools.sandbox_tools import SandboxTools
from journeyman.tools.surface import SURFACE, ToolSpec
from journeyman.tools.toolset import ToolSet

__all__ = [
    "SURFACE",
    "TOOLS",
    "Observation",
    "ReadCache",
    "ReadMissing",
    "ReaderBroke",
    "SandboxTools",
    "Tool",
    "ToolContext",
    "ToolRefusal",
    "ToolSet",
    "ToolSpec",
    "call",
]
