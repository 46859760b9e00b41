"""The append-only context of one trial: ids with parallel columns. Nothing in it can be changed or taken back.

An edit of the conversation (compaction, dropped thinking, a turn drawn again) opens a new segment: it shares a prefix
with the segment before and goes on from there. Every token is stored once, whatever number of segments shows it.
"""

from __future__ import annotations

import math
import sys
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import chain

import numpy as np
import numpy.typing as npt

SURELY_A_PROBABILITY = 1e-6
"""A logprob above this is no rounding error."""


class Source(IntEnum):
    """Where a token came from; the value of the ``source`` column."""

    PROMPT = 0
    SAMPLED = 1
    OBSERVATION = 2
    FORCED = 3
    DEMONSTRATION = 4


SOURCES = {source.name.lower(): int(source) for source in Source}


@dataclass(frozen=True)
class Columns:
    """A context as arrays of one length.

    Attributes:
        ids: int32 token ids.
        mask: uint8, 1 where the loss applies (sampled and demonstrated tokens, the stop token included).
        logprob: float32 natural log of the probability under the sampled distribution; 0 where nothing was sampled.
        source: uint8, a ``Source``.
        version: int32 weight version that sampled the token; -1 where nothing was sampled.
        turn: int32, 0 for the prompt, k for the k-th sampled turn and for what was appended after it.
    """

    ids: npt.NDArray[np.int32]
    mask: npt.NDArray[np.uint8]
    logprob: npt.NDArray[np.float32]
    source: npt.NDArray[np.uint8]
    version: npt.NDArray[np.int32]
    turn: npt.NDArray[np.int32]


@dataclass(frozen=True)
class Segment:
    """A stretch of the conversation between two edits.

    Attributes:
        reason: why it was opened ("opening" for the first).
        start: position in the columns of its first own token.
        shared: half-open ranges of the columns that stand before its own tokens: the prefix it kept.
    """

    reason: str
    start: int
    shared: tuple[tuple[int, int], ...] = ()


class Context:
    """Token ids that only grow, with source, mask, logprob, weight version and turn of each. Appending is O(new)."""

    def __init__(self) -> None:
        self._ids, self._version, self._turn = array("i"), array("i"), array("i")
        self._mask, self._source = array("B"), array("B")
        self._logprob = array("f")
        self._turns = 0
        self._segments = [Segment("opening", 0)]

    def __len__(self) -> int:
        """Tokens the model sees now: those of the current segment, its shared prefix included."""
        return sum(end - start for start, end in self._ranges())

    @property
    def ids(self) -> list[int]:
        """A copy of the ids the model sees now."""
        return list(chain.from_iterable(self._ids[start:end] for start, end in self._ranges()))

    @property
    def turns(self) -> int:
        """Sampled or demonstrated turns so far."""
        return self._turns

    @property
    def stored(self) -> int:
        """Tokens stored, of all segments; each one once."""
        return len(self._ids)

    @property
    def segments(self) -> tuple[Segment, ...]:
        """All segments, in the order in which they were opened."""
        return tuple(self._segments)

    def open_segment(self, keep: int, reason: str) -> None:
        """Go on from the first ``keep`` tokens the model sees now; what follows them stays stored, but is seen no more.

        Args:
            keep: 0 begins anew, ``len(context)`` keeps everything.
            reason: "compaction", "regenerated" or whatever the edit was.

        Raises:
            ValueError: ``keep`` is negative or more than there is.
        """
        if not 0 <= keep <= len(self):
            raise ValueError(f"cannot keep {keep} of {len(self)} tokens")
        shared: list[tuple[int, int]] = []
        for start, end in self._ranges():
            taken = min(keep, end - start)
            if taken:
                shared.append((start, start + taken))
            keep -= taken
        self._segments.append(Segment(reason, len(self._ids), tuple(shared)))

    def append_prompt(self, ids: Sequence[int]) -> None:
        """The opening of the conversation: system, instruction, generation prompt."""
        self._append(ids, Source.PROMPT)

    def append_observation(self, ids: Sequence[int]) -> None:
        """What the harness answered to a turn, separators and the next generation prompt included."""
        self._append(ids, Source.OBSERVATION)

    def append_forced(self, ids: Sequence[int]) -> None:
        """Tokens put in the model's mouth, such as the end of a turn that was cut at its length. Never trained on."""
        self._append(ids, Source.FORCED)

    def append_demonstration(self, ids: Sequence[int]) -> None:
        """A turn written by a demonstrator: trained on, but with no logprob because nobody sampled it."""
        self._turns += 1
        self._append(ids, Source.DEMONSTRATION, mask=1)

    def append_sampled(
        self,
        ids: Sequence[int],
        logprobs: Sequence[float] | npt.NDArray[np.float32],
        version: int | Sequence[int] | npt.NDArray[np.int32],
    ) -> None:
        """A sampled turn exactly as the engine returned it, its stop token included.

        Args:
            ids, logprobs: one of each per sampled token.
            version: weight version that sampled the turn, or one per token when weights changed in flight.

        Raises:
            ValueError: lengths differ, a logprob is not a finite number <= 0, or a version is negative.
        """
        values = np.asarray(logprobs, dtype=np.float32)
        given = np.asarray(version)
        versions: list[int] = given.tolist() if given.ndim else [int(given)] * len(ids)
        lowest = min(versions, default=0) if given.ndim else int(given)
        if values.shape != (len(ids),) or len(versions) != len(ids):
            raise ValueError(f"{len(ids)} sampled ids came with logprobs {values.shape}, {len(versions)} versions")
        told: list[float] = values.tolist()
        if not all(-math.inf < value <= SURELY_A_PROBABILITY for value in told):
            raise ValueError(f"sampled logprobs must be finite and <= 0, got {values.min()} to {values.max()}")
        if lowest < 0:
            raise ValueError(f"weight version must be >= 0, got {version}")
        self._turns += 1
        self._append(ids, Source.SAMPLED, mask=1, logprobs=values, versions=versions)

    def _ranges(self) -> list[tuple[int, int]]:
        current = self._segments[-1]
        return [*current.shared, (current.start, len(self._ids))]

    def _append(
        self,
        ids: Sequence[int],
        source: Source,
        *,
        mask: int = 0,
        logprobs: npt.NDArray[np.float32] | None = None,
        versions: Sequence[int] | None = None,
    ) -> None:
        new = array("i", ids)
        if new and min(new) < 0:
            raise ValueError(f"negative token id in {source.name.lower()} tokens")
        count = len(new)
        self._ids.extend(new)
        self._mask.frombytes(bytes([mask]) * count)
        self._source.frombytes(bytes([source]) * count)
        self._logprob.frombytes(bytes(4 * count) if logprobs is None else logprobs.tobytes())
        self._version.extend([-1] * count if versions is None else versions)
        self._turn.extend([self._turns] * count)

    def tail(self, start: int) -> tuple[bytes, ...]:
        """What is stored from token ``start`` on: the bytes of each column of ``Columns``, in its order and type.

        Little-endian on every machine; O(new), where ``arrays`` copies everything.
        """
        columns = (self._ids, self._mask, self._logprob, self._source, self._version, self._turn)
        parts = [column[start:] for column in columns]
        if sys.byteorder == "big":
            for part in parts:
                part.byteswap()
        return tuple(part.tobytes() for part in parts)

    def arrays(self) -> Columns:
        """All stored tokens as arrays that own their memory: later appends do not reach them."""
        return Columns(
            ids=np.array(self._ids, dtype=np.int32),
            mask=np.array(self._mask, dtype=np.uint8),
            logprob=np.array(self._logprob, dtype=np.float32),
            source=np.array(self._source, dtype=np.uint8),
            version=np.array(self._version, dtype=np.int32),
            turn=np.array(self._turn, dtype=np.int32),
        )


def segment_columns(columns: Columns, segments: Sequence[Segment]) -> list[Columns]:
    """Each segment as the model saw it: the prefix it shares, with mask 0 there, then its own tokens.

    One training row per segment; a token that several segments show is trained on once, where it was appended.
    """
    ends = [*(segment.start for segment in segments[1:]), len(columns.ids)]
    rows: list[Columns] = []
    for segment, end in zip(segments, ends, strict=True):
        ranges = [*segment.shared, (segment.start, end)]
        row = {name: np.concatenate([column[a:b] for a, b in ranges]) for name, column in vars(columns).items()}
        row["mask"][: len(row["mask"]) - (end - segment.start)] = 0
        rows.append(Columns(**row))
    return rows
