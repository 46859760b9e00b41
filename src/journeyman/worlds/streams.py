"""One random stream per stage of a world: adding or reordering a stage does not shift the numbers of another."""

from __future__ import annotations

import random
from zlib import crc32


def stage_stream(seed: int, split: str, index: int, stage: str) -> random.Random:
    """The stream of a stage, e.g. ``ledger``; equal in every process (numpy's SeedSequence, spawned by name).

    Args:
        seed: root seed, 0 or more.
        split: of the world.
        index: of the world in its split.
        stage: what the numbers are for.
    """
    from numpy.random import SeedSequence

    key = (crc32(split.encode()), index, crc32(stage.encode()))
    words = SeedSequence(entropy=seed, spawn_key=key).generate_state(4)
    return random.Random(int.from_bytes(words.astype("<u4").tobytes(), "little"))
