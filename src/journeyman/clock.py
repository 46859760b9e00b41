"""Wall-clock time in one format, and a stopwatch. CPU time is measured by ``sandbox/usage.py``, from a cgroup."""

from __future__ import annotations

import time
from datetime import UTC, datetime


def now() -> str:
    """The current instant as ISO 8601 in UTC, whole seconds, e.g. ``2026-11-29T18:00:00Z``."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Stopwatch:
    """Seconds since it was made, on the monotonic clock."""

    def __init__(self) -> None:
        self._start = time.monotonic()

    @property
    def elapsed_s(self) -> float:
        return time.monotonic() - self._start
