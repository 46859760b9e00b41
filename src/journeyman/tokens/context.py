"""The append-only context of one trial: ids with parallel columns. Nothing in it can be changed or taken back."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt


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


class Context:
    """Token ids that only grow, with source, mask, logprob, weight version and turn of each."""

    def __init__(self) -> None:
        self._ids, self._version, self._turn = array("i"), array("i"), array("i")
        self._mask, self._source = array("B"), array("B")
        self._logprob = array("f")
        self._turns = 0

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def ids(self) -> list[int]:
        """A copy of all ids."""
        return self._ids.tolist()

    @property
    def turns(self) -> int:
        """Sampled or demonstrated turns so far."""
        return self._turns

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
        self, ids: Sequence[int], logprobs: Sequence[float] | npt.NDArray[np.float32], version: int
    ) -> None:
        """A sampled turn exactly as the engine returned it, its stop token included.

        Raises:
            ValueError: lengths differ, a logprob is not a finite number <= 0, or the version is negative.
        """
        values = np.asarray(logprobs, dtype=np.float32)
        if values.shape != (len(ids),):
            raise ValueError(f"{len(ids)} sampled ids came with logprobs of shape {values.shape}")
        if len(ids) and not -np.inf < values.min() <= values.max() <= 1e-6:
            raise ValueError(f"sampled logprobs must be finite and <= 0, got {values.min()} to {values.max()}")
        if version < 0:
            raise ValueError(f"weight version must be >= 0, got {version}")
        self._turns += 1
        self._append(ids, Source.SAMPLED, mask=1, logprobs=values, version=version)

    def _append(
        self,
        ids: Sequence[int],
        source: Source,
        *,
        mask: int = 0,
        logprobs: npt.NDArray[np.float32] | None = None,
        version: int = -1,
    ) -> None:
        new = array("i", ids)
        if new and min(new) < 0:
            raise ValueError(f"negative token id in {source.name.lower()} tokens")
        count = len(new)
        self._ids.extend(new)
        self._mask.frombytes(bytes([mask]) * count)
        self._source.frombytes(bytes([source]) * count)
        self._logprob.frombytes(bytes(4 * count) if logprobs is None else logprobs.tobytes())
        self._version.extend([version] * count)
        self._turn.extend([self._turns] * count)

    def arrays(self) -> Columns:
        """The columns as arrays that own their memory: later appends do not reach them."""
        return Columns(
            ids=np.array(self._ids, dtype=np.int32),
            mask=np.array(self._mask, dtype=np.uint8),
            logprob=np.array(self._logprob, dtype=np.float32),
            source=np.array(self._source, dtype=np.uint8),
            version=np.array(self._version, dtype=np.int32),
            turn=np.array(self._turn, dtype=np.int32),
        )
