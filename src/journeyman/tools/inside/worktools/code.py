"""code: a shell command line, where the sandbox serves frames only; with a shell sandbox the host runs it directly."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from typing import Any

from .workspace import Workspace

DEADLINE_S = 300.0
MAX_BYTES = 2_000_000
"""Of the output; what comes after is dropped."""


def execute(workspace: Workspace, code: str, deadline_s: float = DEADLINE_S) -> str:
    """Run a command line in the world's directory; JSON with ``success`` and ``output``."""
    try:
        done = subprocess.run(
            ["/bin/sh", "-c", code],
            cwd=workspace.root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=deadline_s,
            env={**os.environ, "HOME": str(workspace.root)},
            check=False,
        )
        output, status = done.stdout, done.returncode
    except subprocess.TimeoutExpired as error:
        output = (error.output or b"") + f"\n(stopped after {deadline_s:g} s)".encode()
        status = 124
    workspace.mark(workspace.root)
    text = output[:MAX_BYTES].decode("utf-8", "replace")
    return json.dumps({"success": status == 0, "exit_status": status, "output": text}, ensure_ascii=False)


TOOLS: dict[str, Callable[..., Any]] = {"exec": execute}
