"""Several comparisons at once (Holm) and the claim that two systems are equal (two one-sided tests)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm step-down adjusted p, in input order, monotone, capped at 1.

    The family (all rows against one control) is declared before the run. Source: evaluation reference, 3.7.
    """
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted = [0.0] * len(p_values)
    largest = 0.0
    for rank, i in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[i]))
        adjusted[i] = largest
    return adjusted


@dataclass(frozen=True)
class Equivalence:
    """Two one-sided t tests against +-margin; ``p`` is the larger of the two."""

    p_lower: float
    p_upper: float

    @property
    def p(self) -> float:
        return max(self.p_lower, self.p_upper)


def equivalence(mean: float, se: float, df: int, *, margin: float = 0.01) -> Equivalence:
    """Is a difference within +-margin? "No loss" is this test, never a difference that failed to be significant.

    Args:
        mean, se, df: estimate, standard error (> 0) and degrees of freedom (worlds - 1).

    Source: evaluation reference, 3.8.
    """
    from scipy.special import stdtr

    lower, upper = (mean + margin) / se, (mean - margin) / se
    return Equivalence(float(stdtr(df, -lower)), float(stdtr(df, upper)))
