"""Bounds calls into libraries that keep no deadline: the caller goes on at its own, whatever they do."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from journeyman.deadline import Deadline
from journeyman.errors import DeadlinePassed

T = TypeVar("T")


class _Box(Generic[T]):
    """Where a thread leaves what came of its work."""

    def __init__(self) -> None:
        self.value: T
        self.error: BaseException | None = None
        self.done = threading.Event()


def bounded(work: Callable[[], T], deadline: Deadline) -> T:
    """The result of ``work``, run in a thread of its own; what it raises is raised here.

    Raises:
        DeadlinePassed: it did not end in time. Its thread is left to itself, as a daemon.
    """
    box: _Box[T] = _Box()

    def run() -> None:
        try:
            box.value = work()
        except BaseException as error:
            box.error = error
        box.done.set()

    threading.Thread(target=run, name="sandbox-bounded", daemon=True).start()
    if not box.done.wait(deadline.remaining_s):
        raise DeadlinePassed(deadline.what, deadline.limit_s)
    if box.error is not None:
        raise box.error
    return box.value
