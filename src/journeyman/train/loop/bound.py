"""The hard bound at consumption: no Group whose oldest token is more than S steps behind is trained, by one of four
policies. Admission bounds how much work is under way; this bounds the truth.

Staleness counts from the oldest version among a Group's sampled tokens. ``hold`` never drops a live Group: the trainer
waits instead, and not only for a Group that is due now. Deadlines are ``oldest + S``; before a step it asks whether
every live Group can still be consumed in time when ``B`` are consumed per step, the most urgent first.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

BoundPolicy = Literal["hold", "drop", "requeue", "accept"]

BOUND_POLICIES: dict[BoundPolicy, str] = {
    "hold": "the trainer waits rather than let a live group pass the bound; nothing is lost",
    "drop": "a group past the bound is given up",
    "requeue": "a group past the bound is given up and its task is submitted again",
    "accept": "a group past the bound is trained all the same; counted and printed",
}
"""What happens at the bound, by name."""


def staleness(version: int, oldest: int) -> int:
    """Optimizer steps between the oldest token and the weights that would train on it; never negative.

    After a resume from a checkpoint a Group may carry versions that were trained and lost; it counts as fresh.
    """
    return max(0, version - oldest)


def is_late(version: int, oldest: int, limit: int) -> bool:
    """Whether a Group may not be trained by the step that makes ``version + 1``."""
    return staleness(version, oldest) > limit


def can_step(rest: Iterable[int], *, version: int, limit: int, groups_per_step: int) -> bool:
    """Whether every live Group that a step leaves behind can still be trained within the bound after it.

    Args:
        rest: oldest versions of the live Groups (running or queued) that the step leaves behind; for a running one the
            version at its submission, which is never too new.
        version: completed steps before the step.
        limit: S.
        groups_per_step: B.

    Returns:
        True when for each k >= 0 at most (k + 1) B of them are due within k further steps.
    """
    due: dict[int, int] = {}
    for oldest in rest:
        slack = oldest + limit - (version + 1)
        if slack < 0:
            return False
        due[slack] = due.get(slack, 0) + 1
    total = 0
    for slack in sorted(due):
        total += due[slack]
        if total > (slack + 1) * groups_per_step:
            return False
    return True
