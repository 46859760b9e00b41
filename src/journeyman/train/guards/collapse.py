"""The collapse alarm: entropy and pass@k on dev fall together.

Neither alone: entropy falls in every healthy run as the policy becomes sure, and pass@1 dips early where quick tasks
fill the first batches (a published run showed both and recovered).
"""

from __future__ import annotations

from collections import deque
from typing import Any

from pydantic import Field

from journeyman.config import Knobs
from journeyman.train.guards.figures import StepFigures


class CollapseKnobs(Knobs):
    """Of the collapse alarm."""

    entropy_share: float = Field(0.7, gt=0, lt=1, description="of its earlier level; below it entropy has fallen")
    window: int = Field(8, ge=2, description="steps of the earlier level and of pass@k's best")
    min_fall: float = Field(0.05, gt=0, description="of pass@k below its best, absolute")
    deviations: float = Field(3.0, gt=0, description="standard errors of the difference that the fall must exceed")


class CollapseGuard:
    """See the module. The level of entropy is the mean of the ``window`` steps before the last ``window``."""

    def __init__(self, knobs: CollapseKnobs) -> None:
        self._knobs = knobs
        self._entropy: deque[float] = deque(maxlen=2 * knobs.window)
        self._level: float | None = None
        self._best: tuple[float, float] | None = None

    def observe(self, figures: StepFigures) -> str | None:
        knobs = self._knobs
        self._entropy.append(figures.entropy)
        if len(self._entropy) == self._entropy.maxlen:
            self._level = sum(list(self._entropy)[: knobs.window]) / knobs.window
        elif self._level is None and len(self._entropy) >= knobs.window:
            self._level = sum(self._entropy) / len(self._entropy)
        if figures.pass_k is None:
            return None
        error = figures.pass_k_error or 0.0
        if self._best is None or figures.pass_k > self._best[0]:
            self._best = figures.pass_k, error
            return None
        best, best_error = self._best
        fall = best - figures.pass_k
        has_fallen = fall > max(knobs.min_fall, knobs.deviations * (error**2 + best_error**2) ** 0.5)
        recent = list(self._entropy)[-3:]
        entropy = sum(recent) / len(recent)
        if not has_fallen or self._level is None or entropy > knobs.entropy_share * self._level:
            return None
        self._best = figures.pass_k, error
        short = "" if figures.short_share is None else f"; short, easy share of the buffer {figures.short_share:.0%}"
        return (
            f"collapse: pass@k on dev fell from {best:.3f} to {figures.pass_k:.3f} while entropy fell to "
            f"{entropy:.3f} from {self._level:.3f} nats{short}"
        )

    def state(self) -> dict[str, Any]:
        return {"entropy": list(self._entropy), "level": self._level, "best": self._best}

    def load(self, state: dict[str, Any]) -> None:
        self._entropy = deque(state["entropy"], maxlen=2 * self._knobs.window)
        self._level = state["level"]
        self._best = tuple(state["best"]) if state["best"] is not None else None
