"""The three descriptors to a supervisor: a socket (script or frames, and answers) and the pipes of its output.

Everything waits in one ``poll`` with the caller's deadline. What comes from inside is data of unknown intent: answers
are matched by token, lengths are bounded, output beyond the cap is read and dropped.
"""

from __future__ import annotations

import contextlib
import math
import os
import select
import socket
import struct
from collections.abc import Callable, Mapping, Sequence

from journeyman.deadline import Deadline
from journeyman.sandbox import shell
from journeyman.sandbox.capture import Captured
from journeyman.sandbox.protocol import MAX_FRAME_BYTES

_CHUNK = 1 << 16
#: A line of the supervisor is short; more than this without a newline is not an answer.
_MAX_CONTROL_BYTES = 1 << 16
#: Most reads of one pipe after a command ended: a background process may go on writing.
_MAX_DRAIN_READS = 32


class ChannelBroken(Exception):
    """The other end is gone or out of step; the text says which."""


class Channel:
    """Host ends of the descriptors."""

    def __init__(
        self,
        control: socket.socket,
        stdout: int | None,
        stderr: int,
        *,
        tick: Callable[[], None] | None = None,
        tick_s: float = 0.05,
    ) -> None:
        """
        Args:
            control: socket to the supervisor's standard input.
            stdout: read end of its standard output; None when that is the socket.
            stderr: read end of its standard error.
            tick: called at least every ``tick_s`` seconds while waiting.
        """
        self._control, self._stdout, self._stderr = control, stdout, stderr
        self._tick, self._tick_s = tick, tick_s
        self._buffer = bytearray()
        control.setblocking(False)
        self._poller = select.poll()
        self._poller.register(control.fileno(), select.POLLIN)
        for descriptor in (stdout, stderr):
            if descriptor is not None:
                os.set_blocking(descriptor, False)
                self._poller.register(descriptor, select.POLLIN)

    def send(self, data: bytes, deadline: Deadline) -> None:
        """Write all of ``data`` to the socket. Raises ChannelBroken, also when nobody reads until the deadline."""
        view = memoryview(data)
        while view:
            try:
                view = view[self._control.send(view) :]
            except BlockingIOError:
                poller = select.poll()
                poller.register(self._control.fileno(), select.POLLOUT)
                poller.poll(min(deadline.remaining_s, 1.0) * 1000)
                if deadline.has_passed:
                    raise ChannelBroken("it stopped reading") from None
            except (BrokenPipeError, ConnectionResetError):
                raise ChannelBroken("it ended") from None

    def command_line(
        self, token: str, command: str | Sequence[str], cwd: str | None, env: Mapping[str, str] | None
    ) -> tuple[bytes, str]:
        """The script that runs a command and answers on this channel: see ``shell.command_line``."""
        return shell.command_line(token, command, cwd, env)

    def upload_lines(self, token: str, size: int, target: str) -> bytes:
        """The script that takes a file and answers on this channel: see ``shell.upload_lines``."""
        return shell.upload_lines(token, size, target)

    def answer(self, token: str, deadline: Deadline, stdout: Captured, stderr: Captured) -> str | None:
        """The supervisor's word for ``token`` (``go`` or a number), or None once the deadline has passed."""
        expected = token.encode() + b" "
        while True:
            line = self._line()
            if line is None:
                if not self._wait(deadline, stdout, stderr):
                    return None
            elif line.startswith(expected):
                word = line.removeprefix(expected).decode(errors="replace")
                if word == "go" or word.isdecimal():
                    return word

    def ready(self, word: bytes, deadline: Deadline, stderr: Captured) -> bool:
        """Whether the supervisor's first line came and is ``word``."""
        while (line := self._line()) is None:
            if not self._wait(deadline, Captured(0), stderr):
                return False
        return line == word.strip()

    def frame(self, payload: bytes | None, deadline: Deadline, stderr: Captured) -> bytes | None:
        """Send a frame (unless None) and return the answer, or None once the deadline has passed.

        Format: 4-byte big-endian length, then that many bytes.
        """
        if payload is not None:
            try:
                self.send(struct.pack(">I", len(payload)), deadline)
                self.send(payload, deadline)
            except ChannelBroken:
                self.take_outputs(Captured(0), stderr)  # its last words
                raise
        while True:
            if len(self._buffer) >= 4:
                size = int.from_bytes(self._buffer[:4], "big")
                if not 1 <= size <= MAX_FRAME_BYTES:
                    raise ChannelBroken(f"its answer is no frame (length {size})")
                if len(self._buffer) >= 4 + size:
                    answer = bytes(memoryview(self._buffer)[4 : 4 + size])
                    del self._buffer[: 4 + size]
                    return answer
            if not self._wait(deadline, Captured(0), stderr):
                return None

    def take_outputs(self, stdout: Captured, stderr: Captured) -> None:
        """Take what lies in the pipes without waiting."""
        for descriptor, _ in self._poller.poll(0):
            captured = stdout if descriptor == self._stdout else stderr if descriptor == self._stderr else None
            if captured is not None:
                for _ in range(_MAX_DRAIN_READS):
                    if not self._take(descriptor, captured):
                        break

    def close(self) -> None:
        """Close the descriptors; a shell that waits for its script ends by this."""
        self._control.close()
        for descriptor in (self._stdout, self._stderr):
            if descriptor is not None:
                os.close(descriptor)

    def _line(self) -> bytes | None:
        end = self._buffer.find(b"\n")
        if end < 0:
            if len(self._buffer) > _MAX_CONTROL_BYTES:
                raise ChannelBroken("it spoke out of turn")
            return None
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        return line

    def _wait(self, deadline: Deadline, stdout: Captured, stderr: Captured) -> bool:
        """Wait for and take what comes from inside; False once the deadline has passed."""
        remaining_s = deadline.remaining_s
        if remaining_s <= 0:
            return False
        if self._tick is not None:
            self._tick()
            remaining_s = min(remaining_s, self._tick_s)
        for descriptor, _ in self._poller.poll(math.ceil(remaining_s * 1000)):
            if descriptor == self._stdout:
                self._take(descriptor, stdout)
            elif descriptor == self._stderr:
                self._take(descriptor, stderr)
            else:
                self._receive(stdout, stderr)
        return True

    def _receive(self, stdout: Captured, stderr: Captured) -> None:
        try:
            data = self._control.recv(_CHUNK)
        except BlockingIOError:
            return
        except ConnectionResetError:
            data = b""
        if not data:
            self.take_outputs(stdout, stderr)
            raise ChannelBroken("it ended")
        self._buffer += data

    def _take(self, descriptor: int, captured: Captured) -> bool:
        """Read once; whether there may be more."""
        try:
            data = os.read(descriptor, _CHUNK)
        except BlockingIOError:
            return False
        if not data:
            with contextlib.suppress(KeyError):
                self._poller.unregister(descriptor)
            return False
        captured.add(data)
        return len(data) == _CHUNK  # a pipe gives all it holds
