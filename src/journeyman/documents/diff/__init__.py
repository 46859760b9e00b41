"""Semantic differences of two documents: what a reader would call a change, each found once.

Promises: a document does not differ from itself; a file saved again by another program differs in metadata only, as far
as that program kept what was there; a value that follows from a change is told from one that somebody wrote.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .entry import DOWNSTREAM, KINDS, Diff, Entry
from .region import Region

__all__ = ["KINDS", "Diff", "Entry", "Region", "diff"]

WORKBOOKS = ("xlsx", "xlsm", "xltx", "xltm")


def diff(a: bytes, b: bytes, name_a: str, name_b: str, *, allowed: Sequence[str] | None = None) -> Diff:
    """What differs between two files.

    Args:
        a: the first file, before.
        b: the second file, after.
        name_a: file name of the first; its suffix decides how it is read.
        name_b: file name of the second.
        allowed: addresses and ranges that may change, see ``Region``; None allows everything.

    Raises:
        UnreadableDocument: a file cannot be read, see ``documents.errors``.
    """
    if a == b and name_a == name_b:
        return Diff()
    suffix_a, suffix_b = (name.rpartition(".")[2].lower() for name in (name_a, name_b))
    if suffix_a in WORKBOOKS and suffix_b in WORKBOOKS:
        from .workbook import diff_workbooks

        found = diff_workbooks(a, b, name_a, name_b)
    else:
        from ..opening import open_document
        from .trees import diff_documents

        found = diff_documents(open_document(a, name_a), open_document(b, name_b))
    return found if allowed is None else judged(found, allowed)


def judged(found: Diff, allowed: Sequence[str]) -> Diff:
    """The same differences with those outside the allowed region marked.

    A downstream value is collateral only when something it follows from is, or when nothing explains it.
    """
    region = Region(allowed)
    outside = {
        entry.address for entry in found.entries if entry.kind != DOWNSTREAM and not region.covers(entry.address)
    }
    entries = []
    for entry in found.entries:
        if entry.kind == DOWNSTREAM and not region.covers(entry.address):
            is_collateral = not entry.explained_by or bool(outside.intersection(entry.explained_by))
        else:
            is_collateral = entry.address in outside and entry.kind != DOWNSTREAM
        entries.append(replace(entry, is_collateral=is_collateral))
    return Diff(tuple(entries), found.metadata, found.warnings)
