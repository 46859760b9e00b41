"""Documents as plain text in reading order, as a service of frames; for readers that are models.

Where a format or its library is not to be had, the tables of the file are given as ``serve`` gives them.
"""

from __future__ import annotations

import json

from .errors import UnreadableDocument
from .opening import open_document
from .reading import read
from .tree import UnreadableDocument as UnreadableTables


def handle_many(payload: bytes) -> bytes:
    """Read several documents, each answered by itself.

    Args:
        payload: JSON ``[[name, size in bytes], ...]``, a line feed, the contents one after the other.

    Returns:
        JSON list of texts in the same order; of a file that cannot be read the words ``[unreadable: reason]``.
    """
    header, _, contents = payload.partition(b"\n")
    answers: list[str] = []
    at = 0
    for name, size in json.loads(header):
        answers.append(text_of(contents[at : at + size], name))
        at += size
    return json.dumps(answers, ensure_ascii=False).encode("utf-8", "replace")


def text_of(data: bytes, name: str) -> str:
    """One document as text."""
    try:
        return str(open_document(data, name).text())
    except (UnreadableDocument, ImportError) as error:
        reason = str(error)
    try:
        return json.dumps(read(data, name), ensure_ascii=False)
    except (UnreadableTables, ImportError):
        return f"[unreadable: {reason}]"
