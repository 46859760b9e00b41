"""One mean over tasks whose errors are shared inside a world: clustered standard error and t interval.

Tasks of one world stand or fall together, so worlds are the units of sampling. Ignoring them understated the standard
error of one model two times in the reference data (evaluation reference, 3.1).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from journeyman.evals.score import FEW_WORLDS

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """A mean with its clustered interval.

    Attributes:
        mean: None when there are no values.
        n, n_worlds: values and clusters.
        se_cluster: clustered standard error with the G/(G-1) correction; None below two worlds.
        se_iid: sd(ddof=1)/sqrt(n), as if all values were independent; None below two values.
        low, high: raw t interval with n_worlds - 1 degrees of freedom; None below two worlds.
        interval: how it was made or why there is none, for printing.
    """

    mean: float | None
    n: int
    n_worlds: int
    se_cluster: float | None
    se_iid: float | None
    low: float | None
    high: float | None
    interval: str

    @property
    def design_effect(self) -> float | None:
        """(se_cluster / se_iid)^2; None when the values do not vary."""
        if self.se_cluster is None or not self.se_iid:
            return None
        return (self.se_cluster / self.se_iid) ** 2

    @property
    def n_effective(self) -> float | None:
        """Independent values that would give the same standard error."""
        effect = self.design_effect
        return self.n / effect if effect else None


def world_index(worlds: Sequence[Hashable] | NDArray[np.generic]) -> tuple[NDArray[np.int64], int]:
    """Cluster number of each value, in order of first appearance, and how many clusters there are."""
    numbers: dict[Hashable, int] = {}
    index = [numbers.setdefault(world, len(numbers)) for world in worlds]
    return np.asarray(index, dtype=np.int64), len(numbers)


def world_sums(values: ArrayLike, worlds: Sequence[Hashable] | NDArray[np.generic]) -> Floats:
    """Sum of the values of each world, float64 [n_worlds]."""
    index, n_worlds = world_index(worlds)
    sums = np.bincount(index, weights=np.asarray(values, dtype=np.float64), minlength=n_worlds)
    return np.asarray(sums, dtype=np.float64)


def t_quantile(confidence: float, df: int) -> float:
    """Two-sided t quantile: the interval is mean +- this times the standard error."""
    from scipy.special import stdtrit

    return float(stdtrit(df, 0.5 + confidence / 2))


def t_p_value(t: float, df: int) -> float:
    """Two-sided p of a t statistic."""
    from scipy.special import stdtr

    return float(2 * stdtr(df, -abs(t)))


def clustered_mean(
    values: ArrayLike, worlds: Sequence[Hashable] | NDArray[np.generic], *, confidence: float = 0.95
) -> Estimate:
    """Mean of ``values`` with a t interval clustered by world.

    SE = sqrt(G/(G-1) * sum over worlds of (sum of deviations in the world)^2) / n; the interval uses t with G-1
    degrees of freedom. Equal to statsmodels OLS on a constant with ``cov_type="cluster"``; with one value per world
    it is sd(ddof=1)/sqrt(n).

    Args:
        values: float [n], one per task.
        worlds: n labels; equal labels are one cluster.
        confidence: coverage of the interval.

    Raises:
        ValueError: lengths differ or a value is not finite.

    Source: evaluation reference, 3.1; Miller, arXiv 2411.00640, appendix A, there without G/(G-1).
    """
    x = np.asarray(values, dtype=np.float64)
    if x.ndim != 1 or len(x) != len(worlds):
        raise ValueError(f"{x.shape} values for {len(worlds)} world labels")
    if not np.isfinite(x).all():
        raise ValueError("a value is not finite")
    n = len(x)
    if n == 0:
        return Estimate(None, 0, 0, None, None, None, None, "no interval: nothing was graded")
    mean = float(x.mean())
    se_iid = float(x.std(ddof=1) / math.sqrt(n)) if n > 1 else None
    sums = world_sums(x - mean, worlds)
    n_worlds = len(sums)
    if n_worlds < 2:
        return Estimate(mean, n, n_worlds, None, se_iid, None, None, "no interval: one world")
    se = math.sqrt(n_worlds / (n_worlds - 1) * float((sums**2).sum())) / n
    half = t_quantile(confidence, n_worlds - 1) * se
    words = f"{100 * confidence:g} % t, clustered by world"
    if n_worlds < FEW_WORLDS:
        words += "; few worlds: interval unreliable"
    return Estimate(mean, n, n_worlds, se, se_iid, mean - half, mean + half, words)


@dataclass(frozen=True)
class VarianceSplit:
    """Variance of a score inside tasks (sampling of trials) and between tasks; dimensionless."""

    within: float
    between: float

    def standard_error(self, n_tasks: int, trials_per_task: int) -> float:
        """sqrt((between + within/K) / n): more trials per task shrink only the second term. Ignores worlds."""
        return math.sqrt((self.between + self.within / trials_per_task) / n_tasks)


def variance_split(scores: ArrayLike) -> VarianceSplit:
    """Split the variance of ``scores`` (float [n_tasks, K], K >= 2, n_tasks >= 2).

    within = mean over tasks of the sample variance; between = variance of the task means - within/K.

    Source: evaluation reference, 3.2.
    """
    s = np.asarray(scores, dtype=np.float64)
    if s.ndim != 2 or min(s.shape) < 2:
        raise ValueError(f"needs at least 2 tasks x 2 trials, got shape {s.shape}")
    within = float(s.var(axis=1, ddof=1).mean())
    return VarianceSplit(within, float(s.mean(axis=1).var(ddof=1)) - within / s.shape[1])
