"""Two documents of any format as trees: paired by address or likeness, moved parts as one difference each.

Siblings of one kind are aligned by content, so that an inserted paragraph does not make the rest differ although their
addresses are counted. Where addresses are identities (message ids, events) they pair first.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import Any

from ..node import Document, Node
from .align import align, longest_increasing, pair_runs
from .entry import INPUT, METADATA, OPAQUE, STRUCTURE, STYLE, Diff, Entry

BY_IDENTITY = frozenset({"message", "event", "sheet", "name", "attachment", "channel", "part", "header"})
"""Kinds whose address is an identity that survives moves; all others are counted in order."""

IDENTITIES = ("slide_id",)
"""Attributes that name a node wherever it lies."""

LOOKS = frozenset({
    "style", "styles", "number_format", "box", "bbox", "font", "size", "bold", "italic", "underline", "color", "level",
    "alignment", "layout", "runs", "widths", "heights", "position",
})  # fmt: skip
"""Attributes that say how a node looks."""

WHOLE = frozenset({"sha256", "digest", "media", "size_bytes", "hash"})
"""Attributes that stand for content nobody reads."""

PLACES = frozenset({"index", "page", "slide", "number", "row", "column", "paragraph", "part", "title", "slide_id"})
"""Attributes that repeat where a node lies or what its children say; they follow from other differences."""

EDITED = 0.4
"""Two texts of one kind are one edited node at this likeness or more."""


def diff_documents(a: Document, b: Document) -> Diff:
    """All differences of two documents. Documents of different formats are compared by what they say."""
    digests: dict[int, str] = {}
    entries = tuple(_siblings(a.nodes, b.nodes, digests))
    keys = sorted(a.metadata.keys() | b.metadata.keys())
    metadata = [
        Entry(METADATA, "property", f"property:{key}", a.metadata.get(key), b.metadata.get(key))
        for key in keys
        if a.metadata.get(key) != b.metadata.get(key)
    ]
    if a.format != b.format:
        metadata.append(Entry(METADATA, "format", "property:format", a.format, b.format))
    warnings = tuple(f"{one.name}: {text}" for one in (a, b) for text in one.warnings)
    return Diff(entries, tuple(metadata), warnings)


def _digest(node: Node, digests: dict[int, str]) -> str:
    """Content of a node with its children, wherever it lies."""
    known = digests.get(id(node))
    if known is None:
        facts = {key: value for key, value in node.attributes.items() if key not in PLACES}
        inner = [_digest(child, digests) for child in node.children]
        text = json.dumps([node.kind, node.text, facts, inner], sort_keys=True, default=str)
        known = digests[id(node)] = hashlib.sha256(text.encode()).hexdigest()
    return known


def _siblings(a: Sequence[Node], b: Sequence[Node], digests: dict[int, str]) -> Iterator[Entry]:
    known = {key: node for node in b if (key := _identity(node))[0]}
    named = [(one, known[key]) for one in a if (key := _identity(one)) in known]
    if named:
        yield from _reordered(a, b, named)
        for one, two in named:
            yield from _node(one, two, digests)
    paired_a, paired_b = {id(one) for one, _ in named}, {id(two) for _, two in named}
    rest_a = [node for node in a if id(node) not in paired_a]
    rest_b = [node for node in b if id(node) not in paired_b]
    if rest_a or rest_b:
        yield from _aligned(rest_a, rest_b, digests)


def _identity(node: Node) -> tuple[str, str]:
    """What names a node wherever it lies; empty words for one that is only counted."""
    for key in IDENTITIES:
        if key in node.attributes:
            return node.kind, f"{key} {node.attributes[key]}"
    return (node.kind, node.address) if node.kind in BY_IDENTITY else ("", "")


def _reordered(a: Sequence[Node], b: Sequence[Node], named: list[tuple[Node, Node]]) -> Iterator[Entry]:
    order = {id(node): n for n, node in enumerate(b)}
    ranks = [order[id(two)] for _, two in named]
    stayed = set(longest_increasing(ranks))
    place = {id(node): n for n, node in enumerate(a)}
    for position, (one, two) in enumerate(named):
        if position not in stayed:
            was_at = "" if one.address == two.address else one.address
            yield Entry(STRUCTURE, f"{two.kind} moved", two.address, place[id(one)] + 1, order[id(two)] + 1, was_at)


def _aligned(a: Sequence[Node], b: Sequence[Node], digests: dict[int, str]) -> Iterator[Entry]:
    keys_a: list[Hashable] = [_digest(node, digests) for node in a]
    keys_b: list[Hashable] = [_digest(node, digests) for node in b]
    if keys_a == keys_b:
        return
    found = align(keys_a, keys_b, lambda i, j: _likeness(a[i], b[j]), is_blank=lambda key: False)
    for first, second, count in pair_runs(found.moved):
        one, two = a[first], b[second]
        if count == 1:
            yield Entry(STRUCTURE, f"{two.kind} moved", two.address, one.address, two.address, one.address)
        else:
            before, after = _span(a[first : first + count]), _span(b[second : second + count])
            yield Entry(STRUCTURE, f"{two.kind} moved", two.address, before, after, one.address)
    for i in found.deleted:
        yield Entry(STRUCTURE, f"{a[i].kind} deleted", a[i].address, summary(a[i]), None)
    for j in found.inserted:
        yield Entry(STRUCTURE, f"{b[j].kind} inserted", b[j].address, None, summary(b[j]))
    for i, j in found.kept:
        if keys_a[i] == keys_b[j]:
            continue
        if a[i].kind != b[j].kind or (not a[i].children and _likeness(a[i], b[j]) < EDITED and _is_prose(a[i])):
            yield Entry(STRUCTURE, f"{a[i].kind} deleted", a[i].address, summary(a[i]), None)
            yield Entry(STRUCTURE, f"{b[j].kind} inserted", b[j].address, None, summary(b[j]))
        else:
            yield from _node(a[i], b[j], digests)


def _span(nodes: Sequence[Node]) -> str:
    return f"{nodes[0].address} to {nodes[-1].address}"


def _is_prose(node: Node) -> bool:
    """Cells and headers keep their place whatever they say; a paragraph that says something else is another one."""
    return node.kind in ("paragraph", "line", "block", "text", "shape", "comment", "footnote") and len(node.text) > 20


def _node(one: Node, two: Node, digests: dict[int, str]) -> Iterator[Entry]:
    if _digest(one, digests) == _digest(two, digests):
        return
    was_at = "" if one.address == two.address else one.address
    if one.text != two.text:
        yield Entry(INPUT, one.kind, two.address, one.text, two.text, was_at)
    for kind, what, keys in _changed(one, two):
        before = {key: one.attributes.get(key) for key in keys}
        after = {key: two.attributes.get(key) for key in keys}
        yield Entry(kind, f"{one.kind} {what}", two.address, before, after, was_at)
    yield from _siblings(one.children, two.children, digests)


def _changed(one: Node, two: Node) -> Iterator[tuple[str, str, list[str]]]:
    a, b = one.attributes, two.attributes
    keys = [key for key in sorted(a.keys() | b.keys()) if a.get(key) != b.get(key) and key not in PLACES]
    follows = ("value", "type", "runs", "original") if one.text != two.text else ()  # the same change said another way
    looks = [key for key in keys if (key in LOOKS or key.endswith("_pt")) and key not in follows]
    whole = [key for key in keys if key in WHOLE]
    facts = [key for key in keys if key not in looks and key not in whole and key not in follows]
    if any(child.kind == "header" for child in one.children):
        facts = []  # of a mail; they repeat its headers
    said = INPUT if one.kind in BY_IDENTITY else STRUCTURE
    for kind, what, some in ((STYLE, "look", looks), (OPAQUE, "content", whole), (said, "fact", facts)):
        if some:
            yield kind, what, some


def summary(node: Node) -> Any:
    """What came or went: its text, with that of its children, or its facts when it has none."""
    texts = [node.text] if node.text else []
    stack = list(reversed(node.children))
    while stack:
        inner = stack.pop()
        if inner.text:
            texts.append(inner.text)
        stack.extend(reversed(inner.children))
    return "\n".join(texts) or dict(node.attributes)


def _likeness(one: Node, two: Node) -> float:
    """Share of equal content, 0 for nodes of different kinds."""
    if one.kind != two.kind:
        return 0.0
    if one.children and two.children:
        words_a, words_b = str(summary(one)).split(), str(summary(two)).split()
    else:
        words_a, words_b = one.text.split(), two.text.split()
    if not words_a or not words_b:
        return 0.5 if words_a == words_b else 0.1
    ratio = SequenceMatcher(None, words_a[:400], words_b[:400], autojunk=False).ratio()
    return max(ratio, 0.1)
