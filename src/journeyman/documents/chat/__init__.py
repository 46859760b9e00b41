"""Chat exports: channels, messages, threads, reactions, edits.

Read are Slack exports (zip, or one day's JSON), one JSON file or JSON lines of this schema, and chats that phones
export as text. Addresses: ``#channel``, ``#channel/<ts>``; conversations of two are ``@id``.

Schema of a message: ``ts`` (seconds since 1970 as text, or ISO 8601; unique in its channel), ``text``; and, if wanted,
``channel``, ``user``, ``user_name``, ``thread_ts`` (that of the message it answers), ``reactions`` (``name``,
``users``), ``edited`` (``user``, ``ts``), ``files`` (``name``, ``mimetype``, ``size``), ``subtype``, ``deleted``. One
JSON file is a list of messages or ``{"channels": [...], "users": [...], "messages": [...]}``. In Slack's and in this
JSON file texts are Slack's markup; the tree shows them as people see them and keeps the ``source``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..editing import Change, Edited
from ..node import Document


def read(data: bytes, name: str) -> Document:
    """The tree of a chat export. Raises UnreadableDocument."""
    from .reader import read_entries

    return read_entries(data, name)[0]


def write(document: Document) -> bytes:
    """The file of a tree, see ``writer``. Raises Unsupported."""
    from .writer import write as write_document

    return write_document(document)


def edit(data: bytes, name: str, changes: Sequence[Change | Mapping[str, Any]]) -> Edited:
    """Apply changes, see ``edits`` for the ops. Raises BadEdit, NoSuchAddress, Unsupported or UnreadableDocument."""
    from .edits import edit as edit_document

    return edit_document(data, name, changes)
