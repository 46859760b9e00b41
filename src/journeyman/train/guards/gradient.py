"""The gradient-norm alarm: a norm that is not finite, or far above what the last steps had, on a logarithmic scale."""

from __future__ import annotations

import math
import statistics
from collections import deque
from typing import Any

from pydantic import Field

from journeyman.config import Knobs
from journeyman.train.guards.figures import StepFigures

NORMAL = 1.4826
"""Median absolute deviation to standard deviation, for a normal distribution."""


class GradientKnobs(Knobs):
    """Of the gradient-norm alarm."""

    factor: float = Field(5.0, gt=1, description="times the median of the window that a norm must exceed")
    deviations: float = Field(3.5, gt=0, description="robust standard deviations of the log norm, likewise")
    window: int = Field(32, ge=8, description="steps")


class GradientGuard:
    """See the module."""

    def __init__(self, knobs: GradientKnobs) -> None:
        self._knobs = knobs
        self._logs: deque[float] = deque(maxlen=knobs.window)

    def observe(self, figures: StepFigures) -> str | None:
        norm = figures.grad_norm
        if not math.isfinite(norm):
            return f"the gradient's norm is {norm}"
        if norm <= 0:
            return None  # a step without a live group
        value = math.log(norm)
        found = self._judge(value, norm) if len(self._logs) >= 8 else None
        self._logs.append(value)
        return found

    def _judge(self, value: float, norm: float) -> str | None:
        median = statistics.median(self._logs)
        spread = max(0.1, NORMAL * statistics.median(abs(log - median) for log in self._logs))
        above = value - median
        if above <= math.log(self._knobs.factor) or above <= self._knobs.deviations * spread:
            return None
        return (
            f"the gradient's norm is {norm:.3g}, {math.exp(above):.1f} times the median of the last "
            f"{len(self._logs)} steps; look at the step's longest trials and at its loss"
        )

    def state(self) -> dict[str, Any]:
        return {"logs": list(self._logs)}

    def load(self, state: dict[str, Any]) -> None:
        self._logs = deque(state["logs"], maxlen=self._knobs.window)
