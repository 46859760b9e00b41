"""Ways to the program inside a sandbox: frames where the sandbox serves them, named pipes where it serves a shell.

A shell sandbox is what trials have, since their agents run commands. There the program is started by the first call
and stays (a forked child serves each request); a command that passes its deadline takes it along, and the next call
starts it anew. Whoever runs code in the same sandbox can tamper with it, to the harm of that trial only.
"""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from journeyman.errors import SystemFault
from journeyman.sandbox.environment import forkserver_entry
from journeyman.sandbox.errors import CallKilled, CallRaised, CallTimedOut, ExecTimeout
from journeyman.sandbox.protocol import AGENT_ROOT, Sandbox

WORKTOOLS_ENTRY: tuple[str, ...] = forkserver_entry("worktools.frames:handle", deadline_s=120.0)
"""Entry program of a sandbox that serves tools only."""

PIPES = "/tmp/.worktools"
START_DEADLINE_S = 60.0
"""For the program's first start, on a machine that is busy with others."""

MAX_ANSWER_BYTES = 16_000_000
_STATUS_TIMED_OUT, _STATUS_KILLED = 2, 3
"""First byte of an answer, as the fork server writes it; 0 is a result."""

_GONE = 9
"""Exit status that says that the program does not run any more."""

_START = f"""\
p=$WORKTOOLS_PIPES; a=$WORKTOOLS_AGENT
rm -rf "$p"
python3 -I -S "$a/lib/worktools/daemon.py" "$p" "$a/lib" "$a" </dev/null >/dev/null 2>"$p.log" &
n=0
while [ ! -s "$p/pid" ]; do
  kill -0 $! 2>/dev/null || {{ tail -c 600 "$p.log" >&2; exit 8; }}
  n=$((n+1)); [ $n -gt {int(START_DEADLINE_S * 20)} ] && exit 7
  sleep 0.05
done
cat "$p/pid"
"""
"""Starts the program and waits until its pipes are there; prints its process id."""


class ToolHostFailed(SystemFault):
    """The program that serves tools did not start, or answered with something that is no answer.

    Args:
        what: what was seen.
    """

    cause: ClassVar[str] = "tool_host_failed"

    def __init__(self, what: str) -> None:
        self.what = what
        super().__init__(f"the tools' program in the sandbox failed: {what}")


class ToolDeadline(SystemFault):
    """A tool did not answer in time.

    Args:
        tool: public name.
        limit_s: the deadline.
    """

    cause: ClassVar[str] = "tool_host_failed"

    def __init__(self, tool: str, limit_s: float) -> None:
        self.tool, self.limit_s = tool, limit_s
        super().__init__(f"{tool} did not answer within {limit_s:g} s")


@dataclass(frozen=True)
class Died:
    """The child that served a request ended without an answer: its memory, its time (``SIGALRM``), another signal."""

    reason: str


class ToolHost(Protocol):
    """Carries one request inside and its answer out."""

    def ask(
        self, request: Mapping[str, Any], *, deadline_s: float, is_repeatable: bool = False
    ) -> dict[str, Any] | Died:
        """The answer of ``worktools.serve``; what is repeatable may be asked again when the program was lost.

        Raises:
            SystemFault: ToolDeadline, ToolHostFailed, or the sandbox's own.
        """
        ...


class FrameHost:
    """For a sandbox whose entry program is ``WORKTOOLS_ENTRY``."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox

    def ask(
        self, request: Mapping[str, Any], *, deadline_s: float, is_repeatable: bool = False
    ) -> dict[str, Any] | Died:
        """See ``ToolHost.ask``."""
        try:
            body = self.sandbox.call(json.dumps(request).encode(), deadline_s=deadline_s)
        except CallTimedOut as error:
            if error.by_program:
                return Died("SIGALRM")
            raise ToolDeadline(str(request.get("tool")), deadline_s) from error
        except CallKilled as error:
            return Died(str(error))
        except CallRaised as error:
            raise ToolHostFailed(str(error)) from error
        return _answer(body)


class ShellHost:
    """For a sandbox that serves a shell: starts ``worktools.daemon`` and talks to it through two named pipes.

    Args:
        sandbox: with the tools' environment at ``/opt/agent``.
        root: the world's directory inside.
        apps: directory of mail, chat and calendar inside; "" for the usual places.
    """

    def __init__(self, sandbox: Sandbox, root: str = "/ws", apps: str = "") -> None:
        self.sandbox = sandbox
        self._env = {"WORKTOOLS_ROOT": root, "WORKTOOLS_PIPES": PIPES, "WORKTOOLS_AGENT": AGENT_ROOT}
        if apps:
            self._env["WORKTOOLS_APPS"] = apps
        self._pid = self._turn = 0

    def ask(
        self, request: Mapping[str, Any], *, deadline_s: float, is_repeatable: bool = False
    ) -> dict[str, Any] | Died:
        """See ``ToolHost.ask``. A program that is gone is started anew, once."""
        ends_at = time.monotonic() + deadline_s
        for _ in range(2):
            if not self._pid:
                self._start()
            answer = self._exchange(request, max(0.5, ends_at - time.monotonic()), is_repeatable)
            if answer is not None:
                return answer
            self._pid = 0
        raise ToolHostFailed("it ended while it was asked, twice")

    def _start(self) -> None:
        """Start the program and wait for its pipes. Raises ToolHostFailed."""
        try:
            result = self.sandbox.exec(["/bin/sh", "-c", _START], deadline_s=START_DEADLINE_S + 5, env=self._env)
        except ExecTimeout as error:
            raise ToolHostFailed(f"not ready within {START_DEADLINE_S:g} s") from error
        if result.return_code != 0:
            said = (result.stderr or result.stdout).decode(errors="replace").strip()
            raise ToolHostFailed(f"not started (status {result.return_code}): {said}")
        self._pid, self._turn = int(result.stdout), 0

    def _exchange(
        self, request: Mapping[str, Any], deadline_s: float, is_repeatable: bool
    ) -> dict[str, Any] | Died | None:
        """One request and answer; None when the program is gone."""
        body = json.dumps(request)
        size = "".join(f"\\{byte:03o}" for byte in len(body).to_bytes(4, "big"))
        # 4 lets 5 be opened without waiting for a writer; closed again, 5 ends when the program ends
        command = (
            f"kill -0 {self._pid} 2>/dev/null || exit {_GONE}; p=$WORKTOOLS_PIPES; o=$p/out{self._turn % 2}; "
            f"exec 4<>$o; exec 5<$o; exec 4>&-; "
            f"{{ printf '{size}'; printf %s {shlex.quote(body)}; }} 1<>$p/in; exec cat <&5"
        )
        try:
            result = self.sandbox.exec(command, deadline_s=deadline_s, env=self._env, max_output_bytes=MAX_ANSWER_BYTES)
        except ExecTimeout as error:
            self._pid = 0  # the deadline took the program too
            raise ToolDeadline(str(request.get("tool")), deadline_s) from error
        if result.return_code == _GONE:
            return None
        if not result.stdout:
            self._pid = 0
            if is_repeatable:
                return None
            raise ToolHostFailed("it ended while it was asked; whether it acted is not known")
        self._turn += 1
        status, text = result.stdout[0], result.stdout[1:]
        if status == 0:
            return _answer(text)
        if status == _STATUS_KILLED:
            return Died(text.decode(errors="replace"))
        if status == _STATUS_TIMED_OUT:
            return Died("SIGALRM")
        raise ToolHostFailed(text.decode(errors="replace")[:500])


def _answer(body: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(body)
    except ValueError as error:
        raise ToolHostFailed(f"no JSON: {body[:200]!r}") from error
    if not isinstance(answer, dict) or not ("same" in answer or isinstance(answer.get("content"), str)):
        raise ToolHostFailed(f"no answer: {body[:200]!r}")
    return answer
