"""Intervals and tests for shares: Wilson, Newcombe, Fisher. At 0 of n and n of n an interval still has width."""

from __future__ import annotations

import math
from statistics import NormalDist


def z_quantile(confidence: float) -> float:
    """Two-sided normal quantile, 1.959964 at 0.95."""
    return NormalDist().inv_cdf(0.5 + confidence / 2)


def wilson(share: float, n: float, *, confidence: float = 0.95) -> tuple[float, float]:
    """Wilson score interval of ``share`` among ``n`` independent units, without continuity correction.

    Args:
        share: in [0, 1].
        n: units; an effective number may be a fraction.

    Returns:
        Both ends in [0, 1]; the lower one is exactly 0 at share 0, the upper exactly 1 at share 1; (0, 1) when n is 0.

    Source: evaluation reference, 3.3.
    """
    if not 0 <= share <= 1:
        raise ValueError(f"share {share} is not in [0, 1]")
    if n <= 0:
        return 0.0, 1.0
    z2 = z_quantile(confidence) ** 2
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = math.sqrt(z2) / (1 + z2 / n) * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    low = 0.0 if share == 0 else min(max(0.0, centre - half), share)
    high = 1.0 if share == 1 else max(min(1.0, centre + half), share)
    return low, high


def newcombe(share_a: float, share_b: float, n: float, *, confidence: float = 0.95) -> tuple[float, float]:
    """Interval of ``share_b - share_a`` from two Wilson intervals with ``n`` units each, never without width.

    It ignores pairing, so it is wider than a paired interval; used only where a paired one has no width because all
    differences are equal.

    Source: Newcombe 1998, Statistics in Medicine 17, method 10.
    """
    low_a, high_a = wilson(share_a, n, confidence=confidence)
    low_b, high_b = wilson(share_b, n, confidence=confidence)
    difference = share_b - share_a
    low = difference - math.hypot(share_b - low_b, high_a - share_a)
    return low, difference + math.hypot(high_b - share_b, share_a - low_a)


def fisher_exact(errors_a: int, n_a: int, errors_b: int, n_b: int) -> float:
    """Two-sided Fisher exact p that two error rates are equal (evaluation reference, 1.1)."""
    from scipy.stats import fisher_exact as scipy_fisher_exact

    table = [[errors_a, n_a - errors_a], [errors_b, n_b - errors_b]]
    return float(scipy_fisher_exact(table)[1])


def mcnemar_exact(b: int, c: int) -> float:
    """Two-sided exact McNemar p from the discordant pairs: b tasks only one side passed, c only the other.

    Binomial(b + c, 1/2), doubled tail, capped at 1. Source: evaluation reference, 3.4.
    """
    n = b + c
    tail = sum(math.comb(n, i) for i in range(min(b, c) + 1)) / float(2**n)
    return min(1.0, 2.0 * tail)
