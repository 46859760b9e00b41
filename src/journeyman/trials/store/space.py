"""A disk that runs low pauses the writer: it waits, says so, and goes on when there is room again."""

from __future__ import annotations

import errno
import logging
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from journeyman.deadline import Deadline
from journeyman.durable import storage_error
from journeyman.errors import StorageError

LOG = logging.getLogger(__name__)
SMALL_DISK = 20
FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
FRESH_S = 0.05
"""For so long a disk that had room is not looked at again."""

_had_room: dict[str, float] = {}
"""Place -> when it was last seen to have room, by ``time.monotonic``; a place is a run, so there are few."""


@dataclass(frozen=True)
class SpaceGuard:
    """When a writer pauses, and for how long.

    Attributes:
        reserve_bytes: the writer pauses while less than this is free, before the disk is full for everybody; of a
            small disk at most a twentieth.
        wait_s: seconds it waits for room before it gives up with StorageError; 0 gives up at once.
        poll_s: seconds between two looks.
    """

    reserve_bytes: int = 256 << 20
    wait_s: float = 24 * 3600.0
    poll_s: float = 1.0

    def write(self, place: Path, action: Callable[[], None]) -> None:
        """Run ``action`` (which takes back what it half wrote) as soon as there is room, again if it finds none.

        Args:
            place: an existing directory on the disk that is written.

        Raises:
            StorageError: no room within ``wait_s``, or the storage refuses for another reason. Nothing was written.
        """
        failure = self._attempt(place, action)
        if failure is None:
            return
        deadline = Deadline.after(self.wait_s, "waiting for disk space") if self.wait_s > 0 else None
        is_paused = False
        while True:
            if failure.errno not in FULL or deadline is None or deadline.has_passed:
                raise storage_error(place, failure) from failure
            if not is_paused:
                LOG.warning(
                    "the disk of %s is nearly full: paused, nothing is lost; free some space (journeyman gc) and the "
                    "run goes on by itself",
                    place,
                )
                is_paused = True
            time.sleep(min(self.poll_s, deadline.remaining_s))
            failure = self._attempt(place, action)
            if failure is None:
                LOG.warning("there is room again on the disk of %s: going on", place)
                return

    def _attempt(self, place: Path, action: Callable[[], None]) -> OSError | None:
        if not self._has_room(place):
            return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        try:
            action()
        except OSError as error:
            return error
        except StorageError as error:
            if isinstance(error.__cause__, OSError):
                return error.__cause__
            raise
        return None

    def _has_room(self, place: Path) -> bool:
        if self.reserve_bytes <= 0:
            return True
        key, now = f"{self.reserve_bytes} {place}", time.monotonic()
        if now - _had_room.get(key, -FRESH_S) < FRESH_S:
            return True
        state = os.statvfs(place)
        size, free = state.f_blocks * state.f_frsize, state.f_bavail * state.f_frsize
        if free < min(self.reserve_bytes, size // SMALL_DISK):
            return False
        _had_room[key] = now
        return True
