"""The room's functions with limits: what ``opening`` offers, done in a child process.

Each takes ``deadline_s``, wall clock in seconds, and ``memory_mb``, the child's private memory, and raises what its
sibling in ``opening`` raises, ``TookTooLong`` and ``ReaderDied``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..editing import Change, ChangeReport, Edited
from ..node import Document
from .columns import columns_of, document_of
from .pool import ask

DEADLINE_S = 12.0
MEMORY_MB = 1024


def read_safely(data: bytes, name: str, *, deadline_s: float = DEADLINE_S, memory_mb: int = MEMORY_MB) -> Document:
    """``open_document`` with limits."""
    value, _ = ask("read", [name], [data], {}, deadline_s=deadline_s, memory_mb=memory_mb)
    return document_of(value)


def edit_safely(
    data: bytes,
    name: str,
    changes: Sequence[Change | Mapping[str, Any]],
    *,
    deadline_s: float = DEADLINE_S,
    memory_mb: int = MEMORY_MB,
) -> Edited:
    """``edit`` with limits."""
    asked = [change.as_json() if isinstance(change, Change) else change for change in changes]
    value, blobs = ask("edit", [name], [data], {"changes": asked}, deadline_s=deadline_s, memory_mb=memory_mb)
    reports = tuple(ChangeReport(**{"note": "", **one}) for one in value["changed"])
    return Edited(blobs[0], reports, tuple(value["warnings"]))


def write_safely(document: Document, *, deadline_s: float = DEADLINE_S, memory_mb: int = MEMORY_MB) -> bytes:
    """``write`` with limits."""
    options = {"document": columns_of(document)}
    _, blobs = ask("write", [document.name], [], options, deadline_s=deadline_s, memory_mb=memory_mb)
    return blobs[0]


def diff_safely(
    a: bytes,
    b: bytes,
    name_a: str,
    name_b: str,
    allowed: Any = None,
    *,
    deadline_s: float = DEADLINE_S,
    memory_mb: int = MEMORY_MB,
) -> dict[str, Any]:
    """``diff`` with limits; the difference as its JSON value."""
    options = {"allowed": allowed}
    value, _ = ask("diff", [name_a, name_b], [a, b], options, deadline_s=deadline_s, memory_mb=memory_mb)
    return dict(value)


def recalculate_safely(
    data: bytes, name: str, *, deadline_s: float = DEADLINE_S, memory_mb: int = MEMORY_MB
) -> tuple[dict[str, Any], bytes]:
    """``recalculate`` with limits: its report as a JSON value, and the file with fresh values."""
    value, blobs = ask("recalculate", [name], [data], {}, deadline_s=deadline_s, memory_mb=memory_mb)
    return dict(value), blobs[0]
