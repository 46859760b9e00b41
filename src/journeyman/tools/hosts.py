"""Ways to the program inside a sandbox: frames where the sandbox serves them, named pipes where it serves a shell.

A shell sandbox is what trials have, since their agents run commands. There two programs serve, each started by the
first call that needs it: one holds the standard library, and its children cost little; one holds the parsers of office
files too. Both stay (a forked child serves each request); a command that passes its deadline takes them along, and the
next call starts its own anew. Whoever runs code in the same sandbox can tamper with them, to the harm of that trial
only.
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
from journeyman.tools.inside.worktools import kinds

WORKTOOLS_ENTRY: tuple[str, ...] = forkserver_entry("worktools.frames:handle", deadline_s=120.0)
"""Entry program of a sandbox that serves tools only."""

DIRECT_ENTRY: tuple[str, ...] = (
    *(f"{AGENT_ROOT}/bin/python3", "-I", "-S", f"{AGENT_ROOT}/lib/worktools/direct.py"),
    *(f"{AGENT_ROOT}/lib", AGENT_ROOT),
)
"""The same without a process per request, for solvers of our own on worlds of our own: see ``worktools.direct``."""

PIPES = {kinds.PLAIN: "/tmp/.worktools", kinds.PARSERS: "/tmp/.worktools-parsers"}
"""Program -> directory of its pipes inside."""

START_DEADLINE_S = 60.0
"""For a program's start, on a machine that is busy with others."""

MAX_ANSWER_BYTES = 16_000_000
_STATUS_TIMED_OUT, _STATUS_KILLED = 2, 3
"""First byte of an answer, as the fork server writes it; 0 is a result."""

_GONE = 9
"""Exit status that says that the program does not run any more."""

_START = """\
rm -rf "$1"
exec python3 -I -S "$2/lib/worktools/daemon.py" "$3" "$1" "$2/lib" "$2"
"""
"""Starts a program, which goes into the background when it is ready; prints its process id."""


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


@dataclass
class _Program:
    """One that runs: its process id inside, and the number of the next exchange."""

    pid: int
    turn: int = 0


class ShellHost:
    """For a sandbox that serves a shell: starts ``worktools.daemon`` and talks to it through named pipes.

    Args:
        sandbox: with the tools' environment at ``/opt/agent``.
        root: the world's directory inside.
        apps: directory of mail, chat and calendar inside; "" for the usual places.
    """

    def __init__(self, sandbox: Sandbox, root: str = "/ws", apps: str = "") -> None:
        self.sandbox = sandbox
        self._env = {"WORKTOOLS_ROOT": root}
        if apps:
            self._env["WORKTOOLS_APPS"] = apps
        self._programs: dict[str, _Program] = {}

    def ask(
        self, request: Mapping[str, Any], *, deadline_s: float, is_repeatable: bool = False
    ) -> dict[str, Any] | Died:
        """See ``ToolHost.ask``. A program that is gone is started anew, once."""
        ends_at = time.monotonic() + deadline_s
        kind = kinds.kind_of(str(request.get("tool")))
        answer = self._asked(kind, request, ends_at, is_repeatable)
        if isinstance(answer, dict) and "elsewhere" in answer:
            answer = self._asked(kinds.PARSERS, request, ends_at, is_repeatable)
        return answer

    def _asked(
        self, kind: str, request: Mapping[str, Any], ends_at: float, is_repeatable: bool
    ) -> dict[str, Any] | Died:
        for _ in range(2):
            if kind not in self._programs:
                self._programs[kind] = self._start(kind)
            answer = self._exchange(kind, request, max(0.5, ends_at - time.monotonic()), is_repeatable)
            if answer is not None:
                return answer
            del self._programs[kind]
        raise ToolHostFailed("it ended while it was asked, twice")

    def _start(self, kind: str) -> _Program:
        """Start a program and wait for its pipes. Raises ToolHostFailed."""
        words = ["/bin/sh", "-c", _START, "sh", PIPES[kind], AGENT_ROOT, kind]
        try:
            result = self.sandbox.exec(words, deadline_s=START_DEADLINE_S, env=self._env)
        except ExecTimeout as error:
            self._programs.clear()
            raise ToolHostFailed(f"not ready within {START_DEADLINE_S:g} s") from error
        if result.return_code != 0:
            said = (result.stderr or result.stdout).decode(errors="replace").strip()[-600:]
            raise ToolHostFailed(f"not started (status {result.return_code}): {said}")
        return _Program(int(result.stdout))

    def _exchange(
        self, kind: str, request: Mapping[str, Any], deadline_s: float, is_repeatable: bool
    ) -> dict[str, Any] | Died | None:
        """One request and answer; None when the program is gone."""
        program, pipes = self._programs[kind], PIPES[kind]
        body = json.dumps(request)
        size = "".join(f"\\{byte:03o}" for byte in len(body).to_bytes(4, "big"))
        # 4 lets 5 be opened without waiting for a writer; closed again, 5 ends when the program ends
        command = (
            f"kill -0 {program.pid} 2>/dev/null || exit {_GONE}; o={pipes}/out{program.turn % 2}; "
            f"exec 4<>$o; exec 5<$o; exec 4>&-; "
            f"{{ printf '{size}'; printf %s {shlex.quote(body)}; }} 1<>{pipes}/in; exec cat <&5"
        )
        try:
            result = self.sandbox.exec(command, deadline_s=deadline_s, env=self._env, max_output_bytes=MAX_ANSWER_BYTES)
        except ExecTimeout as error:
            self._programs.clear()  # the deadline took the programs too
            raise ToolDeadline(str(request.get("tool")), deadline_s) from error
        if result.return_code == _GONE:
            return None
        if not result.stdout:
            if is_repeatable:
                return None
            del self._programs[kind]
            raise ToolHostFailed("it ended while it was asked; whether it acted is not known")
        program.turn += 1
        status, text = result.stdout[0], result.stdout[1:]
        if status == 0:
            return _answer(text)
        if status == _STATUS_KILLED:
            return Died(text.decode(errors="replace"))
        if status == _STATUS_TIMED_OUT:
            return Died("SIGALRM")
        raise ToolHostFailed(text.decode(errors="replace")[:500])


_IS_WHOLE = {"same", "elsewhere"}
"""Keys of answers that hold no content."""


def _answer(body: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(body)
    except ValueError as error:
        raise ToolHostFailed(f"no JSON: {body[:200]!r}") from error
    if not isinstance(answer, dict) or not (_IS_WHOLE & answer.keys() or isinstance(answer.get("content"), str)):
        raise ToolHostFailed(f"no answer: {body[:200]!r}")
    return answer
