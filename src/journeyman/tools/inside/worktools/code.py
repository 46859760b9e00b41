"""code: a shell command line, where the sandbox serves frames only; with a shell sandbox the host runs it directly."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable
from typing import Any

from .workspace import Workspace

DEADLINE_S = 300.0
MAX_BYTES = 2_000_000
"""Of the output; what comes after is dropped."""


def execute(workspace: Workspace, code: str, deadline_s: float = DEADLINE_S) -> str:
    """Run a command line in the world's directory; JSON with ``success`` and ``output``."""
    process = subprocess.Popen(
        ["/bin/sh", "-c", code],
        cwd=workspace.root,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "HOME": str(workspace.root)},
        start_new_session=True,
    )
    output, status, omitted = _watched(process, deadline_s)
    workspace.mark(workspace.root)
    text = output.decode("utf-8", "replace")
    text += f"\n[{omitted} bytes of output were dropped]" if omitted else ""
    return json.dumps({"success": status == 0, "exit_status": status, "output": text}, ensure_ascii=False)


def _watched(process: subprocess.Popen[bytes], deadline_s: float) -> tuple[bytes, int, int]:
    """(output, exit status, bytes dropped); what runs past the deadline is killed with its group."""
    assert process.stdout is not None
    descriptor = process.stdout.fileno()
    os.set_blocking(descriptor, False)
    ends_at = time.monotonic() + deadline_s
    output, omitted, status = bytearray(), 0, process.poll()
    while True:
        ready = select.select([descriptor], [], [], 0.02)[0]
        data = os.read(descriptor, 1 << 16) if ready else b""
        kept = data[: MAX_BYTES - len(output)]
        output += kept
        omitted += len(data) - len(kept)
        if status is not None and not data:
            return bytes(output), status, omitted
        status = process.poll() if status is None else status
        if status is None and time.monotonic() > ends_at:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return bytes(output) + f"\n(stopped after {deadline_s:g} s)".encode(), 124, omitted


TOOLS: dict[str, Callable[..., Any]] = {"exec": execute}
