"""Healthy children that wait for the next request, and the one place where a child's end becomes a typed error."""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from .. import errors
from ..errors import ReaderDied, TookTooLong, UnreadableDocument
from .process import Child, Died, Late

MAX_IDLE = 2
"""Children that are kept waiting; more are used when more threads ask, and ended afterwards."""

MAX_ANSWERS = 500
"""A child is replaced after as many answers, for what libraries leak."""

KINDS: dict[str, type[UnreadableDocument]] = {
    kind.kind: kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, UnreadableDocument)
}
"""The word in an answer -> the error's type."""

_idle: list[Child] = []
_lock = threading.Lock()


def ask(
    verb: str,
    names: Sequence[str],
    blobs: Sequence[bytes],
    options: Mapping[str, Any],
    *,
    deadline_s: float,
    memory_mb: int,
) -> tuple[Any, list[bytes]]:
    """Have a child do one thing.

    Args:
        verb: a key of ``worker.VERBS``.
        names: file names, the first is named in errors.
        blobs: contents.
        options: JSON values the verb takes.
        deadline_s: wall clock, the start of a child included.
        memory_mb: limit of the child's private memory.

    Raises:
        TookTooLong: no answer by the deadline. ReaderDied: the child ended. UnreadableDocument: its typed answer.
    """
    child = _take(memory_mb)
    header = {"verb": verb, "names": list(names), "options": dict(options)}
    try:
        answer, parts = child.ask(header, blobs, deadline_s)
    except Late as error:
        what = f"no end within {deadline_s:g} s, the reader was stopped"
        raise TookTooLong(names[0], what, remedy="allow more time, or take a smaller file") from error
    except Died as error:
        what = f"the reader's process ended by {error}"
        raise ReaderDied(names[0], what, remedy=f"the file is hostile, or needs more than {memory_mb} MB") from error
    if answer.get("recycle") or child.n_answers >= MAX_ANSWERS:
        child.kill()
    else:
        _give_back(child)
    if "error" in answer:
        raise _rebuilt(answer["error"], names[0])
    return answer.get("value"), parts


def close_children() -> None:
    """End the children that wait. The next call starts another."""
    with _lock:
        ended, _idle[:] = list(_idle), []
    for child in ended:
        child.kill()


def _take(memory_mb: int) -> Child:
    with _lock:
        for at, child in enumerate(_idle):
            if child.memory_mb == memory_mb:
                del _idle[at]
                break
        else:
            return Child(memory_mb)
    if child.is_alive():
        return child
    child.kill()
    return Child(memory_mb)


def _give_back(child: Child) -> None:
    with _lock:
        _idle.append(child)
        surplus = _idle.pop(0) if len(_idle) > MAX_IDLE else None
    if surplus is not None:
        surplus.kill()


def _rebuilt(answer: Mapping[str, Any], name: str) -> UnreadableDocument:
    kind = KINDS.get(str(answer.get("kind")), UnreadableDocument)
    place, remedy = str(answer.get("place", "")), str(answer.get("remedy", ""))
    return kind(str(answer.get("name", name)), str(answer.get("what", "")), place=place, remedy=remedy)


def _forget_children() -> None:
    """In a fork of the parent: the children belong to the parent, whose pipes must not be shared."""
    global _lock
    _lock = threading.Lock()
    _idle.clear()


atexit.register(close_children)
os.register_at_fork(after_in_child=_forget_children)
