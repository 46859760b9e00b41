"""One child as its parent sees it: start, ask with a deadline, kill."""

from __future__ import annotations

import contextlib
import os
import selectors
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .wire import Broken, pack, unpack

PIECE_BYTES = 1 << 18

_PROGRAM = "import sys; sys.path[:] = {path!r}; from {package}.worker import main; main({memory_mb}, {follow})"


class Late(Exception):
    """No answer by the deadline."""


class Died(Exception):
    """The child ended before its answer; the message says how."""


class Child:
    """A process that answers one request at a time.

    Args:
        memory_mb: limit of private memory.
    """

    def __init__(self, memory_mb: int) -> None:
        self.memory_mb, self.n_answers = memory_mb, 0
        follow = threading.current_thread() is threading.main_thread()
        program = _PROGRAM.format(path=_search_path(), package=__package__, memory_mb=memory_mb, follow=follow)
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            env=_environment(),
            cwd="/",
            start_new_session=True,  # Ctrl-C is the parent's business
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._to, self._from = self._process.stdin.fileno(), self._process.stdout.fileno()
        for number in (self._to, self._from):
            os.set_blocking(number, False)

    @property
    def pid(self) -> int:
        return self._process.pid

    def is_alive(self) -> bool:
        """Whether it could take another request."""
        return self._process.poll() is None

    def ask(
        self, header: Mapping[str, Any], blobs: Sequence[bytes], deadline_s: float
    ) -> tuple[dict[str, Any], list[bytes]]:
        """Send one request and wait for its answer. After a raise the child is dead.

        Raises:
            Late: no answer within ``deadline_s``.
            Died: the child ended, or wrote what is no answer.
        """
        ends_at = time.monotonic() + deadline_s
        try:
            self._send(pack({**header, "deadline_s": deadline_s}, blobs), ends_at)
            answer = unpack(lambda size: self._take(size, ends_at))
        except (BrokenPipeError, EOFError) as error:
            raise Died(self._end()) from error
        except Broken as error:
            self.kill()
            raise Died(f"it answered nonsense: {error}") from error
        except BaseException:
            self.kill()
            raise
        self.n_answers += 1
        return answer

    def _send(self, pieces: Sequence[bytes], ends_at: float) -> None:
        for piece in pieces:
            rest = memoryview(piece)
            while rest:
                self._wait(self._to, selectors.EVENT_WRITE, ends_at)
                with contextlib.suppress(BlockingIOError):
                    rest = rest[os.write(self._to, rest[:PIECE_BYTES]) :]

    def _take(self, size: int, ends_at: float) -> bytes:
        pieces = []
        while size:
            self._wait(self._from, selectors.EVENT_READ, ends_at)
            try:
                piece = os.read(self._from, min(size, PIECE_BYTES))
            except BlockingIOError:
                continue
            if not piece:
                raise EOFError
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)

    def _wait(self, number: int, event: int, ends_at: float) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(number, event)
            if not selector.select(max(0.0, ends_at - time.monotonic())):
                raise Late

    def _end(self) -> str:
        """How it ended, once its pipe is closed."""
        try:
            code = self._process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            code = 0
        self.kill()
        return f"signal {-code}" if code < 0 else f"exit code {code}"

    def kill(self) -> None:
        """End it now; no error when it has ended."""
        self._process.kill()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        self._process.wait()


def _search_path() -> list[str]:
    """The parent's, with this package's home first and nothing that depends on the current directory."""
    levels = __package__.count(".") + 1 if __package__ else 1
    home = str(Path(__file__).resolve().parents[levels])
    return [home, *(one for one in sys.path if one and one != home)]


def _environment() -> dict[str, str]:
    """Of the parent's environment nothing but what finds files and libraries; one thread, for the limits' sake."""
    kept = ("PATH", "HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "TMPDIR", "TZ")
    threads = {"OMP_NUM_THREADS": "1", "RAYON_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "2"}
    return {**{key: os.environ[key] for key in kept if key in os.environ}, **threads, "PYTHONDONTWRITEBYTECODE": "1"}
