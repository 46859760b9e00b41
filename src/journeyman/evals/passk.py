"""Kinds that book several trials: pass@k, pass^k, best-of-n, retry@k. They are not one another: see the worked table.

For a success rate of 0.3 and five trials: pass@5 0.832, retry@5 with a check of 90 % / 20 % 0.615, best-of-5 with a
weak selector 0.552, retry@5 that accepts anything 0.300 (evaluation reference, 2).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike


def _check(n: int, c: int, k: int) -> None:
    if not (0 <= c <= n and 1 <= k <= n):
        raise ValueError(f"needs 0 <= solved <= graded and 1 <= k <= graded, got n={n}, c={c}, k={k}")


def pass_at_k(n: int, c: int, k: int) -> float:
    """Unbiased estimate that at least one of k trials passes, from c passed of n graded trials.

    1 - C(n-c, k)/C(n, k), as a product so that it does not overflow. Raises ValueError when n < k.

    Source: Chen et al., arXiv 2107.03374; evaluation reference, 2.1.
    """
    _check(n, c, k)
    if n - c < k:
        return 1.0
    return 1.0 - math.prod(1.0 - k / j for j in range(n - c + 1, n + 1))


def pass_hat_k(n: int, c: int, k: int) -> float:
    """Unbiased estimate that all of k trials pass: C(c, k)/C(n, k), 0 when c < k. Raises ValueError when n < k.

    Source: tau-bench, arXiv 2406.12045; evaluation reference, 2.1.
    """
    _check(n, c, k)
    return math.prod((c - i) / (n - i) for i in range(k)) if c >= k else 0.0


def best_of_n(selector: ArrayLike, scores: ArrayLike, n: int) -> float:
    """Expected score of the pick of a selector among n of the given trials, over all subsets of size n.

    Args:
        selector: float [m], the selector's opinion of each trial; it never saw the truth. Ties are broken at random.
        scores: float [m], graded score of each trial.
        n: trials per pick, 1 <= n <= m.

    Returns:
        sum over trials in rising order of opinion of score_i * C(i-1, n-1) / C(m, n), ties by their average score.
    """
    opinion, score = np.asarray(selector, dtype=np.float64), np.asarray(scores, dtype=np.float64)
    m = len(opinion)
    if len(score) != m or not 1 <= n <= m:
        raise ValueError(f"{m} opinions, {len(score)} scores, n={n}")
    levels, group = np.unique(opinion, return_inverse=True)
    tied = (np.bincount(group, weights=score) / np.bincount(group))[group] if len(levels) < m else score
    ordered = tied[np.argsort(opinion, kind="stable")]
    weight, total = n / m, 0.0
    for rank in range(m, n - 1, -1):
        total += weight * float(ordered[rank - 1])
        if rank > n:
            weight *= (rank - n) / (rank - 1)
    return total


def retry_at_k(p: float, *, tpr: float, fpr: float, k: int) -> tuple[float, float]:
    """Success and mean number of attempts of k sequential tries with an imperfect acceptance check.

    Args:
        p: success rate of one attempt.
        tpr, fpr: how often the check accepts a right and a wrong attempt; it sees only what the policy sees.
        k: most attempts; the last one stands when none was accepted.

    Returns:
        (value, attempts): a = p*tpr, r = 1 - a - (1-p)*fpr; value = a*(1-r^k)/(1-r) + r^(k-1)*p*(1-tpr).

    Source: evaluation reference, 2.
    """
    accepted_right = p * tpr
    again = 1 - accepted_right - (1 - p) * fpr
    attempts = sum(again**j for j in range(k))
    return accepted_right * attempts + again ** (k - 1) * p * (1 - tpr), attempts
