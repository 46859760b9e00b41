"""Tasks that are nearly the same: MinHash over the instruction's shingles, and a signature of what the task is made of.

Estimated similarity of two instructions is the share of equal places in their sketches (Broder's MinHash). Instructions
of one template are alike by nature, so two tasks are twins only when their parameters are alike as well.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from journeyman.digest import sha256_json
from journeyman.worlds.template import Bound

PLACES = 64
SHINGLE = 4
BANDS = 16
"""64 places in 16 bands of 4: pairs above about 0.5 become candidates, and are then compared."""

TWIN_SIMILARITY = 1.0
COPY_SIMILARITY = 0.8
"""Similarity to a foreign text from which a task counts as contaminated."""


@dataclass(frozen=True)
class Sketch:
    """What deduplication knows of a task.

    Attributes:
        task_id, world_id: which, and where.
        minhash: ``PLACES`` numbers.
        signature: digest of template, traps, level and kinds of checks: tasks of one make.
        answer: digest of what was asked and what is right.
    """

    task_id: str
    world_id: str
    minhash: tuple[int, ...]
    signature: str
    answer: str


def minhash(text: str) -> tuple[int, ...]:
    """The sketch of a text: the smallest hash of its word shingles under each of ``PLACES`` functions."""
    words = re.findall(r"\w+", text.lower())
    shingles = {" ".join(words[i : i + SHINGLE]) for i in range(max(1, len(words) - SHINGLE + 1))}
    values = [int.from_bytes(hashlib.blake2b(one.encode(), digest_size=8).digest(), "big") for one in shingles]
    mask = (1 << 61) - 1
    return tuple(min((value * a + b) % mask for value in values) for a, b in _FUNCTIONS)


_FUNCTIONS = [
    (
        int.from_bytes(hashlib.blake2b(f"a{i}".encode(), digest_size=7).digest(), "big") | 1,
        int.from_bytes(hashlib.blake2b(f"b{i}".encode(), digest_size=7).digest(), "big"),
    )
    for i in range(PLACES)
]


def similarity(one: Sequence[int], other: Sequence[int]) -> float:
    """Estimated Jaccard similarity of two sketches."""
    return sum(a == b for a, b in zip(one, other, strict=True)) / len(one)


def sketch_of(task_id: str, bound: Bound) -> Sketch:
    """The sketch of a bound task."""
    shape = {
        "template": bound.template,
        "traps": sorted(bound.traps),
        "level": bound.knobs.level // 3,
        "checks": [(check.fn, check.kind) for check in bound.checks],
    }
    answer = sha256_json([bound.answer, dict(bound.ask)])
    return Sketch(task_id, bound.world_id, minhash(bound.instruction), sha256_json(shape), answer)


def twins(sketches: Iterable[Sketch]) -> dict[str, list[str]]:
    """Task -> earlier tasks it is a twin of: asked the same with the same answer, or asked the same of one world.

    The earlier of two twins stays.
    """
    found: dict[str, list[str]] = defaultdict(list)
    buckets: dict[tuple[str, int, tuple[int, ...]], list[Sketch]] = defaultdict(list)
    by_answer: dict[str, str] = {}
    width = PLACES // BANDS
    for one in sketches:
        alike: set[str] = set()
        if one.answer in by_answer:
            alike.add(by_answer[one.answer])
        by_answer.setdefault(one.answer, one.task_id)
        for band in range(BANDS):
            bucket = buckets[one.world_id, band, one.minhash[band * width : (band + 1) * width]]
            for other in bucket:
                same_make = other.signature == one.signature
                if same_make and similarity(one.minhash, other.minhash) >= TWIN_SIMILARITY:
                    alike.add(other.task_id)
            bucket.append(one)
        if alike:
            found[one.task_id] = sorted(alike)
    return dict(found)


def contaminated(instructions: Mapping[str, str], foreign: Mapping[str, str]) -> list[tuple[str, str, float]]:
    """Tasks whose instruction is close to a text of somebody else's benchmark: (task, text, similarity).

    Args:
        instructions: task -> instruction.
        foreign: name -> text that must not be trained on.
    """
    sketches = {name: minhash(text) for name, text in foreign.items()}
    found = []
    for task, text in instructions.items():
        own = minhash(text)
        for name, other in sketches.items():
            if (share := similarity(own, other)) >= COPY_SIMILARITY:
                found.append((task, name, round(share, 3)))
    return found


def distinct_share(values: Iterable[Any]) -> float:
    """Part of the values that differ: a plain measure of diversity."""
    listed = [sha256_json(value) for value in values]
    return len(set(listed)) / len(listed) if listed else 1.0
