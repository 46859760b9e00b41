"""Edits as data: what is asked of a document, and what was done to it.

A change is a JSON-able mapping ``{"op": ..., "address": ..., ...}``; its address is one that reading gave. Each format
documents its own ops. All changes of one call are applied or none: the first that cannot be applied raises and names
itself. What no change names is left as it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .errors import BadEdit
from .node import nearest_of


@dataclass(frozen=True, slots=True)
class Change:
    """One change that is asked for.

    Attributes:
        op: what to do, a word of the format, e.g. ``set``, ``replace``, ``delete``.
        address: where, as reading gives it; empty for the whole document.
        values: the other fields, JSON values.
    """

    op: str
    address: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, value: Change | Mapping[str, Any], name: str) -> Change:
        """A change from its JSON value. Raises BadEdit when it is no such mapping."""
        if isinstance(value, Change):
            return value
        op, address = (value.get("op"), value.get("address", "")) if isinstance(value, Mapping) else (None, "")
        if not isinstance(op, str) or not op or not isinstance(address, str):
            shape = '{"op": text, "address": text, ...}'
            raise BadEdit(name, f"{value!r:.200} is no change", remedy=f"a change is {shape}")
        return cls(op, address, {key: one for key, one in value.items() if key not in ("op", "address")})

    def as_json(self) -> dict[str, Any]:
        """The inverse of ``of``."""
        return {"op": self.op, "address": self.address, **self.values}

    def text(self, key: str, name: str) -> str:
        """The field ``key`` as text. Raises BadEdit when it is missing or no text."""
        value = self.values.get(key)
        if not isinstance(value, str):
            problem = f"op {self.op!r} needs {key!r} as text, got {value!r:.80}"
            raise BadEdit(name, problem, place=self.address)
        return value

    def require(self, ops: Iterable[str], name: str) -> None:
        """Raise BadEdit, with the ops there are, when ``op`` is none of them."""
        allowed = sorted(ops)
        if self.op not in allowed:
            near = nearest_of(self.op, allowed)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise BadEdit(
                name, f"no op {self.op!r} here{hint}", place=self.address, remedy=f"ops: {', '.join(allowed)}"
            )


@dataclass(frozen=True, slots=True)
class ChangeReport:
    """One change that was made, with both states as JSON values; ``after`` is read back from the edited bytes.

    Attributes:
        op: of the change.
        address: of the place that changed; an edit of one place may report several.
        before: what was there, None for nothing.
        after: what is there now, None for nothing.
        note: what else a person must know, e.g. that a tracked deletion remains readable.
    """

    op: str
    address: str
    before: Any = None
    after: Any = None
    note: str = ""

    def as_json(self) -> dict[str, Any]:
        """A JSON value."""
        value = {"op": self.op, "address": self.address, "before": self.before, "after": self.after}
        return {**value, "note": self.note} if self.note else value


@dataclass(frozen=True, slots=True)
class Edited:
    """A document after its edits.

    Attributes:
        data: the whole file.
        changed: what was done, in the order of the changes.
        warnings: what the caller must know about the whole file.
    """

    data: bytes
    changed: tuple[ChangeReport, ...] = ()
    warnings: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """A JSON value without the bytes."""
        return {
            "size_bytes": len(self.data),
            "changed": [report.as_json() for report in self.changed],
            "warnings": list(self.warnings),
        }


def changes_of(values: Sequence[Change | Mapping[str, Any]], name: str) -> tuple[Change, ...]:
    """Changes from their JSON values. Raises BadEdit for the first that is none, or for an empty list."""
    if not values:
        raise BadEdit(name, "no change was asked for", remedy='give a list of {"op": ..., "address": ...}')
    return tuple(Change.of(value, name) for value in values)
