"""One difference, and all of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

INPUT, FORMULA, DOWNSTREAM, STYLE, STRUCTURE, OPAQUE, METADATA = (
    "input", "formula", "downstream", "style", "structure", "opaque", "metadata",
)  # fmt: skip
KINDS = (INPUT, FORMULA, DOWNSTREAM, STYLE, STRUCTURE, OPAQUE, METADATA)
"""What a difference is: a value that somebody typed, a formula, a value that follows from others, a look, an order or
outline of parts, a part that is only compared as a whole, or what a save writes about itself."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One difference.

    Attributes:
        kind: a member of ``KINDS``.
        what: the thing in one or two words: ``cell``, ``row inserted``, ``sheet renamed``, ``paragraph moved``, ...
        address: where it lies in the second document; for what is gone, where it lay in the first.
        before: its state in the first document, None where it was not there; JSON values.
        after: its state in the second.
        was_at: its address in the first document where that differs.
        explained_by: addresses of the differences that a downstream value follows from.
        is_collateral: it lies outside the allowed region and follows from nothing inside it.
    """

    kind: str
    what: str
    address: str
    before: Any = None
    after: Any = None
    was_at: str = ""
    explained_by: tuple[str, ...] = ()
    is_collateral: bool = False

    def as_json(self) -> dict[str, Any]:
        """A JSON value; empty fields are left out."""
        value: dict[str, Any] = {"kind": self.kind, "what": self.what, "address": self.address}
        value |= {"before": self.before, "after": self.after}
        if self.was_at:
            value["was_at"] = self.was_at
        if self.explained_by:
            value["explained_by"] = list(self.explained_by)
        return {**value, "collateral": True} if self.is_collateral else value

    def mirrored(self) -> Entry:
        """The entry of the opposite comparison, without its causes."""
        words = {"inserted": "deleted", "deleted": "inserted", "added": "removed", "removed": "added"}
        what = " ".join(words.get(word, word) for word in self.what.split(" "))
        address, was_at = (self.was_at, self.address) if self.was_at else (self.address, "")
        return replace(
            self, what=what, address=address, was_at=was_at, before=self.after, after=self.before, explained_by=()
        )


@dataclass(frozen=True, slots=True)
class Diff:
    """All differences of two documents.

    Attributes:
        entries: what differs to a reader, in the order of the document.
        metadata: what only a save tells apart: dates, authors, applications.
        warnings: what could not be compared as it should.
    """

    entries: tuple[Entry, ...] = ()
    metadata: tuple[Entry, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def collateral(self) -> tuple[Entry, ...]:
        """Entries outside the allowed region."""
        return tuple(entry for entry in self.entries if entry.is_collateral)

    def counts(self) -> dict[str, int]:
        """Entries by kind."""
        return dict(Counter(entry.kind for entry in self.entries))

    def as_json(self) -> dict[str, Any]:
        """A JSON value."""
        return {
            "entries": [entry.as_json() for entry in self.entries],
            "metadata": [entry.as_json() for entry in self.metadata],
            "warnings": list(self.warnings),
            "counts": self.counts(),
            "collateral": len(self.collateral),
        }
