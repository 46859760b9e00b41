"""Word documents: everything a reader of the document can see, each with an address that edits understand.

Promises: tables, headers, footers, notes, comments, text boxes and tracked changes are read, none is dropped; texts
show tracked changes as accepted, and ``view`` shows any of the three states; edits change the parts they touch and
leave the bytes of all others as they were, and report what the saved file holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..editing import Change, Edited
from ..node import Document
from .views import View as View
from .views import text_below as text_below
from .views import view as view


def read(data: bytes, name: str) -> Document:
    """The tree of a Word document; see ``blocks`` for its addresses. Raises UnreadableDocument."""
    from .reader import read_places

    return read_places(data, name).document


def write(document: Document) -> bytes:
    """The file of a tree, see ``writer``. Raises Unsupported with the address of what cannot be written."""
    from .writer import write as write_document

    return write_document(document)


def edit(data: bytes, name: str, changes: Sequence[Change | Mapping[str, Any]]) -> Edited:
    """Apply changes, see ``edits`` for the ops. Raises BadEdit, NoSuchAddress or UnreadableDocument."""
    from .edits import edit as edit_document

    return edit_document(data, name, changes)
