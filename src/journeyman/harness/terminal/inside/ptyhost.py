"""The program that holds the pty: ``serve`` starts it in the background, ``ask`` exchanges one message with it.

Messages are one JSON object each way over a Unix socket. It reads the terminal all the time, so no program inside
blocks on a full pty, and answers one request after the other.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import pty
import selectors
import signal
import socket
import struct
import sys
import termios
import time
from pathlib import Path
from typing import Any

from .screen import Screen

_CONNECT_S = 5.0
_READ_BYTES = 65536


def main(words: list[str]) -> int:
    """``SOCKET serve COLUMNS ROWS DIRECTORY`` or ``SOCKET ask SECONDS JSON``; status 1 means no terminal."""
    address, verb, *rest = words
    if verb == "serve":
        return _start(address, int(rest[0]), int(rest[1]), rest[2])
    return _ask(address, float(rest[0]), rest[1])


def _ask(address: str, limit_s: float, message: str) -> int:
    answer = _exchange(address, limit_s, message)
    sys.stdout.buffer.write(answer)
    return 0 if answer else 1


def _exchange(address: str, limit_s: float, message: str) -> bytes:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(limit_s)
        try:
            client.connect(address)
            client.sendall(message.encode())
            client.shutdown(socket.SHUT_WR)
            return b"".join(iter(lambda: client.recv(_READ_BYTES), b""))
        except OSError:
            return b""


def _start(address: str, columns: int, rows: int, directory: str) -> int:
    """Leave the program running in a session of its own, and wait until its shell shows a prompt."""
    Path(address).unlink(missing_ok=True)
    if os.fork() == 0:
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in range(3):
            os.dup2(null, descriptor)
        try:
            _Host(address, columns, rows, directory).run()
        finally:
            os._exit(0)
    limit = time.monotonic() + _CONNECT_S
    while time.monotonic() < limit:
        if Path(address).exists() and b"true" in _exchange(address, _CONNECT_S, "{}"):
            return 0
        time.sleep(0.02)
    return 0 if _exchange(address, _CONNECT_S, "{}") else 1


class _Host:
    """One shell on one pty, and its screen."""

    def __init__(self, address: str, columns: int, rows: int, directory: str) -> None:
        self._screen = Screen(columns, rows)
        self._told: str | None = None
        self._pid, self._master = pty.fork()
        if self._pid == 0:
            _become_shell(directory)
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        os.set_blocking(self._master, False)
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(address)
        self._server.listen(8)
        self._is_open = True
        self._unsent = b""

    def run(self) -> None:
        """Until the shell ends; then the last output can still be read once."""
        with selectors.DefaultSelector() as events:
            events.register(self._server, selectors.EVENT_READ)
            events.register(self._master, selectors.EVENT_READ)
            while self._is_open:
                for key, _ in events.select(1.0):
                    if key.fileobj is self._server:
                        client, _ = self._server.accept()
                        with client:
                            self._serve(client)
                    else:
                        self._read()
        self._server.close()

    def _serve(self, client: socket.socket) -> None:
        client.settimeout(_CONNECT_S)
        try:
            raw = b"".join(iter(lambda: client.recv(_READ_BYTES), b""))
            request: dict[str, Any] = json.loads(raw or b"{}")
            self._type(base64.b64decode(request.get("keys", "")), float(request.get("wait_s", 0.0)))
            answer = self._look() if request.get("look") else {"prompted": bool(self._screen.visible())}
            client.sendall(json.dumps(answer).encode())
        except (OSError, ValueError):
            return

    def _type(self, keys: bytes, wait_s: float) -> None:
        """Write keys as fast as the terminal takes them, then wait; read all the while."""
        self._unsent += keys
        limit = time.monotonic() + wait_s
        with selectors.DefaultSelector() as events:
            events.register(self._master, selectors.EVENT_READ | selectors.EVENT_WRITE)
            while self._is_open:
                left = limit - time.monotonic()
                if left <= 0:
                    break
                wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if self._unsent else 0)
                events.modify(self._master, wanted)
                for _, mask in events.select(left):
                    self._write() if mask & selectors.EVENT_WRITE else None
                    self._read() if mask & selectors.EVENT_READ else None
        self._write()

    def _write(self) -> None:
        try:
            written = os.write(self._master, self._unsent[:4096]) if self._unsent else 0
            self._unsent = self._unsent[written:]
        except BlockingIOError:
            return
        except OSError:
            self._is_open = False

    def _read(self) -> None:
        try:
            data = os.read(self._master, _READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._is_open = False
            return
        self._unsent += self._screen.feed(data)

    def _look(self) -> dict[str, Any]:
        """What is new since the last look, from the last line told on; "" when what was told cannot be found again."""
        self._read()
        whole = self._screen.everything()
        before, new = self._told, ""
        at = -1 if before is None else whole.find(before)
        if before is not None and at >= 0:
            line = before.rfind("\n") + 1
            new = whole[at + line :] if whole[at + len(before) :].strip() else ""
        self._told = whole
        return {"new": new, "screen": self._screen.visible(), "open": self._is_open}


def _become_shell(directory: str) -> None:
    os.environ.update(TERM="xterm", COLUMNS="160", LINES="40", PS1="$ ")
    for number in (signal.SIGINT, signal.SIGQUIT):  # deaf where the run was started in the background
        signal.signal(number, signal.SIG_DFL)
    with contextlib.suppress(OSError):
        os.chdir(directory)
    for shell in (["bash", "--norc", "--noprofile", "-i"], ["sh", "-i"]):
        try:
            os.execvp(shell[0], shell)
        except OSError:
            continue
    os._exit(127)
