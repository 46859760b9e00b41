"""All guards by name, and what an alarm does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from pydantic import Field

from journeyman.config import Knobs
from journeyman.train.guards.collapse import CollapseGuard, CollapseKnobs
from journeyman.train.guards.figures import Alarm, Guard, StepFigures
from journeyman.train.guards.gradient import GradientGuard, GradientKnobs
from journeyman.train.guards.hacking import DriftKnobs, FormatGuard, LengthGuard, ProxyGuard
from journeyman.train.guards.mismatch import GapGate, GapKnobs

Action = Literal["stop", "warn", "off"]


class GuardSpec(Knobs):
    """The guards of a run: what each does when it alarms, and its knobs."""

    on_gap: Action = Field("stop", description="engine and trainer disagree")
    on_gradient: Action = Field("warn", description="a gradient norm far above the last steps'")
    on_collapse: Action = Field("stop", description="entropy and pass@k on dev fall together")
    on_length: Action = Field("warn", description="trials grow suddenly longer")
    on_format: Action = Field("warn", description="rewarded trials show defects of format")
    on_proxy: Action = Field("warn", description="gains that only the verifier sees")
    gap: GapKnobs = GapKnobs()
    gradient: GradientKnobs = GradientKnobs()
    collapse: CollapseKnobs = CollapseKnobs()
    length: DriftKnobs = DriftKnobs(floor=0.05)
    format: DriftKnobs = DriftKnobs()
    proxy: DriftKnobs = DriftKnobs()
    max_quarantined: int = Field(3, ge=1, description="batches in a row that may be quarantined before the run stops")


GUARDS: dict[str, Callable[[GuardSpec], Guard]] = {
    "gap": lambda spec: GapGate(spec.gap),
    "gradient": lambda spec: GradientGuard(spec.gradient),
    "collapse": lambda spec: CollapseGuard(spec.collapse),
    "length": lambda spec: LengthGuard(spec.length),
    "format": lambda spec: FormatGuard(spec.format),
    "proxy": lambda spec: ProxyGuard(spec.proxy),
}
"""How each guard is made. ``on_<name>`` of the spec says what its alarm does; quarantine is not a guard but a rule."""


class Guards:
    """The guards that a spec switches on."""

    def __init__(self, spec: GuardSpec) -> None:
        self.actions: dict[str, Action] = {name: getattr(spec, f"on_{name}") for name in GUARDS}
        self._guards = {name: make(spec) for name, make in GUARDS.items() if self.actions[name] != "off"}

    def observe(self, figures: StepFigures) -> list[Alarm]:
        """What the guards say about a step."""
        found = {name: guard.observe(figures) for name, guard in self._guards.items()}
        return [Alarm(name, figures.step, text) for name, text in found.items() if text]

    def stops(self, alarm: Alarm) -> bool:
        """Whether this alarm ends the run."""
        return self.actions[alarm.guard] == "stop"

    def state(self) -> dict[str, Any]:
        """Plain JSON that ``load`` takes back."""
        return {name: guard.state() for name, guard in self._guards.items()}

    def load(self, state: Mapping[str, Any]) -> None:
        """Go on where another run stood; guards that were off begin anew."""
        for name, guard in self._guards.items():
            if name in state:
                guard.load(state[name])
