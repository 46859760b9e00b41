"""One running sandbox, the same for every provider that can start a supervisor.

When a deadline passes, every process of the sandbox but its supervisor is killed; if the supervisor then does not
answer, the sandbox is ended and later calls raise SandboxLost. Which process tree that is, is the group's or, without
one, the supervisor's descendants.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count

from journeyman.deadline import Deadline
from journeyman.sandbox import outside, shell
from journeyman.sandbox.capture import Captured
from journeyman.sandbox.channel import Channel, ChannelBroken
from journeyman.sandbox.errors import (
    CallKilled,
    CallRaised,
    CallTimedOut,
    ExecTimeout,
    SandboxLeak,
    SandboxLost,
    TransferFailed,
)
from journeyman.sandbox.processes import Processes
from journeyman.sandbox.protocol import KILL_GRACE_S, MAX_FRAME_BYTES, ExecResult

#: Last words of a supervisor or entry program that are kept for an error.
_TAIL_BYTES = 4096
#: Seconds that a supervisor has to say that the command it waited for is dead.
_ANSWER_GRACE_S, _FIRST_WAIT_S = 2.0, 0.02


class Session:
    """A running sandbox; implements ``Sandbox``. Alive until ``destroy`` or until its supervisor ends."""

    def __init__(
        self,
        sandbox_id: str,
        channel: Channel,
        processes: Processes,
        *,
        serves_frames: bool,
        stderr: Captured,
        translate: Callable[[str], str] = str,
        translate_word: Callable[[str], str] = str,
        on_destroy: Callable[[str], list[str]] = lambda sandbox_id: [],
        has_root: bool = False,
    ) -> None:
        """
        Args:
            sandbox_id: its id.
            channel: to its supervisor, past the ``ready``.
            processes: its processes.
            serves_frames: an entry program answers ``call``; else a shell answers ``exec``.
            stderr: what an entry program has said so far.
            translate: path inside -> path for the shell (differs only without a mount namespace).
            translate_word: the same for words that may be such a path: of an argv, or values of variables.
            on_destroy: given the id, removes what the provider made; returns what remains.
            has_root: its supervisor has a root directory of its own, through which its files can be read.
        """
        self.id = sandbox_id
        self._channel, self._processes = channel, processes
        self._serves_frames = serves_frames
        self._translate, self._translate_word, self._on_destroy = translate, translate_word, on_destroy
        self._has_root = has_root
        self._lock = threading.Lock()
        self._tokens = count(1)
        self._stderr = stderr  # of an entry program, since the last answer
        self._is_destroyed = False

    def exec(
        self,
        command: str | Sequence[str],
        *,
        deadline_s: float,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        max_output_bytes: int = 100_000,
    ) -> ExecResult:
        """See ``Sandbox.exec``."""
        cwd = self._translate(cwd) if cwd is not None else None
        if not isinstance(command, str):
            command = [self._translate_word(word) for word in command]
        env = {name: self._translate_word(value) for name, value in (env or {}).items()}
        return self._exec(command, deadline_s, cwd, env, max_output_bytes, text=True)

    def upload(self, data: bytes, target: str, *, deadline_s: float) -> None:
        """See ``Sandbox.upload``."""
        deadline = Deadline.after(deadline_s, f"upload of {target}")
        token = self._token()
        output = Captured(_TAIL_BYTES)
        with self._turn(deadline, "upload", frames=False):
            self._discard_outputs()
            self._channel.send(self._channel.upload_lines(token, len(data), self._translate(target)), deadline)
            answer = self._channel.answer(token, deadline, Captured(0), output)
            if answer == "go":
                self._channel.send(data, deadline)
                answer = self._channel.answer(token, deadline, Captured(0), output)
            if answer is None:  # the shell may be in the middle of the data: it cannot be brought back into step
                raise ChannelBroken(f"{target} was not written within {deadline_s:g} s")
            self._channel.take_outputs(Captured(0), output)
        if answer != "0":
            raise TransferFailed(target, output.result()[0].decode(errors="replace").strip())

    def download(self, source: str, *, deadline_s: float, max_bytes: int = 16_000_000) -> bytes:
        """See ``Sandbox.download``."""
        command = shell.download_command(self._translate(source), max_bytes)
        result = self._exec(command, deadline_s, None, None, max_bytes + 1, text=False)
        if result.return_code != 0:
            raise TransferFailed(source, result.stderr.decode(errors="replace").strip() or "cannot be read")
        if len(result.stdout) > max_bytes:
            raise TransferFailed(source, f"is larger than {max_bytes} bytes")
        return result.stdout

    def call(self, payload: bytes, *, deadline_s: float) -> bytes:
        """See ``Sandbox.call``."""
        if len(payload) > MAX_FRAME_BYTES:
            raise ValueError(f"frame of {len(payload)} bytes is larger than {MAX_FRAME_BYTES}")
        deadline = Deadline.after(deadline_s, "call")
        with self._turn(deadline, "call", frames=True):
            answer = self._channel.frame(payload, deadline, self._stderr)
            if answer is None:
                self._kill_commands(lambda grace: self._channel.frame(None, grace, self._stderr))
                raise CallTimedOut(deadline_s)
            self._stderr = Captured(_TAIL_BYTES)
            oom_kills = self._processes.oom_kills() if answer[0] == 3 else 0
        return _payload(answer, deadline_s, oom_kills)

    def alive(self, *, deadline_s: float) -> bool:
        """See ``Sandbox.alive``."""
        if self._is_destroyed or self._processes.process.poll() is not None:
            return False
        if self._serves_frames:
            return True
        try:
            return self.exec("exit 0", deadline_s=deadline_s).return_code == 0
        except (SandboxLost, ExecTimeout):
            return False

    def strangers(self) -> Sequence[int] | None:
        """See ``Sandbox.strangers``."""
        return self._processes.others()

    def sweep(self, *, deadline_s: float) -> bool:
        """See ``Sandbox.sweep``. The supervisor waits for its next line meanwhile, so it loses nothing by a kill."""
        with self._turn(Deadline.after(deadline_s, "sweep"), "sweep", frames=self._serves_frames):
            self._processes.kill_commands()
        return True

    def root(self) -> int | None:
        """See ``Sandbox.root``."""
        supervisor = self._processes.supervisor() if self._has_root else None
        return outside.open_root(supervisor) if supervisor is not None else None

    def destroy(self, *, deadline_s: float = 30) -> None:
        """See ``Sandbox.destroy``."""
        if self._is_destroyed:
            return
        self._is_destroyed = True
        deadline = Deadline.after(deadline_s, f"removal of sandbox {self.id}")
        self._processes.end(deadline)
        if self._lock.acquire(timeout=deadline.remaining_s):  # a call that was waiting has seen the end by now
            self._channel.close()
            self._lock.release()
        group = self._processes.group
        remains = group.remove(deadline) if group is not None else []
        remains += self._on_destroy(self.id)
        if remains:
            raise SandboxLeak(self.id, ", ".join(remains))

    def _exec(
        self,
        command: str | Sequence[str],
        deadline_s: float,
        cwd: str | None,
        env: Mapping[str, str] | None,
        max_bytes: int,
        *,
        text: bool,
    ) -> ExecResult:
        started = time.monotonic()
        deadline = Deadline.after(deadline_s, "command")
        token = self._token()
        line, shown = self._channel.command_line(token, command, cwd, env)
        stdout, stderr = Captured(max_bytes), Captured(max_bytes)
        with self._turn(deadline, "exec", frames=False):
            self._discard_outputs()
            self._channel.send(line, deadline)
            answer = self._channel.answer(token, deadline, stdout, stderr)
            if answer is None:
                self._kill_commands(lambda grace: self._channel.answer(token, grace, stdout, stderr))
            self._channel.take_outputs(stdout, stderr)
            oom_kills = self._processes.oom_kills()
            if self._is_destroyed:  # by another thread: the command did not end by itself
                raise SandboxLost(self.id, "exec", "it was destroyed")
        out, out_omitted = stdout.result(text=text)
        err, err_omitted = stderr.result(text=text)
        elapsed_s = time.monotonic() - started
        if answer is None:
            raise ExecTimeout(shown, deadline_s, elapsed_s, out, err, out_omitted + err_omitted)
        return ExecResult(int(answer), out, err, out_omitted + err_omitted, elapsed_s, oom_kills)

    def _kill_commands(self, answer: Callable[[Deadline], object]) -> None:
        """After a deadline: kill the commands; end the sandbox unless it then gives its answer.

        On a busy machine the supervisor may not even have begun the command: then there was nothing to kill yet.
        """
        grace, wait_s = Deadline.after(_ANSWER_GRACE_S, "answer after a kill"), _FIRST_WAIT_S
        is_in_step = is_over = False
        while not is_in_step and not is_over:
            is_over = grace.has_passed
            self._processes.kill_commands()
            try:
                is_in_step = answer(Deadline.after(wait_s, "answer after a kill")) is not None
            except ChannelBroken:  # the kill took the supervisor too: the deadline is still what is reported
                is_over = True
            wait_s = min(2 * wait_s, _ANSWER_GRACE_S / 4)
        if not is_in_step:
            self._processes.end(Deadline.after(KILL_GRACE_S, "end of a silent supervisor"))

    def _token(self) -> str:
        return f"{next(self._tokens):x}-{os.urandom(6).hex()}"

    def _discard_outputs(self) -> None:
        """Drop what background processes wrote since the last command."""
        self._channel.take_outputs(Captured(0), Captured(0))

    @contextmanager
    def _turn(self, deadline: Deadline, operation: str, *, frames: bool) -> Iterator[None]:
        """One operation at a time; a broken channel ends the sandbox and becomes SandboxLost."""
        if frames != self._serves_frames:
            served = "call" if self._serves_frames else "exec, upload and download"
            raise ValueError(f"sandbox {self.id} serves {served}, not {operation}")
        if not self._lock.acquire(timeout=deadline.remaining_s):
            raise ExecTimeout(f"({operation} behind another)", deadline.limit_s, deadline.limit_s, b"", b"", 0)
        try:
            if self._is_destroyed:
                raise SandboxLost(self.id, operation, "it was destroyed")
            yield
        except ChannelBroken as broken:
            words = self._stderr.result()[0].decode(errors="replace").strip()
            oom_kills = self._processes.oom_kills()
            self._processes.end(Deadline.after(KILL_GRACE_S, "end of a lost sandbox"))
            raise SandboxLost(self.id, operation, f"{broken}{': ' if words else ''}{words}", oom_kills) from None
        finally:
            self._lock.release()


def _payload(answer: bytes, deadline_s: float, oom_kills: int) -> bytes:
    """The body of an answer frame with status 0, or the error that its status stands for."""
    status, body = answer[0], answer[1:]
    if status == 0:
        return body
    text = body.decode(errors="replace")
    if status == 1:
        name, _, message = text.partition("\n")
        raise CallRaised(name, message)
    if status == 2:
        raise CallTimedOut(deadline_s, by_program=True)
    raise CallKilled(text, oom_kills)
