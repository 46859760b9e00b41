"""Presentations: everything on the slides, each with an address that edits understand.

Promises: groups, tables, charts with their values, diagrams, pictures, notes, comments and hidden slides are read;
edits change the parts they touch and leave the bytes of all others as they were, and report what the saved file holds.

Addresses: a slide by its position, ``s3``, with its id, which moving does not change, among its attributes; ``s3/sh5``
a shape by its id; ``s3/sh5/sh7`` a shape in a group; ``s3/sh4/r1c2`` a cell; ``s3/sh6/series1`` a series; ``s3/notes``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..editing import Change, Edited
from ..node import Document


def read(data: bytes, name: str) -> Document:
    """The tree of a presentation; see ``shapes`` for its addresses. Raises UnreadableDocument."""
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
