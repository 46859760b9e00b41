"""Token columns as values: cutting, joining, and the runs of equal source, version and turn that store them cheaply."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from journeyman.tokens.context import Columns, Source

DTYPES = {"ids": "int32", "mask": "uint8", "logprob": "float32", "source": "uint8", "version": "int32", "turn": "int32"}
"""Name and dtype of every token column, in order; one value per token."""

_TURN = b"t"
_KINDS = bytes(
    {
        Source.PROMPT: ord("g"),
        Source.OBSERVATION: ord("g"),
        Source.SAMPLED: ord("t"),
        Source.DEMONSTRATION: ord("t"),
    }.get(source, ord("f"))  # type: ignore[call-overload]
    for source in range(256)
)
"""Letter of every source: given to the policy, part of a turn, or forced into one. Bytes cost less than arrays here."""
_BOUNDARY = re.compile(rb"[^g](?=g)")

SPAN_FIELDS = ("start", "end", "source", "version", "turn")


def empty() -> Columns:
    """Columns of no token."""
    return Columns(**{name: np.empty(0, dtype=dtype) for name, dtype in DTYPES.items()})


def cut(columns: Columns, start: int, end: int) -> Columns:
    """Tokens ``start`` to ``end`` as views."""
    return Columns(**{name: getattr(columns, name)[start:end] for name in DTYPES})


def joined(parts: Sequence[Columns]) -> Columns:
    """The parts one after the other."""
    if not parts:
        return empty()
    return Columns(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in DTYPES})


def equal(left: Columns, right: Columns) -> bool:
    """Whether both hold the same values, logprobs compared bit for bit."""
    return all(
        getattr(left, name).dtype == getattr(right, name).dtype
        and getattr(left, name).tobytes() == getattr(right, name).tobytes()
        for name in DTYPES
    )


def spans_of(columns: Columns) -> npt.NDArray[np.int32]:
    """Runs of equal (source, version, turn): int32 ``[spans, 5]``, columns as ``SPAN_FIELDS``."""
    n = len(columns.ids)
    if n == 0:
        return np.empty((0, 5), dtype=np.int32)
    state = np.stack([columns.source.astype(np.int32), columns.version, columns.turn], axis=1)
    starts = np.flatnonzero(np.concatenate([[True], (state[1:] != state[:-1]).any(axis=1)]))
    ends = np.append(starts[1:], n)
    return np.column_stack([starts, ends, state[starts]]).astype(np.int32)


def from_spans(
    ids: npt.NDArray[np.int32],
    mask: npt.NDArray[np.uint8],
    logprob: npt.NDArray[np.float32],
    spans: npt.NDArray[np.int32],
) -> Columns:
    """The inverse of ``spans_of``: columns ``[tokens]`` from spans ``[spans, 5]``."""
    lengths = spans[:, 1] - spans[:, 0]
    return Columns(
        ids=ids,
        mask=mask,
        logprob=logprob,
        source=np.repeat(spans[:, 2].astype(np.uint8), lengths),
        version=np.repeat(spans[:, 3], lengths),
        turn=np.repeat(spans[:, 4], lengths),
    )


def has_turn(call: Columns) -> bool:
    """Whether some of these tokens are a turn (sampled or demonstrated), not only what was given to the policy."""
    return _TURN in call.source.tobytes().translate(_KINDS)


def calls_of(columns: Columns) -> list[Columns]:
    """A context cut into model calls: what was appended before a turn, then the turn and what was forced into it.

    A new call begins where tokens that nobody sampled follow a turn; observation tokens carry the number of the turn
    before them (``Columns.turn``), so a call's own turn number is that of its last token.
    """
    if len(columns.ids) == 0:
        return []
    kinds = columns.source.tobytes().translate(_KINDS)
    later = [found.start() + 1 for found in _BOUNDARY.finditer(kinds)]
    if not later:
        return [columns]
    return [cut(columns, start, end) for start, end in itertools.pairwise([0, *later, len(columns.ids)])]
