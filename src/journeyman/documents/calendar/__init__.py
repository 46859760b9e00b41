"""Calendars (iCalendar): events, tasks, notes, with recurrence and time zones.

Promises: times keep the zone they were written in; a rule is expanded on request only, on local times; damaged lines
and unknown zones are warnings; an edit replaces the lines of what it names and leaves every other byte.

Addresses: ``event:<uid>``, ``todo:<uid>``, ``note:<uid>``; a changed occurrence is ``event:<uid>/<recurrence id>``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any

from ..editing import Change, Edited
from ..node import Document


def read(data: bytes, name: str) -> Document:
    """The tree of a calendar. Raises UnreadableDocument."""
    from .reader import read_entries

    return read_entries(data, name)[0]


def occurrences(data: bytes, name: str, start: date | datetime, end: date | datetime) -> Document:
    """Events from ``start`` to before ``end``, one node per occurrence. Raises TooLarge or UnreadableDocument."""
    from .recurrence import occurrences as expand

    return expand(data, name, start, end)


def write(document: Document) -> bytes:
    """The file of a tree, see ``writing``. Raises Unsupported."""
    from .writing import write as write_document

    return write_document(document)


def edit(data: bytes, name: str, changes: Sequence[Change | Mapping[str, Any]]) -> Edited:
    """Apply changes, see ``edits`` for the ops. Raises BadEdit, NoSuchAddress or UnreadableDocument."""
    from .edits import edit as edit_document

    return edit_document(data, name, changes)
