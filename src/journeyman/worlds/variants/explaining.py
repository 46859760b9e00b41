"""What a mutation changed, in words that an author can act on."""

from __future__ import annotations

from typing import Any

from journeyman.worlds.template import Answer
from journeyman.worlds.variants.leaves import leaves, lists

SHOWN = 2
MAX_CHARS = 40


def explained(answer: Answer, mutant: Answer) -> str:
    """Places where two answers differ: ``rows.3.price: 12.5 -> 12500.0``; lists by their lengths."""
    found = []
    before, after = dict(lists(answer)), dict(lists(mutant))
    for path, rows in before.items():
        if path in after and len(after[path]) != len(rows):
            found.append(f"{_place(path)}: {len(rows)} -> {len(after[path])} rows")
    if not found:
        old, new = dict(leaves(answer)), dict(leaves(mutant))
        changed = [path for path in old if path not in new or new[path] != old[path]]
        found = [f"{_place(path)}: {_short(old[path])} -> {_short(new.get(path))}" for path in changed[:SHOWN]]
        if len(changed) > SHOWN:
            found.append(f"{len(changed) - SHOWN} more")
    return "; ".join(found) or "nothing that can be seen"


def _place(path: tuple[str | int, ...]) -> str:
    return ".".join(map(str, path))


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= MAX_CHARS else f"{text[: MAX_CHARS - 3]}..."
