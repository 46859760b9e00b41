"""Advantages: each reward against its own Group. Errored trials have left before; a lone or uniform Group gives 0."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from journeyman.errors import InputError, nearest

ADVANTAGES = ("grpo", "grpo_nostd", "maxrl", "rloo")
"""Names ``group_advantages`` knows."""


def group_advantages(kind: str, rewards: ArrayLike, groups: ArrayLike, *, epsilon: float = 1e-6) -> NDArray[np.float64]:
    """Advantage of each trial inside its Group.

    Args:
        kind: "grpo" (r - mean) / (std + epsilon) with the n-1 std; "grpo_nostd" r - mean; "rloo" r - mean of the
            others; "maxrl" (r - mean) / (mean + epsilon).
        rewards: [trials], finite.
        groups: [trials], equal values belong together.
        epsilon: added to the divisor of grpo and maxrl, in units of reward.

    Returns:
        float64 [trials]; exactly 0 in a Group of one or of equal rewards.

    Raises:
        InputError: unknown kind, unequal lengths, a reward that is not finite.

    Source: training.md section 5; RLOO arXiv 2402.14740, GRPO arXiv 2402.03300, MaxRL as on that page.
    """
    if kind not in ADVANTAGES:
        match = nearest(kind, ADVANTAGES)
        hint = f"did you mean {match}?" if match else None
        raise InputError("advantages", f"unknown name {kind!r}", allowed=", ".join(ADVANTAGES), hint=hint)
    r, index, count = _grouped(rewards, groups)
    mean = np.bincount(index, r, minlength=len(count)) / count
    deviation = r - mean[index]
    if kind == "grpo":
        variance = np.bincount(index, deviation**2, minlength=len(count)) / np.maximum(count - 1, 1)
        scale = 1 / (np.sqrt(variance) + epsilon)
    elif kind == "rloo":
        scale = count / np.maximum(count - 1, 1)
    elif kind == "maxrl":
        scale = 1 / (mean + epsilon)
    else:
        scale = np.ones(len(count))
    return np.where(live(r, index), deviation * scale[index], 0.0)


def live(rewards: ArrayLike, groups: ArrayLike) -> NDArray[np.bool_]:
    """bool [trials]: whether the trial's Group holds two different rewards, so that it can teach anything."""
    r, index, count = _grouped(rewards, groups)
    lowest, highest = np.full(len(count), np.inf), np.full(len(count), -np.inf)
    np.minimum.at(lowest, index, r)
    np.maximum.at(highest, index, r)
    return np.asarray((highest > lowest)[index], dtype=np.bool_)


def _grouped(rewards: ArrayLike, groups: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.intp], NDArray[np.int64]]:
    r, g = np.asarray(rewards, dtype=np.float64), np.asarray(groups)
    if r.shape != g.shape or r.ndim != 1:
        raise InputError("groups", f"has shape {g.shape}", allowed=f"{r.shape}, as rewards, one-dimensional")
    if not np.isfinite(r).all():
        at = int(np.flatnonzero(~np.isfinite(r))[0])
        raise InputError(f"rewards[{at}]", f"{r[at]} is not finite", hint="take errored trials out before the baseline")
    _, index, count = np.unique(g, return_inverse=True, return_counts=True)
    return r, index, count.astype(np.int64)
