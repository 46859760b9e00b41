"""The cluster bootstrap: the printed check of a t interval, and the interval of ratios. Worlds are drawn, never
tasks."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from journeyman.evals.clustered import world_sums


@dataclass(frozen=True)
class Bootstrap:
    """Result of drawing worlds with replacement.

    Attributes:
        value: sum of numerators / sum of denominators; infinite when the denominators are all 0.
        se: standard deviation of the finite draws.
        low, high: percentile interval over all draws; ``high`` may be infinite.
        infinite_share: share of draws whose denominator was 0.
    """

    value: float
    se: float
    low: float
    high: float
    infinite_share: float


def bootstrap_ratio(
    numerators: ArrayLike,
    denominators: ArrayLike,
    worlds: Sequence[Hashable] | NDArray[np.generic],
    *,
    n_draws: int = 10_000,
    seed: int = 0,
    confidence: float = 0.95,
) -> Bootstrap:
    """Ratio of sums, e.g. dollars per solved task or tokens per turn, with a percentile interval over worlds.

    Args:
        numerators, denominators: float [n], >= 0 in the denominator, one per trial or task.
        worlds: n labels.

    Source: evaluation reference, 3.6.
    """
    top, bottom = world_sums(numerators, worlds), world_sums(denominators, worlds)
    n_worlds = len(top)
    if n_worlds == 0:
        raise ValueError("nothing to draw from")
    rng = np.random.default_rng(seed)
    draws = np.concatenate(
        [
            np.stack([top[rows].sum(axis=1), bottom[rows].sum(axis=1)])
            for start in range(0, n_draws, 1_000)
            for rows in [rng.integers(0, n_worlds, size=(min(1_000, n_draws - start), n_worlds))]
        ],
        axis=1,
    )
    ratios = np.full(draws.shape[1], np.inf)
    np.divide(draws[0], draws[1], out=ratios, where=draws[1] > 0)
    tail = (1 - confidence) / 2
    ordered = np.sort(ratios)
    low, high = (ordered[min(len(ordered) - 1, int(q * len(ordered)))] for q in (tail, 1 - tail))
    finite = ratios[np.isfinite(ratios)]
    return Bootstrap(
        value=float(top.sum() / bottom.sum()) if bottom.sum() > 0 else float("inf"),
        se=float(finite.std(ddof=1)) if len(finite) > 1 else float("nan"),
        low=float(low),
        high=float(high),
        infinite_share=float(1 - len(finite) / len(ratios)),
    )


def bootstrap_mean(
    values: ArrayLike,
    worlds: Sequence[Hashable] | NDArray[np.generic],
    *,
    n_draws: int = 10_000,
    seed: int = 0,
    confidence: float = 0.95,
) -> Bootstrap:
    """Mean of ``values`` (float [n]) with a percentile interval over worlds; the check beside ``clustered_mean``."""
    ones = np.ones(len(np.asarray(values)))
    return bootstrap_ratio(values, ones, worlds, n_draws=n_draws, seed=seed, confidence=confidence)
