"""One root seed, many independent streams, each named by what it is for.

A stream is keyed by words and numbers, e.g. ``key64(seed, "rollout", step, trial, turn)``, so adding or reordering work
never shifts another stream, and a redone step draws the same numbers.
"""

from __future__ import annotations

import hashlib
import random

Part = str | int


def key64(seed: int, *parts: Part) -> int:
    """A 64-bit key for the stream named by ``parts`` under ``seed`` (blake2b; no two names share an encoding)."""
    text = "\x1f".join([str(seed), *(f"{type(p).__name__}:{_escaped(p)}" for p in parts)])
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


def _escaped(part: Part) -> str:
    return str(part).replace("\\", "\\\\").replace("\x1f", "\\u")  # a separator inside a word is not one between words


def stream(seed: int, *parts: Part) -> random.Random:
    """A ``random.Random`` for the stream named by ``parts``; the same numbers in every process and Python >= 3.11."""
    return random.Random(key64(seed, *parts))
