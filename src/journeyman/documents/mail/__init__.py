"""Mail: single messages (eml, msg) and mailboxes (mbox), with threads, nested messages and attachments.

Promises: broken headers, unknown character sets and cut-off parts are read as far as they go, with a warning; an edit
replaces the bytes of what it names and leaves all others, line endings included.

Addresses: ``msg:<id>``, by position where there is no id; ``msg:<id>/header/subject``, ``msg:<id>/body``,
``msg:<id>/part2``; a message in an attachment is ``msg:<id>/part2/msg:<its id>``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..editing import Change, Edited
from ..node import Document

OLE_MAGIC = b"\xd0\xcf\x11\xe0"


def read(data: bytes, name: str) -> Document:
    """The tree of a message or mailbox. Raises UnreadableDocument."""
    if data.startswith(OLE_MAGIC) or name.lower().endswith(".msg"):
        from .msg import read_msg

        return read_msg(data, name)[0]
    from .reader import read_places

    return read_places(data, name)[0]


def write(document: Document, contents: Mapping[str, bytes] | None = None) -> bytes:
    """The file of a tree, eml or mbox; bytes of attachments by their address. Raises Unsupported."""
    from .writer import write as write_document

    return write_document(document, contents)


def edit(data: bytes, name: str, changes: Sequence[Change | Mapping[str, Any]]) -> Edited:
    """Apply changes to a message or mailbox, see ``edits``. Raises BadEdit, NoSuchAddress or UnreadableDocument."""
    from ..errors import Unsupported

    if data.startswith(OLE_MAGIC):
        raise Unsupported(name, "Outlook messages are not edited", remedy="read it, and write it as eml")
    from .edits import edit as edit_document

    return edit_document(data, name, changes)


def attachment(data: bytes, name: str, address: str) -> tuple[str, bytes]:
    """Name and bytes of an attachment, for the room's readers. Raises NoSuchAddress or UnreadableDocument."""
    from ..errors import NoSuchAddress

    if data.startswith(OLE_MAGIC):
        from .msg import read_msg

        document, contents = read_msg(data, name)
    else:
        from .reader import read_places

        document, reading = read_places(data, name)
        contents = reading.contents
    if address not in contents:
        document.find(address)
        raise NoSuchAddress(name, "no attachment with content has this address", place=address)
    return contents[address]
