"""The estimators of a dry run: a rate with its interval over clustered trials, quantiles, paired differences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from journeyman.evals.clustered import clustered_mean
from journeyman.evals.proportion import wilson


def rate(values: Sequence[bool], tasks: Sequence[str]) -> dict[str, Any]:
    """Share of true values with a 95 % interval.

    With one trial per task it is Wilson's. With several, trials of one task stand or fall together: Wilson's interval
    at the effective number of trials (n divided by the design effect of the standard error clustered by task); where
    the values do not vary, the number of tasks stands in for it.

    Args:
        values: one per trial.
        tasks: label of each trial's task.

    Returns:
        ``share`` (None without trials), ``count``, ``n``, ``low``, ``high``, ``interval`` (how it was made).

    Source: evaluation reference, 3.1 and 3.3.
    """
    n, count = len(values), sum(values)
    if not n:
        return {"share": None, "count": 0, "n": 0, "low": 0.0, "high": 1.0, "interval": "no trial"}
    share, n_tasks = count / n, len(set(tasks))
    effective, words = float(n), "95 % Wilson"
    if max(Counter(tasks).values()) > 1:
        effect = clustered_mean([float(value) for value in values], list(tasks)).design_effect
        effective = max(1.0, n / max(1.0, effect)) if effect is not None else float(n_tasks)
        words = f"95 % Wilson at {effective:.3g} effective trials, clustered by task"
    low, high = wilson(share, effective)
    return {"share": share, "count": count, "n": n, "low": low, "high": high, "interval": words}


def difference(before: Sequence[float], after: Sequence[float], tasks: Sequence[str]) -> dict[str, Any]:
    """Mean of ``after - before`` over pairs, with a 95 % t interval clustered by task.

    Source: evaluation reference, 3.4.
    """
    values = [b - a for a, b in zip(before, after, strict=True)]
    found = clustered_mean(values, list(tasks))
    words = found.interval.replace("worlds", "tasks").replace("world", "task")
    return {"mean": found.mean, "n": found.n, "low": found.low, "high": found.high, "interval": words}


def quantiles(seconds: Sequence[float]) -> dict[str, Any]:
    """``n``, ``p50_s``, ``p95_s``, ``max_s``; linear interpolation between order statistics."""
    values = np.asarray(seconds, dtype=np.float64)
    p50, p95 = (float(np.quantile(values, q)) for q in (0.5, 0.95))
    return {"n": len(values), "p50_s": round(p50, 4), "p95_s": round(p95, 4), "max_s": round(float(values.max()), 4)}


def cohens_kappa(first: Sequence[str], second: Sequence[str]) -> float | None:
    """Agreement of two raters beyond chance: (p_o - p_e) / (1 - p_e), p_e from their own class shares.

    None without items, and where chance alone agrees always (both used one and the same class only).

    Source: Cohen 1960, Educational and Psychological Measurement 20.
    """
    n = len(first)
    if n == 0:
        return None
    observed = sum(a == b for a, b in zip(first, second, strict=True)) / n
    left, right = Counter(first), Counter(second)
    expected = sum(left[name] * right[name] for name in left) / n**2
    return None if expected == 1.0 else (observed - expected) / (1.0 - expected)
