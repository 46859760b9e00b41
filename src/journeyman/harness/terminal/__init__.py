"""terminal: the protocol of Terminus 2 on a real pty. No tool calls: the policy writes keystrokes and reads a screen.

``options``: ``format`` ("json" or "xml"), ``root``, the directory the shell starts in (``/ws``). The pty is held by a
small program inside the sandbox that needs a Python there, the agent environment's or the image's, and no tmux.
"""

from __future__ import annotations

from dataclasses import replace

from journeyman.errors import InputError
from journeyman.harness.agent import AgentLoop, Clock
from journeyman.harness.cutting import SpillFiles
from journeyman.harness.spec import HarnessSpec
from journeyman.harness.terminal.actor import TerminalActor
from journeyman.harness.terminal.answer import FORMATS
from journeyman.harness.terminal.pty import Terminal
from journeyman.sandbox.protocol import Sandbox
from journeyman.tokens.renderers import Renderer
from journeyman.tools.toolset import ToolSet


def make(
    spec: HarnessSpec, renderer: Renderer, tools: ToolSet | None, sandbox: Sandbox | None, clock: Clock
) -> AgentLoop:
    """A loop over a terminal in ``sandbox``; ``tools`` are not used.

    Raises:
        InputError: no sandbox, or an unknown format.
    """
    if sandbox is None:
        raise InputError(f"harness {spec.name}", "needs a sandbox with a shell")
    name = str(spec.options.get("format", "json"))
    if name not in FORMATS:
        raise InputError(f"harness {spec.name}: format", f"unknown format {name!r}", allowed=", ".join(FORMATS))
    style = FORMATS[name]
    spec = replace(spec, system=spec.system.replace("{format}", style.explained))
    terminal = Terminal(sandbox, str(spec.options.get("root", "/ws")))
    actor = TerminalActor(spec, renderer, terminal, style)
    return AgentLoop(spec, renderer, actor, SpillFiles(sandbox, spec.spill_directory), clock)
