"""Advantages: each reward against its own Group. Errored trials have left before; a lone or uniform Group gives 0."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from journeyman.errors import InputError, nearest

Floats = NDArray[np.float64]

EPSILON = 1e-6
"""Added to the divisors, in units of reward."""


@dataclass(frozen=True)
class Grouped:
    """Rewards with what their Groups know of them.

    Attributes:
        deviation: float64 [trials], reward minus the mean of its Group.
        index: int [trials], the Group of each.
        count: int64 [groups], its trials.
        mean: float64 [groups], before penalties.
    """

    deviation: Floats
    index: NDArray[np.intp]
    count: NDArray[np.int64]
    mean: Floats

    @property
    def std(self) -> Floats:
        """float64 [groups], over n - 1."""
        squares = np.bincount(self.index, self.deviation**2, minlength=len(self.count))
        return np.asarray(np.sqrt(squares / self.others), dtype=np.float64)

    @property
    def others(self) -> NDArray[np.int64]:
        """int64 [groups]: the other trials of a trial's Group; 1 where there is none, its deviation is 0."""
        return np.maximum(self.count - 1, 1)


def _grpo(g: Grouped, epsilon: float) -> Floats:
    return 1 / (g.std + epsilon)


def _grpo_nostd(g: Grouped, epsilon: float) -> Floats:
    return np.ones(len(g.count))


def _rloo(g: Grouped, epsilon: float) -> Floats:
    return np.asarray(g.count / g.others, dtype=np.float64)


def _leave_one_out(g: Grouped, epsilon: float) -> Floats:
    return _rloo(g, epsilon) * _grpo(g, epsilon)


def _maxrl(g: Grouped, epsilon: float) -> Floats:
    return 1 / (g.mean + epsilon)


_FACTORS: dict[str, Callable[[Grouped, float], Floats]] = {
    "grpo": _grpo,
    "grpo_nostd": _grpo_nostd,
    "leave_one_out": _leave_one_out,
    "maxrl": _maxrl,
    "rloo": _rloo,
}
"""Each gives the factor, float64 [groups], by which a Group's deviations from its mean are multiplied."""


def group_advantages(
    kind: str, rewards: ArrayLike, groups: ArrayLike, *, epsilon: float = EPSILON, penalties: ArrayLike | None = None
) -> Floats:
    """Advantage of each trial inside its Group.

    Args:
        kind: "grpo" (r - mean) / (std + epsilon) with the n-1 std; "grpo_nostd" r - mean; "rloo" r - mean of the
            others; "leave_one_out" (r - mean of the others) / (std + epsilon); "maxrl" (r - mean) / (mean + epsilon).
        rewards: [trials], finite.
        groups: [trials], equal values belong together.
        epsilon: added to the divisor, in units of reward.
        penalties: [trials], taken off the rewards; a Group of equal rewards stays without advantage, for otherwise
            the penalty alone would drive learning there.

    Returns:
        float64 [trials]; exactly 0 in a Group of one or of equal rewards; sums to 0 in every Group.

    Raises:
        InputError: unknown kind, unequal lengths, a reward that is not finite.

    Source: training.md section 5; RLOO arXiv 2402.14740, GRPO arXiv 2402.03300, MaxRL as on that page.
    """
    if kind not in _FACTORS:
        match = nearest(kind, _FACTORS)
        hint = f"did you mean {match}?" if match else None
        raise InputError("advantages", f"unknown name {kind!r}", allowed=", ".join(_FACTORS), hint=hint)
    r, index, count = _grouped(rewards, groups)
    mean = np.bincount(index, r, minlength=len(count)) / count
    deviation = r - mean[index]
    if penalties is not None:
        p, _, _ = _grouped(penalties, groups)
        deviation = deviation - p + (np.bincount(index, p, minlength=len(count)) / count)[index]
    scale = _FACTORS[kind](Grouped(deviation, index, count, mean), epsilon)
    return np.where(live(r, index), deviation * scale[index], 0.0)


ADVANTAGES = {name: partial(group_advantages, name) for name in _FACTORS}
"""By name, (rewards, groups, epsilon, penalties) -> advantages, as ``group_advantages``."""


def process_advantages(
    rewards: Sequence[ArrayLike], groups: ArrayLike, *, scale: bool = True, epsilon: float = EPSILON
) -> list[Floats]:
    """Advantages of steps where a verifier judged each step of a trial and not only its end.

    Each step's reward is compared with all steps of all trials of the Group; a step's advantage is the sum of these
    from it to the end of its trial, so that early steps answer for what they led to.

    Args:
        rewards: per trial, [steps], finite.
        groups: [trials], equal values belong together.
        scale: divide by the n-1 std over the Group's steps.
        epsilon: added to that divisor, in units of reward.

    Returns:
        Per trial, float64 [steps]; exactly 0 where all steps of the Group have the same reward.

    Raises:
        InputError: unequal lengths, a reward that is not finite.

    Source: process supervision of GRPO, arXiv 2402.03300 section 4.1.3.
    """
    steps = [np.asarray(r, dtype=np.float64).ravel() for r in rewards]
    of_trial = np.asarray(groups)
    if of_trial.shape != (len(steps),):
        raise InputError("groups", f"has shape {of_trial.shape}", allowed=f"({len(steps)},), one for each trial")
    lengths = [len(r) for r in steps]
    if sum(lengths) == 0:
        return steps
    kind = "grpo" if scale else "grpo_nostd"
    flat = group_advantages(kind, np.concatenate(steps), np.repeat(of_trial, lengths), epsilon=epsilon)
    return [np.cumsum(part[::-1])[::-1].copy() for part in np.split(flat, np.cumsum(lengths)[:-1])]


def live(rewards: ArrayLike, groups: ArrayLike) -> NDArray[np.bool_]:
    """bool [trials]: whether the trial's Group holds two different rewards, so that it can teach anything."""
    r, index, count = _grouped(rewards, groups)
    lowest, highest = np.full(len(count), np.inf), np.full(len(count), -np.inf)
    np.minimum.at(lowest, index, r)
    np.maximum.at(highest, index, r)
    return np.asarray((highest > lowest)[index], dtype=np.bool_)


def _grouped(rewards: ArrayLike, groups: ArrayLike) -> tuple[Floats, NDArray[np.intp], NDArray[np.int64]]:
    r, g = np.asarray(rewards, dtype=np.float64), np.asarray(groups)
    if r.shape != g.shape or r.ndim != 1:
        raise InputError("groups", f"has shape {g.shape}", allowed=f"{r.shape}, as rewards, one-dimensional")
    if not np.isfinite(r).all():
        at = int(np.flatnonzero(~np.isfinite(r))[0])
        raise InputError(f"rewards[{at}]", f"{r[at]} is not finite", hint="take errored trials out before the baseline")
    _, index, count = np.unique(g, return_inverse=True, return_counts=True)
    return r, index, count.astype(np.int64)
