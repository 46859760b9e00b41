"""The logprob gap gate: engine and trainer must hold the same model. Above the limit, or drifting up, is an alarm.

A level alone is not enough: one engine's published gap crept from 0.011 to 0.036 in 30 steps (training.md 8).
"""

from __future__ import annotations

import math
from typing import Any

from pydantic import Field

from journeyman.config import Knobs
from journeyman.train.guards.drift import Drift
from journeyman.train.guards.figures import StepFigures


class GapKnobs(Knobs):
    """Of the logprob gap gate."""

    limit: float = Field(0.03, gt=0, description="mean abs logprob gap, nats; 1e-4 where both sides are float32")
    limit_q99: float | None = Field(None, gt=0, description="99 % quantile of the gap, nats; none: ten times the limit")
    wait_s: float = Field(
        10.0,
        ge=0,
        description="a step waits at most for a probe of the present weights, where none of its trials can tell",
    )


class GapGate:
    """See the module."""

    def __init__(self, knobs: GapKnobs) -> None:
        self._limit = knobs.limit
        self._limit_q99 = knobs.limit_q99 or 10 * knobs.limit
        self._drift = Drift(floor=0.02 * knobs.limit)

    def observe(self, figures: StepFigures) -> str | None:
        mean, q99 = figures.gap_mean, figures.gap_q99
        if mean is None or q99 is None:
            return None
        if not (math.isfinite(mean) and math.isfinite(q99)):
            return "the logprob gap between engine and trainer is not a number"
        if mean > self._limit or q99 > self._limit_q99:
            return (
                f"the logprob gap between engine and trainer is {mean:.2e} (99 %: {q99:.2e}) nats; allowed "
                f"{self._limit:.1e} ({self._limit_q99:.1e}): they do not hold the same weights; run journeyman tokens "
                "agree"
            )
        if self._drift.observe(mean):
            self._drift.forget()
            return f"the logprob gap rises: {mean:.2e} nats, {self._drift.baseline:.2e} before; still below the limit"
        return None

    def state(self) -> dict[str, Any]:
        return self._drift.state()

    def load(self, state: dict[str, Any]) -> None:
        self._drift.load(state)
