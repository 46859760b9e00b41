"""The words for a measured score: its kind, what it was measured on, and how it compares with another.

One column, one curve and one comparison hold one kind. The kinds are those of the evaluation reference, section 2; a
kind that carries a number names it (``pass@4``), so two different k never look alike.
"""

from __future__ import annotations

import re
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, field_validator, model_validator

KINDS: dict[str, str] = {
    "mean_reward": "mean over tasks of the mean graded reward in [0, 1], partial credit included",
    "pass@k": "at least one of k independent trials passed (unbiased estimate), mean over tasks",
    "pass^k": "all of k independent trials passed, mean over tasks",
    "best_of_n": "n parallel trials, a selector without the truth picks one; score of the pick",
    "retry@k": "sequential attempts with a stop rule that sees only what the policy sees; score of the last",
    "anytime": "state of one long run, scored at checkpoints",
}
"""Every score kind and its definition. ``pass@1`` is the share of trials whose verdict is passed."""

_KIND_PATTERN = re.compile(r"mean_reward|anytime|(?:pass@|pass\^|best_of_|retry@)[1-9][0-9]*")

FEW_WORLDS = 10
"""Below this many clusters a t interval is printed with a warning (evaluation reference, 3.1)."""


class Word(BaseModel):
    """Base of the words between rooms: frozen, unknown fields refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def check_kind(kind: str) -> str:
    """``kind`` itself when it is a score kind.

    Raises:
        ValueError: names the kinds that exist.
    """
    if not _KIND_PATTERN.fullmatch(kind):
        raise ValueError(f'score kind "{kind}" does not exist; allowed: {", ".join(KINDS)} with a number for k or n')
    return kind


class Boundary(Word):
    """The system a score was measured on: without it two scores cannot be compared (architecture, invariant 8).

    Attributes:
        name: short key, unique in one report, e.g. ``trained / toolbelt / test``.
        model: which weights, in words.
        harness: loop and framing.
        tools: names of the tools offered.
        judge: what graded, e.g. ``tests/check.py in a fresh sandbox``.
        budgets: limits per trial, e.g. ``{"turns": 6, "new_tokens_per_turn": 44, "context_tokens": 640}``.
        decoding: ``sampled, T=1`` or ``greedy``.
        split: which worlds.
        model_sha256, harness_sha256, tasks_sha256: digests of the weights, the harness and the set of tasks.
        dollars: US dollars spent on these trials, None when no price table applies.
    """

    name: str = Field(min_length=1)
    model: str
    model_sha256: str | None = None
    harness: str
    harness_sha256: str | None = None
    tools: tuple[str, ...] = ()
    judge: str = ""
    budgets: dict[str, int | float] = Field(default_factory=dict)
    decoding: str = "sampled, T=1"
    split: str
    tasks_sha256: str | None = None
    dollars: FiniteFloat | None = Field(default=None, ge=0)


class Score(Word):
    """One score of one system on one set of tasks.

    Attributes:
        kind: one of ``KINDS``, with its number (``pass@1``).
        value: the estimate, None when no task could be scored.
        n_tasks, n_trials, n_worlds: what entered ``value``; ``n_worlds`` is the number of clusters.
        low, high: raw ends of the interval (not clipped to [0, 1]); both None when there is none.
        interval: how the interval was made, or why there is none.
        boundary: name of the Boundary it was measured on.
        excluded: trials that are no statement about the policy, by outcome class (``system_error``, ``verifier_error``,
            ``cancelled``); they are in no denominator.
        n_tasks_dropped: tasks left out because too few of their trials were graded.
    """

    kind: str
    value: FiniteFloat | None
    n_tasks: int = Field(ge=0)
    n_trials: int = Field(ge=0)
    n_worlds: int = Field(ge=0)
    low: FiniteFloat | None = None
    high: FiniteFloat | None = None
    interval: str = "none"
    boundary: str = ""
    excluded: dict[str, int] = Field(default_factory=dict)
    n_tasks_dropped: int = Field(default=0, ge=0)

    _kind = field_validator("kind")(check_kind)

    @model_validator(mode="after")
    def _ordered(self) -> Score:
        if (self.low is None) != (self.high is None):
            raise ValueError("an interval has two ends or none")
        if self.low is not None and self.high is not None:
            if self.value is None:
                raise ValueError("an interval needs a value")
            if not self.low <= self.value <= self.high:
                raise ValueError(f"value {self.value} lies outside its interval [{self.low}, {self.high}]")
        return self

    @property
    def few_worlds(self) -> bool:
        """True when the interval stands on fewer than ``FEW_WORLDS`` worlds."""
        return self.n_worlds < FEW_WORLDS


class Difference(Word):
    """Paired difference B - A of one score kind over common tasks.

    Attributes:
        kind: kind of both scores.
        a, b: names of the two sides.
        value: mean(B - A).
        low, high, interval: as in ``Score``; the interval is clustered by world.
        n_tasks, n_worlds: common tasks and their worlds.
        n_tasks_unpaired: tasks of either side without a partner.
        p: two-sided cluster sign-flip p, None when it cannot be computed.
        p_method: exact or sampled.
        p_adjusted: the same after Holm over the declared family, None outside an ablation.
        mde: smallest effect detectable at 5 % two-sided with 80 % power at this n and spread, None when unknown.
        word: ``tie`` when |value| < 0.01 or the interval covers 0 or is missing, else the better side, ``A`` or ``B``.
    """

    kind: str
    a: str
    b: str
    value: FiniteFloat | None
    low: FiniteFloat | None = None
    high: FiniteFloat | None = None
    interval: str = "none"
    n_tasks: int = Field(ge=0)
    n_worlds: int = Field(ge=0)
    n_tasks_unpaired: int = Field(default=0, ge=0)
    p: FiniteFloat | None = Field(default=None, ge=0, le=1)
    p_method: str = ""
    p_adjusted: FiniteFloat | None = Field(default=None, ge=0, le=1)
    mde: FiniteFloat | None = Field(default=None, ge=0)
    word: Literal["A", "B", "tie"] = "tie"

    _kind = field_validator("kind")(check_kind)

    @property
    def winner(self) -> str:
        """Name of the better side, or ``tie``."""
        return {"A": self.a, "B": self.b, "tie": "tie"}[self.word]


class Ratio(Word):
    """A behaviour figure with numerator and denominator apart, so that sub-groups can be added up again.

    ``value`` is numerator / denominator, and None for 0/0: a trial without calls has no call error rate.
    """

    numerator: FiniteFloat
    denominator: FiniteFloat = Field(ge=0)
    value: FiniteFloat | None

    @classmethod
    def of(cls, numerator: float, denominator: float) -> Ratio:
        """The ratio of two totals."""
        return cls(numerator=numerator, denominator=denominator, value=numerator / denominator if denominator else None)

    @model_validator(mode="after")
    def _consistent(self) -> Ratio:
        expected = self.numerator / self.denominator if self.denominator else None
        if self.value != expected:
            raise ValueError(f"value {self.value} is not {self.numerator} / {self.denominator}")
        return self

    def __add__(self, other: Ratio) -> Ratio:
        return Ratio.of(self.numerator + other.numerator, self.denominator + other.denominator)
