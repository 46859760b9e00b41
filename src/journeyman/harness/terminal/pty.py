"""A terminal inside a sandbox, from outside: started once, then keys go in and what is new on the screen comes out.

The program that holds the pty runs inside (``inside/``); each exchange is one ``exec`` with a deadline. If the policy
kills it, the next exchange starts a new terminal and says so.
"""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path
from typing import Any

from journeyman.errors import EnvironmentMissing
from journeyman.sandbox.errors import SandboxLost, TransferFailed
from journeyman.sandbox.protocol import AGENT_ROOT, ExecResult, Sandbox

COLUMNS, ROWS = 160, 40
START_S = 30.0
ANSWER_S = 15.0
"""Beyond the wait of a command, for the answer of the program; then it counts as ended."""

GRACE_S = 15.0
"""Beyond that, for the exchange on a busy machine."""

MAX_KEYS_BYTES = 60_000
"""Per command; an argument of a program holds about 128 KiB."""

MAX_ANSWER_BYTES = 4_000_000
NEEDED = "a terminal needs a sandbox with a Python (an agent environment, or an image with one) and pseudo-terminals"
SILENT = "[the terminal does not answer, and could not be started again]"
RESTARTED = "[the terminal had ended and was started again]\n"
_INSIDE = Path(__file__).parent / "inside"
_PYTHON = f"""
for p in {AGENT_ROOT}/bin/python3 python3 python; do
  command -v "$p" >/dev/null 2>&1 && exec "$p" -S -B "$@"
done
exit 127
"""
_MISSING = 127
_RUN = """
import sys
sys.path.insert(0, sys.argv[1])
from terminal_inside.ptyhost import main
sys.exit(main(sys.argv[2:]))
"""


class Terminal:
    """One terminal of 160 x 40. State: the program inside, and whether it was started."""

    def __init__(self, sandbox: Sandbox, root: str) -> None:
        self._sandbox, self._root = sandbox, root
        self._note = ""
        self._directory = f"/tmp/.terminal-{sandbox.id}"

    def start(self) -> None:
        """Start the shell.

        Raises:
            EnvironmentMissing: there is no Python inside, or no pseudo-terminals.
            SandboxLost: the program did not come up.
            SystemFault: the sandbox is gone.
        """
        if self._run_python("-c", "", deadline_s=START_S).return_code == _MISSING:
            raise EnvironmentMissing(f"{NEEDED}, and this one has no python3")
        if self._sandbox.exec(["test", "-c", "/dev/ptmx"], deadline_s=START_S).return_code:
            raise EnvironmentMissing(f"{NEEDED}, and this one has no /dev/ptmx")
        if not self._serve():
            raise SandboxLost(self._sandbox.id, "start of a terminal", "the program that holds the pty did not start")

    def exchange(self, keys: bytes, wait_s: float) -> None:
        """Type keys and wait. Keys for a terminal that has ended are lost. Raises SystemFault: the sandbox is gone."""
        for at in range(0, max(1, len(keys)), MAX_KEYS_BYTES):
            part = keys[at : at + MAX_KEYS_BYTES]
            wait = wait_s if at + MAX_KEYS_BYTES >= len(keys) else 0.0
            request = {"keys": b64encode(part).decode(), "wait_s": wait}
            if self._ask(request, wait) is None:
                self._restart()

    def output(self) -> str:
        """What is new since the last call, else the screen, with a heading that says which.

        A policy that breaks its terminal for good reads that it did. Raises SystemFault: the sandbox is gone.
        """
        told = self._ask({"look": True})
        if told is None:
            self._restart()
            told = self._ask({"look": True})
        note, self._note = self._note, ""
        if told is None:
            return f"{note}{SILENT}"
        if told.get("new", "").strip():
            return f"{note}New Terminal Output:\n\n{told['new']}"
        return f"{note}Current Terminal Screen:\n\n{told.get('screen', '')}"

    def _restart(self) -> None:
        self._serve()
        self._note = RESTARTED

    def _serve(self) -> bool:
        """Put the program there, as it may have been changed, and start it."""
        for source in sorted(_INSIDE.glob("*.py")):
            target = f"{self._directory}/terminal_inside/{source.name}"
            try:
                self._sandbox.upload(source.read_bytes(), target, deadline_s=START_S)
            except TransferFailed:
                return False
        return self._program("serve", str(COLUMNS), str(ROWS), self._root, deadline_s=START_S) is not None

    def _ask(self, request: dict[str, Any], wait_s: float = 0.0) -> dict[str, str] | None:
        """One exchange with the program inside; None where no sound answer came. What it says is not to be trusted."""
        limit_s = wait_s + ANSWER_S
        said = self._program("ask", f"{limit_s:g}", json.dumps(request), deadline_s=limit_s + GRACE_S)
        try:
            told = json.loads(said or "")
        except (ValueError, RecursionError):
            return None
        if not isinstance(told, dict):
            return None
        return {str(name): value for name, value in told.items() if isinstance(value, str)}

    def _program(self, *words: str, deadline_s: float) -> str | None:
        """What the program inside says, None when it does not run."""
        done = self._run_python("-c", _RUN, self._directory, f"{self._directory}/socket", *words, deadline_s=deadline_s)
        return done.stdout.decode(errors="replace") if done.return_code == 0 else None

    def _run_python(self, *words: str, deadline_s: float) -> ExecResult:
        argv = ["/bin/sh", "-c", _PYTHON, "sh", *words]
        return self._sandbox.exec(argv, deadline_s=deadline_s, max_output_bytes=MAX_ANSWER_BYTES)
