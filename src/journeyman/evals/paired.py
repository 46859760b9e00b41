"""The standard comparison: paired differences over common tasks, clustered by world, and the word printed beside
them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from journeyman.evals.clustered import Estimate, clustered_mean, world_sums

MAX_EXACT_WORLDS = 14
"""Up to here all 2^G sign vectors are enumerated (16,384)."""

SAMPLED_FLIPS = 10_000
TIE_BELOW = 0.01
"""A difference below one point is called a tie whatever its interval (evaluation reference, 3.4)."""

_ROWS_PER_CHUNK = 1_000


@dataclass(frozen=True)
class SignFlip:
    """Two-sided p of the cluster sign-flip test; ``exact`` when every sign vector was tried."""

    p: float
    exact: bool


def paired_difference(
    a: ArrayLike, b: ArrayLike, worlds: Sequence[Hashable] | NDArray[np.generic], *, confidence: float = 0.95
) -> Estimate:
    """Clustered mean of ``b - a``, both float [n] over the same tasks in the same order (evaluation reference, 3.4)."""
    difference = np.asarray(b, dtype=np.float64) - np.asarray(a, dtype=np.float64)
    return clustered_mean(difference, worlds, confidence=confidence)


def sign_flip(
    differences: ArrayLike, worlds: Sequence[Hashable] | NDArray[np.generic], *, seed: int = 0
) -> SignFlip | None:
    """Flip the sign of every world's sum of differences; how often is the total as far from 0 as observed?

    Up to ``MAX_EXACT_WORLDS`` worlds all sign vectors are enumerated (the observed one included); beyond,
    ``SAMPLED_FLIPS`` seeded vectors, p = (1 + hits) / (N + 1). With G worlds no exact p is below 2 / 2^G.

    Returns:
        None when there are no differences.

    Source: evaluation reference, 3.4.
    """
    sums = world_sums(differences, worlds)
    n_worlds = len(sums)
    if n_worlds == 0:
        return None
    least = abs(sums.sum()) - 1e-12 * max(1.0, float(np.abs(sums).sum()))
    if n_worlds <= MAX_EXACT_WORLDS:
        bits = (np.arange(2**n_worlds)[:, None] >> np.arange(n_worlds)) & 1
        totals = (1 - 2 * bits) @ sums
        return SignFlip(float((np.abs(totals) >= least).mean()), exact=True)
    rng = np.random.default_rng(seed)
    hits = 0
    for start in range(0, SAMPLED_FLIPS, _ROWS_PER_CHUNK):
        rows = min(_ROWS_PER_CHUNK, SAMPLED_FLIPS - start)
        signs = 1.0 - 2.0 * rng.integers(0, 2, size=(rows, n_worlds))
        hits += int((np.abs(signs @ sums) >= least).sum())
    return SignFlip((1 + hits) / (SAMPLED_FLIPS + 1), exact=False)


def verdict_word(value: float | None, low: float | None, high: float | None) -> Literal["A", "B", "tie"]:
    """``tie`` when |value| < 0.01, the interval covers 0, or there is no interval; else the better side of B - A."""
    if value is None or low is None or high is None or abs(value) < TIE_BELOW or low <= 0 <= high:
        return "tie"
    return "B" if value > 0 else "A"
