"""A long output as its two ends, by bytes, never in the middle of a character."""

from __future__ import annotations

MAX_BYTES = 10_000


def limited(text: str, max_bytes: int = MAX_BYTES) -> str:
    """At most ``max_bytes`` bytes of a text, half from each end, and between them how many were left out."""
    data = text.encode("utf-8", "replace")
    if len(data) <= max_bytes:
        return data.decode()
    half = max_bytes // 2
    head = data[:half].decode("utf-8", "ignore")
    tail = data[-half:].decode("utf-8", "ignore")
    omitted = len(data) - len(head.encode()) - len(tail.encode())
    return f"{head}\n[... output limited to {max_bytes} bytes; {omitted} interior bytes omitted ...]\n{tail}"
