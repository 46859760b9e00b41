"""toolbelt: many tools, few at a time. The policy takes the tools it needs onto its belt and ends with final_answer.

The shape of Archipelago's agent: meta tools, at most 80 tools on the belt, ``todo_write``, and a ``final_answer`` that
is refused while todos are open. ``options``: ``initial_tools`` (names on the belt from the start), ``max_tools``.
"""

from __future__ import annotations

from journeyman.errors import InputError, nearest
from journeyman.harness.agent import AgentLoop, Clock
from journeyman.harness.cutting import SpillFiles
from journeyman.harness.spec import HarnessSpec
from journeyman.harness.tool_calling import ToolCalling
from journeyman.harness.toolbelt.belt import MAX_TOOLS, Toolbelt
from journeyman.sandbox.protocol import Sandbox
from journeyman.tokens.renderers import Renderer
from journeyman.tools.toolset import ToolSet

SYSTEM = (
    "You do office work. Most of your tools are not on your belt yet: toolbelt_list_tools names them by domain, "
    "toolbelt_inspect_tool explains one, toolbelt_add_tool puts it on the belt so that you can call it. Plan with "
    "todo_write and keep the plan up to date. Check what you wrote. When every todo is completed or cancelled, call "
    "final_answer; it is the only way to end."
)


def make(
    spec: HarnessSpec, renderer: Renderer, tools: ToolSet | None, sandbox: Sandbox | None, clock: Clock
) -> AgentLoop:
    """A loop over a belt of ``tools``. Raises InputError without them, or when an initial tool is not among them."""
    if tools is None:
        raise InputError(f"harness {spec.name}", "needs tools")
    initial = tuple(spec.options.get("initial_tools", ()))
    for name in initial:
        if name not in tools.schemas:
            near = nearest(name, tools.schemas)
            hint = f"did you mean {near}?" if near else None
            raise InputError(f"harness {spec.name}: initial_tools", f"no tool {name!r}", hint=hint)
    belt = Toolbelt(tools, initial, int(spec.options.get("max_tools", MAX_TOOLS)))
    actor = ToolCalling(
        spec,
        renderer,
        belt,
        final=lambda: belt.final,
        finish="call final_answer",
        on_begin=lambda: belt.begin_again(initial),
        readable=lambda: belt.readable,
    )
    return AgentLoop(spec, renderer, actor, SpillFiles(sandbox, spec.spill_directory), clock)
