"""Output with a cap: the first bytes are kept, the rest is counted, and the cut never splits a UTF-8 character."""

from __future__ import annotations


def utf8_cut(data: bytes, limit: int) -> bytes:
    """The longest prefix of at most ``limit`` bytes that does not end inside a UTF-8 character.

    Bytes that are no UTF-8 at all are cut at ``limit``.
    """
    if len(data) <= limit:
        return data
    end = limit
    while end > max(0, limit - 3) and data[end] & 0xC0 == 0x80:
        end -= 1
    return data[:end] if data[end] & 0xC0 != 0x80 else data[:limit]


class Captured:
    """Output of one stream."""

    def __init__(self, limit: int) -> None:
        """``limit``: bytes to keep."""
        self._limit, self._kept, self._total = limit, bytearray(), 0

    def add(self, data: bytes) -> None:
        """Keep what fits, count the rest."""
        self._total += len(data)
        room = self._limit + 1 - len(self._kept)  # the byte after the cut tells whether it splits a character
        if room > 0:
            self._kept += data[:room]

    def result(self, *, text: bool = True) -> tuple[bytes, int]:
        """(kept bytes, omitted bytes); ``text`` cuts between characters."""
        kept = bytes(self._kept)
        kept = utf8_cut(kept, self._limit) if text else kept[: self._limit]
        return kept, self._total - len(kept)
