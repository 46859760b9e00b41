"""ironcalc: a second engine, written independently of the first; its clock is that of the machine.

It cannot be interrupted, and some lookups over whole columns never end, so it runs in a process of its own that is kept
between calls and killed at its deadline. State: that process.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import subprocess
import sys
import threading
import time
from datetime import datetime
from functools import cache
from pathlib import Path

from . import Place, Result
from .second_worker import LENGTH

LIMIT_S = 6.0
"""Seconds of wall clock for one workbook; a check that takes longer is no opinion."""


def evaluate(data: bytes, cells: list[Place], clock: datetime, epoch: int) -> dict[Place, Result]:
    """The value of each cell. Raises ValueError when the engine cannot load the workbook or does not end."""
    if epoch != 1900:
        raise ValueError("the engine counts dates from 1900 only")
    answer = _WORKER.ask(data, json.dumps(cells).encode(), LIMIT_S)
    if isinstance(answer, str):
        raise ValueError(answer)
    return {place: (kind, value) for place, (kind, value) in zip(cells, answer, strict=True)}


class _Worker:
    """One process, started at the first question and again after it was killed; one question at a time."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0
        self._lock = threading.Lock()

    def ask(self, data: bytes, cells: bytes, limit_s: float) -> list[tuple[str, float | str | bool]] | str:
        """The answer, or what went wrong. Raises ValueError when none comes by the deadline."""
        with self._lock:
            for _ in range(2):  # a process that died since the last question is replaced once
                process = self._running()
                deadline = time.monotonic() + limit_s
                try:
                    assert process.stdin is not None
                    process.stdin.write(LENGTH.pack(len(data)) + data + LENGTH.pack(len(cells)) + cells)
                    process.stdin.flush()
                    head = self._read(process, LENGTH.size, deadline)
                    answer: list[tuple[str, float | str | bool]] | str = json.loads(
                        self._read(process, LENGTH.unpack(head)[0], deadline)
                    )
                    return answer
                except (BrokenPipeError, EOFError):
                    self.close()
                except TimeoutError:
                    self.close()
                    raise ValueError(f"no answer within {limit_s:g} s") from None
            raise ValueError("its process died")

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is not None and (self._owner != os.getpid() or self._process.poll() is not None):
            self.close()
        if self._process is None:
            program = Path(__file__).with_name("second_worker.py")
            self._process = subprocess.Popen(
                [sys.executable, str(program), json.dumps(sys.path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
            self._owner = os.getpid()
        return self._process

    def _read(self, process: subprocess.Popen[bytes], size: int, deadline: float) -> bytes:
        assert process.stdout is not None
        number, found = process.stdout.fileno(), b""
        while len(found) < size:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([number], [], [], left)[0]:
                raise TimeoutError
            piece = os.read(number, size - len(found))
            if not piece:
                raise EOFError
            found += piece
        return found

    def close(self) -> None:
        """Kill the process, unless it is that of a parent; the next question starts another."""
        process, self._process = self._process, None
        if process is None:
            return
        if self._owner == os.getpid():
            process.kill()
            process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                try:
                    stream.close()
                except BrokenPipeError:
                    continue


_WORKER = _Worker()
atexit.register(_WORKER.close)


@cache
def knows(function: str) -> bool:
    """Whether the engine has a function of this name."""
    import ironcalc

    model = ironcalc.create("probe", "en", "UTC", "en")
    model.set_user_input(0, 1, 1, f"={function}()")
    model.evaluate()
    return bool(model.get_cell_value(0, 1, 1) != "#NAME?")
