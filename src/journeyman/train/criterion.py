"""When supervised training slows down and stops: pure state machines over step counts and held-out losses.

A step is counted from 0; ``scale(step)`` multiplies every learning rate of that step. States are plain JSON, so that a
checkpoint carries them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from journeyman.errors import InputError


@dataclass(frozen=True)
class FixedSteps:
    """A known number of steps: constant, then linear to 0.

    Attributes:
        steps: optimizer steps.
        constant: of these, steps at the full rate.
        warmup: of these, steps of linear warm-up.
        check_every: steps between held-out checks; 0 means none but the last.
    """

    steps: int
    constant: int
    warmup: int = 0
    check_every: int = 0

    def __post_init__(self) -> None:
        if self.steps <= 0 or not 0 <= self.warmup <= self.constant <= self.steps:
            raise InputError("sft.steps", f"got {self}", allowed="0 <= warmup <= constant <= steps, steps > 0")


@dataclass(frozen=True)
class UntilLearned:
    """Train until the held-out loss shows that the skill is there, then decay and stop (quickstart.md 0.1, 0.4).

    Attributes:
        warmup: steps of linear warm-up.
        check_every: steps between held-out checks.
        threshold: held-out loss, nats per token, below which a check passes.
        checks: passes in a row that start the decay.
        decay: steps of linear decay to 0, after which training stops.
        cap: steps of one attempt at most; the last attempt then decays over the last ``cap_decay_share`` of it.
        restart_at: a multiple of ``check_every``. An attempt whose decay has not begun by this step begins it now if
            its last checks are all below ``near``, and is given up for a fresh start if not.
        near: held-out loss below which the skill is there and only the constant rate keeps the loss up.
        gate: held-out loss below which the result counts as learned; an attempt that ends above it is followed by
            another.
        attempts: fresh starts at most, the first one included.
    """

    warmup: int = 20
    check_every: int = 50
    threshold: float = 0.02
    checks: int = 2
    decay: int = 250
    cap: int = 1200
    cap_decay_share: float = 0.3
    restart_at: int = 800
    near: float = 0.1
    gate: float = 0.005
    attempts: int = 2

    def __post_init__(self) -> None:
        counts = (self.check_every, self.checks, self.decay, self.cap, self.restart_at, self.attempts)
        if min(counts) < 1 or self.warmup < 0:
            raise InputError("sft", f"got {self}", allowed="positive counts")
        if self.restart_at % self.check_every:
            raise InputError("sft.restart_at", f"got {self.restart_at}", allowed=f"a multiple of {self.check_every}")


class Progress:
    """Where one training run stands under its plan.

    State: the attempt, steps done in it, its latest held-out losses, and the step at which decay began (None before).
    """

    def __init__(self, plan: FixedSteps | UntilLearned, state: dict[str, Any] | None = None) -> None:
        self.plan = plan
        state = state or {}
        self.attempt: int = state.get("attempt", 0)
        self.step: int = state.get("step", 0)
        self.recent: list[float] = list(state.get("recent", ()))
        self.decay_began: int | None = state.get("decay_began")

    def state(self) -> dict[str, Any]:
        """Plain JSON that the constructor takes back."""
        return {"attempt": self.attempt, "step": self.step, "recent": self.recent, "decay_began": self.decay_began}

    @property
    def data_step(self) -> int:
        """Steps over all attempts: the key of the next batch, so that a restart sees new data."""
        return self.step + self.attempt * (self.plan.cap if isinstance(self.plan, UntilLearned) else 0)

    @property
    def scale(self) -> float:
        """Factor on the learning rates of the next step."""
        warm = min(1.0, (self.step + 1) / self.plan.warmup) if self.plan.warmup else 1.0
        if isinstance(self.plan, FixedSteps):
            tail = self.plan.steps - self.plan.constant
            return warm if self.step < self.plan.constant else (self.plan.steps - self.step) / tail
        if self.decay_began is None:
            return warm
        return warm * max(0.0, 1 - (self.step - self.decay_began) / self._decay_steps)

    @property
    def is_over(self) -> bool:
        """Whether the last step has been done."""
        if isinstance(self.plan, FixedSteps):
            return self.step >= self.plan.steps
        if self.decay_began is None:
            return self.step >= self.plan.cap
        return self.step >= self.decay_began + self._decay_steps

    @property
    def check_is_due(self) -> bool:
        """Whether the held-out loss is to be measured after the step just done."""
        every = self.plan.check_every
        return self.is_over or (every > 0 and self.step % every == 0)

    @property
    def must_restart(self) -> bool:
        """Whether this attempt is to be given up for a fresh start."""
        plan = self.plan
        if isinstance(plan, FixedSteps) or self.attempt + 1 >= plan.attempts:
            return False
        if self.is_over:
            return self.recent[-1] >= plan.gate
        return self.decay_began is None and self.step >= plan.restart_at

    def advance(self) -> None:
        """Count one optimizer step."""
        self.step += 1
        plan = self.plan
        if isinstance(plan, UntilLearned) and self.decay_began is None and self.step >= self._cap_decay_at:
            self.decay_began = self.step

    def observe(self, held_out_loss: float) -> None:
        """Take in a held-out check."""
        plan = self.plan
        if isinstance(plan, FixedSteps):
            return
        self.recent = [*self.recent, held_out_loss][-plan.checks :]
        limit = plan.near if self.step >= plan.restart_at else plan.threshold
        if self.decay_began is None and len(self.recent) == plan.checks and max(self.recent) < limit:
            self.decay_began = self.step

    def restart(self) -> None:
        """Begin the next attempt."""
        self.attempt, self.step, self.recent, self.decay_began = self.attempt + 1, 0, [], None

    @property
    def _cap_decay_at(self) -> int:
        assert isinstance(self.plan, UntilLearned)
        return round(self.plan.cap * (1 - self.plan.cap_decay_share))

    @property
    def _decay_steps(self) -> int:
        assert isinstance(self.plan, UntilLearned)
        began = self.decay_began or 0
        return self.plan.cap - began if began == self._cap_decay_at else min(self.plan.decay, self.plan.cap - began)
