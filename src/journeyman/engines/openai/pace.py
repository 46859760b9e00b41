"""How fast a service may be asked: requests at once, requests and tokens per minute."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from journeyman.deadline import Deadline

MINUTE_S = 60.0


class Pace:
    """Shared by all threads that ask one service.

    Args:
        at_once: requests under way, at most.
        requests_per_minute, tokens_per_minute: in any 60 seconds; None: no limit. Tokens are booked when an answer
            tells them, so a burst may exceed the limit by what is under way.
    """

    def __init__(self, at_once: int, requests_per_minute: int | None, tokens_per_minute: int | None) -> None:
        self._slots = threading.BoundedSemaphore(at_once)
        self._requests, self._tokens = requests_per_minute, tokens_per_minute
        self._sent: deque[float] = deque()
        self._used: deque[tuple[float, int]] = deque()
        self._not_before = 0.0
        self._lock = threading.Lock()

    @contextmanager
    def turn(self, deadline: Deadline) -> Iterator[None]:
        """Wait for a place, hold it while the block runs.

        Raises:
            DeadlinePassed: it came too late.
        """
        if not self._slots.acquire(timeout=deadline.remaining_s):
            deadline.check()
        try:
            while (wait_s := self._take()) > 0:
                deadline.check()
                time.sleep(min(wait_s, max(0.001, deadline.remaining_s)))
            yield
        finally:
            self._slots.release()

    def hold(self, wait_s: float) -> None:
        """Nobody asks for so many seconds: the service said so."""
        with self._lock:
            self._not_before = max(self._not_before, time.monotonic() + wait_s)

    def book(self, tokens: int) -> None:
        """Tokens of an answer, input and output."""
        with self._lock:
            self._used.append((time.monotonic(), tokens))

    def _take(self) -> float:
        """0 and the request is counted, or the seconds until it is worth asking again."""
        now = time.monotonic()
        with self._lock:
            while self._sent and self._sent[0] <= now - MINUTE_S:
                self._sent.popleft()
            while self._used and self._used[0][0] <= now - MINUTE_S:
                self._used.popleft()
            if now < self._not_before:
                return self._not_before - now
            if self._requests is not None and len(self._sent) >= self._requests:
                return self._sent[0] + MINUTE_S - now
            if self._tokens is not None and sum(count for _, count in self._used) >= self._tokens:
                return self._used[0][0] + MINUTE_S - now
            self._sent.append(now)
            return 0.0
