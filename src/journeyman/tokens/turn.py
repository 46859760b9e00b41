"""One sampled turn as bytes with the tokens they came from: where text is read, and where spans point back to ids."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from journeyman.tokens.malformed import Span
from journeyman.tokens.tokenizer import Tokenizer

Bytes = tuple[int, int]
"""Half-open range of byte positions in the turn."""


@dataclass(frozen=True)
class Thinking:
    """Where a turn thinks.

    Attributes:
        switches: (position after a tag, whether it opens), in order; the turn's begin comes first.
        whole: bytes from the first opening to the last closing tag, tags included, or None.
    """

    switches: tuple[tuple[int, bool], ...]
    whole: Bytes | None

    def at(self, position: int) -> bool:
        """True where the last tag before ``position`` opens."""
        return [opens for place, opens in self.switches if place <= position][-1]

    @property
    def is_open(self) -> bool:
        """True when the turn ends inside its thinking."""
        return self.switches[-1][1]


class Turn:
    """Ids of one turn, their bytes, and the way back.

    Args:
        ids: as sampled.
        tokenizer: the one whose vocabulary they belong to.
        stops: ids that end a turn; one at the very end is not part of the text.
    """

    def __init__(self, ids: Sequence[int], tokenizer: Tokenizer, stops: Sequence[int]) -> None:
        self.ids, self.tokenizer = ids, tokenizer
        self.stopped = bool(ids) and ids[-1] in stops
        self.end = len(ids) - 1 if self.stopped else len(ids)
        pieces = [tokenizer.token_bytes(token) for token in ids[: self.end]]
        self.raw = b"".join(pieces)
        self.starts = [0, *accumulate(map(len, pieces))]

    def text(self, start: int, end: int) -> str:
        """Bytes as text; each byte that is no UTF-8 becomes one lone surrogate, so that offsets stay exact."""
        return self.raw[start:end].decode("utf-8", "surrogateescape")

    def shown(self, ranges: Sequence[Bytes]) -> str:
        """Bytes as text for people: what is no UTF-8 becomes U+FFFD."""
        return b"".join(self.raw[start:end] for start, end in ranges).decode("utf-8", "replace")

    def span(self, start: int, end: int) -> Span:
        """The tokens that hold bytes ``start`` to ``end``."""
        first = min(bisect_right(self.starts, start) - 1, self.end)
        if end >= len(self.raw):
            return first, self.end
        return first, max(first, bisect_right(self.starts, end - 1))

    def tag(self, name: str) -> list[Bytes]:
        """Every place of a tag: by its id where the vocabulary has one, else by its spelling."""
        if name in self.tokenizer.special_names:
            token = self.tokenizer.special(name)
            return [(self.starts[at], self.starts[at + 1]) for at in range(self.end) if self.ids[at] == token]
        return [match.span() for match in re.finditer(re.escape(name.encode()), self.raw)]

    def thinking(self, tags: tuple[str, str] | None, opened: bool) -> Thinking:
        """Where the turn thinks; ``opened``: the prompt stands inside the thinking already."""
        if tags is None:
            return Thinking(((0, False),), None)
        found = sorted((*place, name == tags[0]) for name in tags for place in self.tag(name))
        switches = [(0, opened), *((end, opens) for _, end, opens in found)]
        begin = 0 if opened else next((start for start, _, opens in found if opens), None)
        if begin is None:
            return Thinking(tuple(switches), None)
        closing = [end for start, end, opens in found if not opens and start >= begin]
        return Thinking(tuple(switches), (begin, len(self.raw) if switches[-1][1] or not closing else closing[-1]))


def outside(ranges: Sequence[Bytes], end: int) -> list[Bytes]:
    """What of ``0..end`` no range covers."""
    gaps: list[Bytes] = []
    at = 0
    for start, stop in sorted(ranges):
        if start > at:
            gaps.append((at, start))
        at = max(at, stop)
    return [*gaps, (at, end)] if at < end else gaps
