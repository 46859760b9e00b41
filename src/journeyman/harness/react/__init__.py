"""react: the plain loop and the baseline. Tools are offered from the start; a turn without a call is the answer."""

from __future__ import annotations

from journeyman.errors import InputError
from journeyman.harness.agent import AgentLoop, Clock
from journeyman.harness.cutting import SpillFiles
from journeyman.harness.spec import HarnessSpec
from journeyman.harness.tool_calling import ToolCalling
from journeyman.sandbox.protocol import Sandbox
from journeyman.tokens.renderers import Renderer
from journeyman.tools.toolset import ToolSet

SYSTEM = (
    "You do office work with the tools you are given. Look before you change anything, check what you wrote, and when "
    "the work is done, answer in plain text without calling a tool."
)


def make(
    spec: HarnessSpec, renderer: Renderer, tools: ToolSet | None, sandbox: Sandbox | None, clock: Clock
) -> AgentLoop:
    """A loop over ``tools``. Raises InputError without them."""
    if tools is None:
        raise InputError(f"harness {spec.name}", "needs tools")
    return AgentLoop(
        spec, renderer, ToolCalling(spec, renderer, tools), SpillFiles(sandbox, spec.spill_directory), clock
    )
