"""How many Groups may be submitted now: the capacity formula, and the settings it makes sense for.

Pacing alone fills the pipe, so staleness then sits at the bound; ``bound.py`` adds the hard bound at consumption.
"""

from __future__ import annotations

from dataclasses import dataclass

from journeyman.errors import InputError


@dataclass(frozen=True)
class AdmissionSpec:
    """Sizes of the pipe.

    Attributes:
        groups_per_step: Groups one optimizer step consumes (B).
        staleness: optimizer steps by which a token may be behind the weights that train on it (eta, S).
        max_running: Groups that run at once at most, whatever the staleness allows.
    """

    groups_per_step: int
    staleness: int
    max_running: int

    def __post_init__(self) -> None:
        if self.groups_per_step < 1:
            raise InputError("loop.groups_per_step", f"got {self.groups_per_step}", allowed=">= 1")
        if self.staleness < 0:
            raise InputError("loop.staleness", f"got {self.staleness}", allowed=">= 0")
        if self.max_running < 1:
            raise InputError("loop.max_running", f"got {self.max_running}", allowed=">= 1")

    @property
    def most_in_flight(self) -> int:
        """Groups that can be in flight at once: (S + 1) B."""
        return (self.staleness + 1) * self.groups_per_step


def capacity(spec: AdmissionSpec, *, version: int, accepted: int, running: int) -> int:
    """Groups that may be submitted now; negative when there are already too many.

    ``min(max(1, max_running) - running, (S + version + 1) B - (accepted + running))``.

    Args:
        version: completed optimizer steps, 0 at the start.
        accepted: Groups finished and counted for training, trained ones included. After a resume this starts at
            ``version * B``; at 0 it would admit the whole past again (1,664 instead of 64 Groups at version 100).
        running: Groups in flight that have not finished.

    Source: training.md 2.1.
    """
    room = max(1, spec.max_running) - running
    allowed = (spec.staleness + version + 1) * spec.groups_per_step - (accepted + running)
    return min(room, allowed)
