"""``events.jsonl``: what happened in a trial, one JSON object per line, each chained to the line before it.

A line holds ``seq`` (from 0), ``prev`` (the first 16 hex digits of the sha256 of the previous line, "" in the first)
and the event's own fields. A torn last line, a gap or a changed line ends what a reader believes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from journeyman.trials.store.growing import GrowingFile


@dataclass(frozen=True)
class EventContent:
    """The whole lines of an event log, the length of that part, and of the tail that is torn or breaks the chain."""

    events: list[dict[str, Any]]
    good_bytes: int
    torn_bytes: int
    last: str


class EventLog:
    """The writing end; an existing file is cut to its whole part and continued. One ``write`` per event.

    Attributes:
        file: the file that grows.
    """

    def __init__(self, path: Path | str) -> None:
        self.file = GrowingFile(path)
        content = read_events(self.file.found)
        self._seq, self._prev = len(content.events), content.last
        self.file.keep(content.good_bytes)

    def append(self, event: Mapping[str, Any]) -> None:
        """Store one event. Raises OSError with the file as it was; ValueError when it is not JSON."""
        head = {"seq": self._seq, "prev": self._prev}
        line = json.dumps({**head, **event}, ensure_ascii=False, allow_nan=False).encode()
        self.file.append(line + b"\n")
        self._seq, self._prev = self._seq + 1, _chain(line)


def read_events(data: bytes) -> EventContent:
    """Every whole, chained line of a log; what follows the first bad one is counted, never an error."""
    events: list[dict[str, Any]] = []
    good, last = 0, ""
    for line in data.split(b"\n")[:-1]:
        try:
            event = json.loads(line)
        except ValueError:
            break
        if not isinstance(event, dict) or event.get("seq") != len(events) or event.get("prev") != last:
            break
        events.append(event)
        good, last = good + len(line) + 1, _chain(line)
    return EventContent(events, good, len(data) - good, last)


def segments_told(events: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The segments that the last event about them tells; none where there is none: the context only grew."""
    told = [event.get("segments") for event in events if event.get("type") == "segments"]
    return list(told[-1]) if told and isinstance(told[-1], list) else []


def _chain(line: bytes) -> str:
    return hashlib.sha256(line).hexdigest()[:16]
