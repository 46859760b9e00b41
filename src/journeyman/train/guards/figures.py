"""What guards see of a step, what they say, and what all of them are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True)
class StepFigures:
    """One optimizer step.

    Attributes:
        step: completed steps, this one included.
        reward: mean of the valid rewards of the step's trials.
        entropy: mean of -log pi over the sampled tokens, nats.
        gap_mean, gap_q99: abs logprob difference between engine and trainer under the same weights, nats; None where
            nothing of the step was sampled by the trainer's present weights.
        grad_norm: before clipping.
        length: mean sampled tokens per trial.
        defects: share of the rewarded trials (reward above the mean) that show a format defect; None without any.
        proxy: an independent measure of the same trials or of ``dev``, in units of reward; None when there is none.
        proxy_reward: the reward of the trials that ``proxy`` was measured on; None where it was measured elsewhere.
        pass_k, pass_k_error, pass_1: of the newest evaluation on dev and its standard error; None between evaluations.
        short_share: share of the buffer's Groups that are short and easy; shown beside a collapse alarm.
    """

    step: int
    reward: float
    entropy: float
    gap_mean: float | None
    gap_q99: float | None
    grad_norm: float
    length: float
    defects: float | None = None
    proxy: float | None = None
    proxy_reward: float | None = None
    pass_k: float | None = None
    pass_k_error: float | None = None
    pass_1: float | None = None
    short_share: float | None = None


@dataclass(frozen=True)
class Alarm:
    """A guard's finding.

    Attributes:
        guard: key of ``GUARDS``.
        step: where.
        text: what was seen, what is normal, and what to look at.
    """

    guard: str
    step: int
    text: str

    def __str__(self) -> str:
        return f"step {self.step}: {self.guard}: {self.text}"


class Guard(Protocol):
    """Watches one thing."""

    def observe(self, figures: StepFigures) -> str | None:
        """Take one step in; the alarm's text, or None."""
        ...

    def state(self) -> dict[str, Any]:
        """Plain JSON that ``load`` takes back."""
        ...

    def load(self, state: dict[str, Any]) -> None:
        """Go on where another run stood."""
        ...
