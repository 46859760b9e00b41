"""Reward-hacking monitors: reward that comes with length, with broken format, or that only the verifier sees.

Each watches for a sudden drift while the reward does not fall: a policy that found a trick changes its behaviour within
few steps, learning changes it slowly.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field

from journeyman.config import Knobs
from journeyman.train.guards.drift import Drift
from journeyman.train.guards.figures import StepFigures


class DriftKnobs(Knobs):
    """Of a reward-hacking monitor."""

    floor: float = Field(0.02, gt=0, description="smallest noise assumed; share of the figure, or absolute for shares")


class LengthGuard:
    """Trials grow much longer from one step to the next, and the reward with them or not at all against it."""

    def __init__(self, knobs: DriftKnobs) -> None:
        self._length, self._reward = Drift(floor=1.0), Drift(floor=0.01)
        self._share = knobs.floor

    def observe(self, figures: StepFigures) -> str | None:
        self._length.floor = max(self._share * (self._length.baseline or figures.length), 1e-9)
        drifts = self._length.observe(figures.length)
        before = self._reward.baseline
        self._reward.observe(figures.reward)
        if not drifts or before is None or figures.reward < before - 3 * self._reward.sigma:
            return None
        self._length.forget()
        return (
            f"length: {figures.length:.0f} sampled tokens per trial, {self._length.baseline:.0f} before, while the "
            f"reward is {figures.reward:.3f} ({before:.3f} before); look at the longest rewarded trials"
        )

    def state(self) -> dict[str, Any]:
        return {"length": self._length.state(), "reward": self._reward.state()}

    def load(self, state: dict[str, Any]) -> None:
        self._length.load(state["length"])
        self._reward.load(state["reward"])


class FormatGuard:
    """Rewarded trials with defects of format become more: malformed calls, calls that failed, odd deliverables."""

    def __init__(self, knobs: DriftKnobs) -> None:
        self._defects = Drift(floor=knobs.floor)

    def observe(self, figures: StepFigures) -> str | None:
        if figures.defects is None or not self._defects.observe(figures.defects):
            return None
        self._defects.forget()
        return (
            f"format: {figures.defects:.0%} of the rewarded trials show a defect of format, "
            f"{self._defects.baseline:.0%} before; the verifier may pay for what it cannot read"
        )

    def state(self) -> dict[str, Any]:
        return self._defects.state()

    def load(self, state: dict[str, Any]) -> None:
        self._defects.load(state)


class ProxyGuard:
    """The verifier's reward rises and an independent measure does not: gains that only the verifier sees."""

    def __init__(self, knobs: DriftKnobs) -> None:
        self._gap = Drift(floor=knobs.floor)

    def observe(self, figures: StepFigures) -> str | None:
        reward = figures.reward if figures.proxy_reward is None else figures.proxy_reward
        if figures.proxy is None or not self._gap.observe(reward - figures.proxy):
            return None
        self._gap.forget()
        return (
            f"verifier-only gains: the reward is {reward:.3f}, the independent measure {figures.proxy:.3f}; "
            f"their difference was {self._gap.baseline:+.3f} before; read rewarded trials before going on"
        )

    def state(self) -> dict[str, Any]:
        return self._gap.state()

    def load(self, state: dict[str, Any]) -> None:
        self._gap.load(state)
