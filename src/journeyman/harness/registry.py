"""Every harness for real models by name, and what makes a running loop of each."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType

from journeyman.harness import code, react, terminal, toolbelt
from journeyman.harness.agent import AgentLoop, Clock
from journeyman.harness.spec import HarnessSpec
from journeyman.harness.terminal.actor import SYSTEM as TERMINAL_SYSTEM
from journeyman.sandbox.protocol import Sandbox
from journeyman.tokens.renderers import Renderer
from journeyman.tools.toolset import ToolSet

LoopFactory = Callable[[HarnessSpec, Renderer, ToolSet | None, Sandbox | None, Clock], AgentLoop]
"""(spec, renderer, tools, sandbox, clock) -> a loop that has not been opened. Raises InputError for what is missing."""

LOOPS: dict[str, LoopFactory] = {
    "react": react.make,
    "toolbelt": toolbelt.make,
    "code": code.make,
    "terminal": terminal.make,
}
"""Kind of loop -> what makes one."""

SPECS: dict[str, HarnessSpec] = {
    "react": HarnessSpec("react", "react", react.SYSTEM),
    "toolbelt": HarnessSpec("toolbelt", "toolbelt", toolbelt.SYSTEM),
    "code": HarnessSpec("code", "code", code.SYSTEM, tool_deadlines_s=MappingProxyType({"bash": 600.0})),
    "terminal": HarnessSpec("terminal", "terminal", TERMINAL_SYSTEM),
    "terminal-xml": HarnessSpec(
        "terminal-xml", "terminal", TERMINAL_SYSTEM, options=MappingProxyType({"format": "xml"})
    ),
}
"""Name -> spec with the defaults. Change one with ``dataclasses.replace``; its budget belongs to the run."""
