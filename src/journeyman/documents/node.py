"""Documents as typed trees: every node has a kind, an address that finds it again, and plain text.

The address grammar is that of the format (table in ``docs/documents.md``): an address found by reading names the same
place for editing and in a diff. Trees are immutable, hold JSON values only and compare by value.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import islice
from typing import Any

from .errors import NoSuchAddress


@dataclass(frozen=True, slots=True)
class Node:
    """One place of a document.

    Attributes:
        kind: what it is: ``page``, ``paragraph``, ``table``, ``row``, ``cell``, ``sheet``, ``slide``, ``shape``, ...
        address: unique in its document and stable while the place exists.
        text: its own text, without that of its children.
        attributes: what the format knows about it, JSON values.
        children: parts, in reading order.
    """

    kind: str
    address: str
    text: str = ""
    attributes: Mapping[str, Any] = field(default_factory=dict)
    children: tuple[Node, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """A JSON value; empty fields are left out."""
        value: dict[str, Any] = {"kind": self.kind, "address": self.address}
        if self.text:
            value["text"] = self.text
        if self.attributes:
            value["attributes"] = dict(self.attributes)
        if self.children:
            value["children"] = [child.as_json() for child in self.children]
        return value

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Node:
        """The inverse of ``as_json``."""
        children = tuple(cls.from_json(child) for child in value.get("children", ()))
        return cls(value["kind"], value["address"], value.get("text", ""), dict(value.get("attributes", {})), children)


@dataclass(frozen=True, slots=True)
class Document:
    """A whole document.

    Attributes:
        format: ``pdf``, ``xlsx``, ``docx``, ``pptx``, ``eml``, ``mbox``, ``msg``, ``chat``, ``ics``, ``csv``.
        name: file name as given.
        nodes: top level, in reading order.
        metadata: title, author, dates, page count, producer: JSON values.
        warnings: what a reader must know: a page without text layer, values that were never calculated, a hidden sheet.
    """

    format: str
    name: str
    nodes: tuple[Node, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    def walk(self) -> Iterator[Node]:
        """Every node, parents before children, in reading order."""
        stack = list(reversed(self.nodes))
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(node.children))

    def find(self, address: str) -> Node:
        """The node of this address. Raises NoSuchAddress with the nearest ones."""
        for node in self.walk():
            if node.address == address:
                return node
        addresses = [node.address for node in self.walk()]
        part = re.split(r"[!/@]", address, maxsplit=1)[0]  # a sheet, page or slide: whoever names it means it
        within = [one for one in addresses if re.split(r"[!/@]", one, maxsplit=1)[0] == part]
        near = nearest_of(address, within or addresses)
        remedy = f"nearest: {', '.join(near)}" if near else "read the document again for its addresses"
        raise NoSuchAddress(self.name, f"no {address!r} in this {self.format}", place=address, remedy=remedy)

    def text(self) -> str:
        """All text in reading order, one node per line."""
        return "\n".join(node.text for node in self.walk() if node.text)

    def as_json(self) -> dict[str, Any]:
        """A JSON value."""
        return {
            "format": self.format,
            "name": self.name,
            "metadata": dict(self.metadata),
            "warnings": list(self.warnings),
            "nodes": [node.as_json() for node in self.nodes],
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Document:
        """The inverse of ``as_json``."""
        nodes = tuple(Node.from_json(node) for node in value["nodes"])
        return cls(value["format"], value["name"], nodes, dict(value["metadata"]), tuple(value["warnings"]))


def nearest_of(word: str, known: Iterable[str], count: int = 3) -> list[str]:
    """The known words most like ``word``, best first; at most 5,000 are compared, for difflib is slow."""
    return get_close_matches(word, list(islice(known, 5000)), n=count)
