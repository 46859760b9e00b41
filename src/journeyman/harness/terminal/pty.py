"""A terminal inside a sandbox, from outside: started once, then keys go in and what is new on the screen comes out.

The program that holds the pty runs inside (``inside/``); each exchange is one ``exec`` with a deadline. If the policy
kills it, the next exchange starts a new terminal and says so.
"""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path

from journeyman.errors import EnvironmentMissing
from journeyman.sandbox.errors import SandboxLost
from journeyman.sandbox.protocol import AGENT_ROOT, ExecResult, Sandbox

COLUMNS, ROWS = 160, 40
START_S = 30.0
GRACE_S = 20.0
"""Beyond the wait of a command: for the exchange itself, on a busy machine."""

MAX_KEYS_BYTES = 60_000
"""Per command; an argument of a program holds about 128 KiB."""

MAX_ANSWER_BYTES = 4_000_000
NEEDED = "a terminal needs a sandbox with a Python (an agent environment, or an image with one) and pseudo-terminals"
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
        self._is_ready = False
        self._directory = f"/tmp/.terminal-{sandbox.id}"

    def start(self) -> None:
        """Start the shell.

        Raises:
            EnvironmentMissing: there is no Python inside, or no pseudo-terminals.
            SandboxLost: the program did not come up.
            SystemFault: the sandbox is gone.
        """
        if not self._is_ready:
            if self._run_python("-c", "", deadline_s=START_S).return_code == _MISSING:
                raise EnvironmentMissing(f"{NEEDED}, and this one has no python3")
            if self._sandbox.exec(["test", "-c", "/dev/ptmx"], deadline_s=START_S).return_code:
                raise EnvironmentMissing(f"{NEEDED}, and this one has no /dev/ptmx")
            for source in sorted(_INSIDE.glob("*.py")):
                target = f"{self._directory}/terminal_inside/{source.name}"
                self._sandbox.upload(source.read_bytes(), target, deadline_s=START_S)
            self._is_ready = True
        done = self._program("serve", str(COLUMNS), str(ROWS), self._root, deadline_s=START_S)
        if done is None:
            raise SandboxLost(self._sandbox.id, "start of a terminal", "the program that holds the pty did not start")

    def exchange(self, keys: bytes, wait_s: float) -> None:
        """Type keys and wait. Raises SystemFault as ``start``."""
        for at in range(0, max(1, len(keys)), MAX_KEYS_BYTES):
            part = keys[at : at + MAX_KEYS_BYTES]
            wait = wait_s if at + MAX_KEYS_BYTES >= len(keys) else 0.0
            request = json.dumps({"keys": b64encode(part).decode(), "wait_s": wait})
            if self._program("ask", request, deadline_s=wait + GRACE_S) is None:
                self.start()

    def output(self) -> str:
        """What is new since the last call, else the screen, with a heading that says which."""
        answer = self._program("ask", json.dumps({"look": True}), deadline_s=GRACE_S)
        note = ""
        if answer is None:
            self.start()
            note = RESTARTED
            answer = self._program("ask", json.dumps({"look": True}), deadline_s=GRACE_S)
        if answer is None:
            raise SandboxLost(self._sandbox.id, "reading a terminal", "the program that holds the pty does not answer")
        told = json.loads(answer)
        if told["new"].strip():
            return f"{note}New Terminal Output:\n\n{told['new']}"
        return f"{note}Current Terminal Screen:\n\n{told['screen']}"

    def _program(self, *words: str, deadline_s: float) -> str | None:
        """What the program inside says, None when it does not run."""
        done = self._run_python("-c", _RUN, self._directory, f"{self._directory}/socket", *words, deadline_s=deadline_s)
        return done.stdout.decode(errors="replace") if done.return_code == 0 else None

    def _run_python(self, *words: str, deadline_s: float) -> ExecResult:
        argv = ["/bin/sh", "-c", _PYTHON, "sh", *words]
        return self._sandbox.exec(argv, deadline_s=deadline_s, max_output_bytes=MAX_ANSWER_BYTES)
