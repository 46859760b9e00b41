"""Looks at the memory of sandboxes that no control group bounds, also between their commands.

One thread for all of them, started with the first and ended with the last. Where a control group holds the limit, the
kernel does this and nothing here runs.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from typing import Protocol

from journeyman.sandbox import proctree

#: Seconds between two looks: a process that takes a GiB per second overshoots by a quarter of one.
WATCH_S = 0.25


class Watched(Protocol):
    """What is looked at."""

    def enforce_memory(self, table: Mapping[int, int] | None = None) -> None:
        """Kill what is over its limit, given processes and their parents."""
        ...


_lock = threading.Lock()
_watched: set[Watched] = set()
_is_running = False


def _forget() -> None:
    global _lock, _is_running
    _lock, _is_running = threading.Lock(), False  # a child has neither threads nor sandboxes
    _watched.clear()


os.register_at_fork(after_in_child=_forget)


def watch(processes: Watched) -> None:
    """Look at it from now on."""
    global _is_running
    with _lock:
        _watched.add(processes)
        if not _is_running:
            _is_running = True
            threading.Thread(target=_look, name="sandbox-memory", daemon=True).start()


def unwatch(processes: Watched) -> None:
    """Look at it no longer; nothing happens for one that was not watched."""
    with _lock:
        _watched.discard(processes)


def _look() -> None:
    global _is_running
    pause = threading.Event()
    while not pause.wait(WATCH_S):
        with _lock:
            if not _watched:
                _is_running = False
                return
            now = tuple(_watched)
        table = proctree.parents()  # one look at the machine for all of them
        for processes in now:
            processes.enforce_memory(table)
