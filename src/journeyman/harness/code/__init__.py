"""code: the seven tools of OpenCode on a sandbox with a shell: bash, read, write, edit, glob, grep, todowrite.

Names, arguments and limits are OpenCode's; docs/harness.md lists what differs. A turn without a call is the answer.
``options``: ``root``, the directory the work is in (``/ws``).
"""

from __future__ import annotations

from dataclasses import replace

from journeyman.errors import InputError
from journeyman.harness.agent import AgentLoop, Clock
from journeyman.harness.code.schemas import SCHEMAS
from journeyman.harness.code.toolset import CodeTools
from journeyman.harness.cutting import SpillFiles
from journeyman.harness.spec import HarnessSpec
from journeyman.harness.tool_calling import ToolCalling
from journeyman.sandbox.protocol import Sandbox
from journeyman.tokens.renderers import Renderer
from journeyman.tools.toolset import ToolSet

SYSTEM = (
    "You work in a sandbox with a shell. The files of the task are in {root}; paths are absolute. Read a file before "
    "you change it, check what you wrote, and when the work is done, answer in plain text without calling a tool."
)


def make(
    spec: HarnessSpec, renderer: Renderer, tools: ToolSet | None, sandbox: Sandbox | None, clock: Clock
) -> AgentLoop:
    """A loop over the seven tools of ``sandbox``.

    Args:
        tools: None, or a set that already offers the seven, e.g. ``CodeTools`` with injected faults.

    Raises:
        InputError: neither a sandbox nor such a set was given.
    """
    root = str(spec.options.get("root", "/ws"))
    spec = replace(spec, system=spec.system.replace("{root}", root))
    if tools is None or not SCHEMAS.keys() <= tools.schemas.keys():
        if sandbox is None:
            raise InputError(f"harness {spec.name}", "needs a sandbox with a shell")
        tools = CodeTools(sandbox, root=root, spill_directory=spec.spill_directory)
    actor = ToolCalling(spec, renderer, tools, on_begin=getattr(tools, "forget", lambda: None))
    return AgentLoop(spec, renderer, actor, SpillFiles(sandbox, spec.spill_directory), clock)
