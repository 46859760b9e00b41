"""What a worker's CPU seconds went into: phases of building on one side, gates on the other, sandboxes included.

From control groups where they can be made; else from this process and the children it has waited for, which leaves out
what ran in sandboxes, and ``source`` says so.
"""

from __future__ import annotations

import resource
from collections import defaultdict
from typing import Any

from journeyman.sandbox.usage import CpuMeter

PROCESS_ONLY = "this program without its sandboxes (no control groups here)"
BUILD, GATES = "build", "gates"


class Spending:
    """Seconds by side and part, from one moment to the next. State: sums, and when the last part ended.

    Attributes:
        source: where the seconds come from.
    """

    def __init__(self, label: str) -> None:
        meter = CpuMeter.start(label)
        self._meter = meter if meter.is_exact else None
        self.source = meter.source if meter.is_exact else PROCESS_ONLY
        if self._meter is None:
            meter.close()
        self._sums: dict[tuple[str, str], float] = defaultdict(float)
        self._last_s = self._now_s()

    def start(self) -> None:
        """Forget the sums: a world begins."""
        self._sums.clear()
        self._last_s = self._now_s()

    def charge(self, side: str, part: str) -> None:
        """Book what was spent since the last moment."""
        now_s = self._now_s()
        self._sums[side, part] += now_s - self._last_s
        self._last_s = now_s

    def as_json(self) -> dict[str, Any]:
        """``source``, and seconds by part for ``build`` and ``gates``."""
        sides: dict[str, dict[str, float]] = {BUILD: {}, GATES: {}}
        for (side, part), seconds in sorted(self._sums.items()):
            sides[side][part] = round(seconds, 4)
        return {"source": self.source, **sides}

    def close(self) -> None:
        """End the counting."""
        if self._meter is not None:
            self._meter.close()

    def _now_s(self) -> float:
        if self._meter is not None:
            return self._meter.seconds()
        own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
        return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime
