"""A one-sided detector of sudden drift: a standardised cumulative sum over a baseline that follows slow change.

Learning itself moves every figure, so the baseline is a moving mean; it stands still while a drift is suspected, so
that a hack is not learned as normal. Noise is estimated from differences of neighbouring steps, which a trend hardly
touches.
"""

from __future__ import annotations

import math
from typing import Any

SLACK = 1.0
"""Standard deviations per step that count as nothing (k of the chart)."""
LIMIT = 5.0
"""Sum at which it alarms (h): a shift of 4 standard deviations takes two steps; noise alone about 10^5 steps."""
MEMORY = 0.15
"""Weight of the newest step in the baseline."""
NOISE_MEMORY = 0.05
"""Weight of the newest difference in the noise estimate."""
SUSPECTED = 3.0
"""Sum from which the baseline stands still."""
WARM_UP = 8
"""Steps before it may alarm: the noise must be known first."""
CLIP = 4.0
"""Largest standardised deviation of one step: a single outlier is no drift and cannot alarm alone."""


class Drift:
    """Watches one figure for a rise.

    Args:
        floor: smallest standard deviation assumed, in units of the figure.

    Attributes:
        baseline, noise: mean and standard deviation now; None before the first step.
        total: the cumulative sum.
    """

    def __init__(self, floor: float) -> None:
        self.floor = floor
        self.baseline: float | None = None
        self.noise: float | None = None
        self.total = 0.0
        self._steps = 0
        self._last: float | None = None

    def observe(self, value: float) -> bool:
        """Take one step in; True when it drifts."""
        if not math.isfinite(value):
            return False
        self._steps += 1
        if self.baseline is None:
            self.baseline = self._last = value
            return False
        assert self._last is not None
        sigma = self.sigma
        deviation = min(CLIP, (value - self.baseline) / sigma)
        warm = self._steps > WARM_UP
        self.total = max(0.0, self.total + deviation - SLACK) if warm else 0.0
        if self.total < SUSPECTED:  # learning from quiet steps alone would pull the baseline down
            weight = MEMORY if warm else 1 / self._steps
            self.baseline += weight * (value - self.baseline)
            self._learn_noise(value - self._last, warm)
        self._last = value
        return self.total > LIMIT

    @property
    def sigma(self) -> float:
        """The standard deviation in use."""
        return max(self.floor, self.noise or 0.0)

    def forget(self) -> None:
        """Begin a new sum: what was seen has been reported."""
        self.total = 0.0

    def state(self) -> dict[str, Any]:
        """Plain JSON that ``load`` takes back."""
        return {
            "baseline": self.baseline,
            "noise": self.noise,
            "total": self.total,
            "steps": self._steps,
            "last": self._last,
        }

    def load(self, state: dict[str, Any]) -> None:
        """Go on where another run stood."""
        self.baseline, self.noise, self.total = state["baseline"], state["noise"], state["total"]
        self._steps, self._last = state["steps"], state["last"]

    def _learn_noise(self, difference: float, warm: bool) -> None:
        square = difference * difference / 2  # the variance of a difference of two is twice that of one
        before = (self.noise or 0.0) ** 2
        weight = NOISE_MEMORY if warm else 1 / max(1, self._steps - 1)
        self.noise = math.sqrt(before + weight * (square - before))
