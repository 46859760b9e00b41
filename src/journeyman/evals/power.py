"""How small an effect could have been seen at this n. A claimed effect below it is marked, not believed."""

from __future__ import annotations

import math
from statistics import NormalDist


def factor(*, alpha: float = 0.05, power: float = 0.80) -> float:
    """z_{1-alpha/2} + z_power: 2.8015852 for 5 % two-sided and 80 %."""
    normal = NormalDist()
    return normal.inv_cdf(1 - alpha / 2) + normal.inv_cdf(power)


def detectable(se: float, *, alpha: float = 0.05, power: float = 0.80) -> float:
    """Minimum detectable effect from the standard error of the difference."""
    return factor(alpha=alpha, power=power) * se


def detectable_effect(
    sd: float, n: int, *, design_effect: float = 1.0, alpha: float = 0.05, power: float = 0.80
) -> float:
    """Minimum detectable effect of n paired tasks whose differences have standard deviation ``sd``.

    factor * sd * sqrt(design_effect / n). Source: evaluation reference, 3.9.
    """
    return detectable(sd * math.sqrt(design_effect / n), alpha=alpha, power=power)


def tasks_needed(effect: float, sd: float, *, alpha: float = 0.05, power: float = 0.80) -> int:
    """Fewest paired tasks that detect ``effect`` when the per-task differences have standard deviation ``sd``.

    ``sd`` squared is omega^2 + s_A^2/K_A + s_B^2/K_B: variance between tasks of the true difference plus the sampling
    noise of both sides.
    """
    return math.ceil((factor(alpha=alpha, power=power) * sd / effect) ** 2)


def detectable_on_same_tasks(mean_p_times_q: float, n: int, runs: int) -> float:
    """Smallest effect that a re-run on the same tasks would confirm: only the noise of runs counts.

    factor * sqrt(2 * E[p(1-p)] / (n * runs)), ``runs`` trials per arm. Source: evaluation reference, 3.9.
    """
    return detectable(math.sqrt(2 * mean_p_times_q / (n * runs)))
