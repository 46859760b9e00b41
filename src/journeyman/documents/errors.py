"""What can be wrong with a document: one type per remedy, each naming the file, the place and what to do.

Verifiers and tools decide by type; people read the message. ``kind`` is the word that ends in JSON and in statistics.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import ClassVar


class UnreadableDocument(Exception):
    """The bytes are not a document of the kind that the name says, or the document is damaged.

    Args:
        name: file name as given.
        what: what is wrong, in one clause.
        place: where in the file, e.g. a part, a page or a cell; empty for the whole file.
        remedy: what the reader of the message can do.
    """

    kind: ClassVar[str] = "damaged"

    def __init__(self, name: str, what: str, *, place: str = "", remedy: str = "") -> None:
        self.name, self.what, self.place, self.remedy = name, what, place, remedy
        where = f"{name}, {place}" if place else name
        super().__init__(f"{where}: {what}" + (f"; {remedy}" if remedy else ""))

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.name, self.what, self.place, self.remedy)


def _rebuild(kind: type[UnreadableDocument], name: str, what: str, place: str, remedy: str) -> UnreadableDocument:
    return kind(name, what, place=place, remedy=remedy)


class Encrypted(UnreadableDocument):
    """A password is needed."""

    kind = "encrypted"


class MissingPart(UnreadableDocument):
    """A container lacks a part that its format requires."""

    kind = "missing_part"


class Unsupported(UnreadableDocument):
    """No reader or writer for this format or feature."""

    kind = "unsupported"


class WrongKind(UnreadableDocument):
    """The name says one format, the content is another."""

    kind = "wrong_kind"


class TooLarge(UnreadableDocument):
    """More bytes, members, pages, cells or nesting than the limits allow."""

    kind = "too_large"


class TookTooLong(UnreadableDocument):
    """The reader did not end by its deadline and was killed."""

    kind = "timeout"


class ReaderDied(UnreadableDocument):
    """The reader's process ended by a signal or a panic, or ran out of its memory."""

    kind = "reader_died"


class UnknownFormula(UnreadableDocument):
    """Neither recalculation engine knows a function of this formula."""

    kind = "unknown_formula"


class EnginesDisagree(UnreadableDocument):
    """Two recalculation engines give different values for one cell."""

    kind = "engines_disagree"


class NoSuchAddress(UnreadableDocument):
    """The document has no place of this address."""

    kind = "no_such_address"


class BadEdit(UnreadableDocument):
    """A change that cannot be applied to the place it names; nothing was written."""

    kind = "bad_edit"
