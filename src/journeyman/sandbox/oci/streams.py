"""The three streams of an attached container, on which a supervisor's answers travel between the output of commands.

A container has no descriptor that goes both ways, so the script goes in by standard input, and around each command the
supervisor prints a marker on both outputs: ``<token> begin`` before, ``<token> <status>`` after. Tokens are random and
used once. What lies between the markers is the command's; what lies outside, a background process's, is dropped.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence

from journeyman.deadline import Deadline
from journeyman.sandbox import shell
from journeyman.sandbox.capture import Captured
from journeyman.sandbox.channel import Channel, ChannelBroken

#: A status is at most this long; more without a newline after a token is no answer.
_MAX_WORD = 16


class Marked(Captured):
    """One output stream: finds the markers of the current token and keeps what lies between them."""

    def __init__(self) -> None:
        super().__init__(0)
        self._buffer = bytearray()
        self._token = b""
        self._is_open = False
        self._words: list[str] = []
        self._into = Captured(0)

    def expect(self, token: str) -> None:
        """Wait for the markers of a new token; drops what came before."""
        self._buffer.clear()
        self._token, self._is_open, self._words = token.encode(), False, []

    def keep(self, into: Captured) -> None:
        """Where the command's output goes."""
        self._into = into

    def word(self) -> str | None:
        """The next word after the token (``go`` or a status), None while there is none."""
        return self._words.pop(0) if self._words else None

    def add(self, data: bytes) -> None:
        """Take what was read."""
        self._buffer += data
        while self._step():
            pass

    def flush(self) -> None:
        """Keep also what might have been the beginning of a marker: the command did not end."""
        if self._is_open:
            self._into.add(bytes(self._buffer))
        self._buffer.clear()

    def _step(self) -> bool:
        if not self._token:
            self._buffer.clear()
            return False
        marker = self._token + b" "
        start = self._buffer.find(marker)
        if start < 0:
            safe = len(self._buffer) - len(marker) + 1
            if safe > 0:
                self._take(safe)
            return False
        self._take(start)
        end = self._buffer.find(b"\n", 0, len(marker) + _MAX_WORD)
        if end < 0 and len(self._buffer) < len(marker) + _MAX_WORD:
            return False
        word = bytes(self._buffer[len(marker) : end]).decode(errors="replace") if end >= 0 else ""
        if word not in ("begin", "go") and not word.isdecimal():
            self._take(len(marker))  # no answer: the command itself printed the token
            return True
        del self._buffer[: end + 1]
        if word == "begin":
            self._is_open = True
        else:
            self._words.append(word)
        if word.isdecimal():
            self._is_open, self._token = False, b""
        return True

    def _take(self, size: int) -> None:
        if self._is_open:
            self._into.add(bytes(self._buffer[:size]))
        del self._buffer[:size]


class Streams(Channel):
    """The host ends of an attached container that serves a shell."""

    def __init__(self, control: socket.socket, stdout: int, stderr: int) -> None:
        """
        Args:
            control: socket to the standard input of the container program.
            stdout: read end of its standard output.
            stderr: read end of its standard error.
        """
        super().__init__(control, stdout, stderr)
        self._out, self._err = Marked(), Marked()
        self._token, self._status = "", ""

    def command_line(
        self, token: str, command: str | Sequence[str], cwd: str | None, env: Mapping[str, str] | None
    ) -> tuple[bytes, str]:
        """See ``shell.command_line``."""
        body, shown = shell.command_body(command, cwd, env)
        return f"{_begin(token)}; {body}; {_end(token)}\n".encode(errors="surrogateescape"), shown

    def upload_lines(self, token: str, size: int, target: str) -> bytes:
        """See ``shell.upload_lines``."""
        check, take = shell.upload_steps(size, target)
        line = f'{_begin(token)}; if {check}; then echo "{token} go"; {take}; else false; fi; {_end(token)}\n'
        return line.encode(errors="surrogateescape")

    def answer(self, token: str, deadline: Deadline, stdout: Captured, stderr: Captured) -> str | None:
        """See ``Channel.answer``. A status is complete once both streams have shown it."""
        if token != self._token:  # nothing of it was read yet: reading happens below
            self._token, self._status = token, ""
            self._out.expect(token)
            self._err.expect(token)
        self._out.keep(stdout)
        self._err.keep(stderr)
        while True:
            word = self._out.word()
            if word == "go":
                return word
            self._status = word or self._status
            if self._status and self._err.word() is not None:
                return self._status
            if not self._wait(deadline, self._out, self._err):
                return None

    def ready(self, word: bytes, deadline: Deadline, stderr: Captured) -> bool:
        """See ``Channel.ready``."""
        said = Captured(1 << 12)
        while word not in said.result(text=False)[0]:
            if not self._wait(deadline, said, stderr):
                return False
        return True

    def take_outputs(self, stdout: Captured, stderr: Captured) -> None:
        """See ``Channel.take_outputs``."""
        self._out.keep(stdout)
        self._err.keep(stderr)
        super().take_outputs(self._out, self._err)
        self._out.flush()
        self._err.flush()

    def _receive(self, stdout: Captured, stderr: Captured) -> None:
        """The container program never speaks on its standard input: this is its end."""
        Channel.take_outputs(self, stdout, stderr)
        raise ChannelBroken("it ended")


def _begin(token: str) -> str:
    return f'echo "{token} begin"; echo "{token} begin" >&2'


def _end(token: str) -> str:
    return f's=$?; echo "{token} $s"; echo "{token} $s" >&2'
