"""From name and bytes to a typed tree or an edited file, for every format.

The suffix says what a file claims to be, its bytes whether it is. These functions work in the calling process; for
files of unknown origin use ``child.read_safely`` and its siblings, which hold limits of time and memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from .content import check
from .editing import Change, Edited, changes_of
from .errors import TooLarge, UnreadableDocument, Unsupported
from .formats import FORMATS, Format, suffix_of
from .node import Document, nearest_of
from .tree import brief

MAX_BYTES = 64_000_000
"""Larger files are refused before a reader sees them."""


def open_document(data: bytes, name: str) -> Document:
    """The typed tree of a document. Same bytes and suffix, same tree.

    Args:
        data: the whole file.
        name: file name; its suffix decides, in any case.

    Raises:
        UnreadableDocument: a subclass for each remedy, see ``errors``; nothing else is raised by a reader.
    """
    row = _row_of(data, name)
    with _Boundary(name):
        document = row.module(name).read(data, name)
    assert isinstance(document, Document)
    return document


def edit(data: bytes, name: str, changes: Sequence[Change | Mapping[str, Any]]) -> Edited:
    """Apply changes to a document; what they do not name stays as it was. All of them are applied, or none.

    Args:
        data: the whole file.
        name: file name; its suffix decides.
        changes: see ``editing.Change``; JSON values are welcome.

    Raises:
        BadEdit: a change cannot be applied. NoSuchAddress: nothing has its address.
        Unsupported: the format is not edited. UnreadableDocument: as in ``open_document``.
    """
    row, asked = _row_of(data, name), changes_of(changes, name)
    if not row.is_edited:
        editable = ", ".join(suffix for suffix, one in FORMATS.items() if one.is_edited)
        raise Unsupported(name, f"{row.content} files are not edited", remedy=f"edited are: {editable}")
    with _Boundary(name):
        edited = row.module(name).edit(data, name, asked)
    assert isinstance(edited, Edited)
    return edited


def write(document: Document) -> bytes:
    """The file of a tree, in the format that the suffix of its name says.

    Raises:
        Unsupported: the format is not written, or the tree holds what its writer cannot express.
    """
    row = FORMATS.get(suffix_of(document.name))
    if row is None or not row.is_written:
        written = ", ".join(suffix for suffix, one in FORMATS.items() if one.is_written)
        raise Unsupported(
            document.name, f"{suffix_of(document.name)!r} is not written", remedy=f"written are: {written}"
        )
    with _Boundary(document.name):
        data = row.module(document.name).write(document)
    assert isinstance(data, bytes)
    return data


def diff(a: bytes, b: bytes, name_a: str, name_b: str, allowed: Sequence[str] | None = None) -> Any:
    """The semantic difference of two documents, see ``diff``.

    Args:
        a: the earlier file.
        b: the later file.
        name_a: of the earlier.
        name_b: of the later.
        allowed: addresses or ranges that may change; what changes elsewhere is collateral. None allows everything.

    Raises:
        UnreadableDocument: as in ``open_document``, for the one that cannot be read.
    """
    for data, name in ((a, name_a), (b, name_b)):
        _row_of(data, name)
    with _Boundary(name_a):
        return import_module(".diff", __package__).diff(a, b, name_a, name_b, allowed=allowed)


def recalculate(data: bytes, name: str) -> Any:
    """A workbook with the values of all its formulas computed anew, see ``xlsx``.

    Raises:
        UnknownFormula: no engine knows a function of it. EnginesDisagree: two give different values.
        Unsupported: not a workbook whose formulas can be computed.
    """
    row = _row_of(data, name)
    if row.content != "xlsx":
        raise Unsupported(name, f"{row.content} files have no formulas to compute", remedy="give an xlsx or xlsm file")
    with _Boundary(name):
        return row.module(name).recalculate(data, name)


def _row_of(data: bytes, name: str) -> Format:
    suffix = suffix_of(name)
    row = FORMATS.get(suffix)
    if row is None:
        near = nearest_of(suffix, FORMATS)
        hint = f"did you mean {near[0]}? " if near else ""
        raise Unsupported(name, f"no reader for {suffix!r}", remedy=f"{hint}readable: {', '.join(sorted(FORMATS))}")
    if not data:
        raise UnreadableDocument(name, "the file is empty")
    if len(data) > MAX_BYTES:
        raise TooLarge(name, f"{len(data)} bytes are more than the {MAX_BYTES} that are read")
    check(data, name, row)
    return row


class _Boundary:
    """Makes the zoo of errors that reader libraries raise on damaged files one typed error.

    A panic of a Rust library is a BaseException and is named like one of ours, so it is told apart by its module.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is None or isinstance(error, UnreadableDocument | KeyboardInterrupt | SystemExit):
            return
        if isinstance(error, MemoryError | RecursionError):
            raise TooLarge(self.name, f"{type(error).__name__} while reading") from error
        if isinstance(error, Exception) or type(error).__name__ == "PanicException":
            raise UnreadableDocument(self.name, f"damaged: {brief(error)}") from error
