"""Segments of a context as they are stored and read: written out, read back strictly, or inferred where none are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from journeyman.tokens.context import Columns, Segment, Source


def as_json(segments: Sequence[Segment]) -> list[dict[str, Any]]:
    """The segments of a context that was edited; none for one that only grew."""
    if len(segments) < 2:
        return []
    return [{"reason": s.reason, "start": s.start, "shared": [list(pair) for pair in s.shared]} for s in segments]


def of_json(stored: Any) -> tuple[Segment, ...]:
    """The inverse of ``as_json``: at least the opening.

    Raises:
        ValueError: they cannot be the segments of a context: not in order, or a prefix that is not there yet.
    """
    if not stored:
        return (Segment("opening", 0),)
    if not isinstance(stored, Iterable):
        raise ValueError(f"segments of type {type(stored).__name__}")
    found = tuple(_segment(entry) for entry in stored)
    starts = [segment.start for segment in found]
    if starts[0] != 0 or starts != sorted(starts) or any(s.shared for s in found[:1]):
        raise ValueError(f"segments that begin at {starts}")
    for segment in found:
        for begin, end in segment.shared:
            if not 0 <= begin < end <= segment.start:
                raise ValueError(f"a segment at {segment.start} that shares {begin} to {end}")
    return found


def inferred(columns: Columns) -> tuple[Segment, ...]:
    """Segments of tokens that were stored without them: each begins with prompt tokens after a turn.

    What a segment shares is not known then, and one that begins with a turn drawn again is not seen.
    """
    is_prompt = (columns.source == Source.PROMPT) & (columns.turn > 0)
    begins = np.flatnonzero(np.diff(is_prompt.astype(np.int8), prepend=0) == 1)
    return (Segment("opening", 0), *(Segment("", int(start)) for start in begins))


def prompt_ranges(segments: Sequence[Segment], position: int) -> list[tuple[int, int]]:
    """Half-open ranges of the columns that the model saw before the token at ``position``, in order."""
    segment = [segment for segment in segments if segment.start <= position][-1]
    return [*segment.shared, (segment.start, position)]


def _segment(entry: Any) -> Segment:
    if not isinstance(entry, Mapping):
        raise ValueError(f"a segment of type {type(entry).__name__}")
    try:
        shared = tuple((int(begin), int(end)) for begin, end in entry.get("shared") or ())
        return Segment(str(entry.get("reason") or ""), int(entry["start"]), shared)
    except (KeyError, TypeError) as error:
        raise ValueError(f"a segment without its fields: {error}") from error
