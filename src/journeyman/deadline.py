"""A deadline: one instant on the monotonic clock that every external operation is given and must end by."""

from __future__ import annotations

import time
from dataclasses import dataclass

from journeyman.errors import DeadlinePassed


@dataclass(frozen=True)
class Deadline:
    """An instant by which something must be over. Built once at the boundary and handed down unchanged.

    Attributes:
        what: the operation, named in the error.
        limit_s: seconds allowed when it was set.
        at: instant on ``time.monotonic``.
    """

    what: str
    limit_s: float
    at: float

    @classmethod
    def after(cls, limit_s: float, what: str) -> Deadline:
        """A deadline ``limit_s`` seconds from now. Raises ValueError for a limit that is not positive."""
        if not limit_s > 0:
            raise ValueError(f"deadline of {what} must be positive, got {limit_s!r}")
        return cls(what, limit_s, time.monotonic() + limit_s)

    @property
    def remaining_s(self) -> float:
        """Seconds left, never negative."""
        return max(0.0, self.at - time.monotonic())

    @property
    def has_passed(self) -> bool:
        return time.monotonic() >= self.at

    def check(self) -> None:
        """Raise DeadlinePassed once the instant is over."""
        if self.has_passed:
            raise DeadlinePassed(self.what, self.limit_s)
