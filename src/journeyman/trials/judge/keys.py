"""Several keys of one service, used in turn: one that is limited rests, one that is refused is dropped."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from journeyman.errors import EnvironmentMissing


@dataclass
class _Key:
    value: str
    free_at: float = 0.0
    used_at: float = -1.0
    is_dropped: bool = False


class Keys:
    """Keys by their position; their values are never in an error, a repr or a report.

    Args:
        values: the keys; "" stands for a service that wants none.
        now: the clock, in seconds.
    """

    def __init__(self, values: Sequence[str], now: Callable[[], float] = time.monotonic) -> None:
        self._keys = [_Key(value) for value in values] or [_Key("")]
        self._now = now
        self._lock = threading.Lock()
        self._turns = 0

    @classmethod
    def of_variables(cls, names: Sequence[str]) -> Keys:
        """The keys in the named environment variables. Raises EnvironmentMissing for one that is not set."""
        missing = [name for name in names if not os.environ.get(name)]
        if missing:
            raise EnvironmentMissing(f"the judge's keys are missing: set {', '.join(missing)}")
        return cls([os.environ[name] for name in names])

    def __repr__(self) -> str:
        return f"Keys({len(self._keys)} keys)"

    @property
    def values(self) -> tuple[str, ...]:
        """All of them, for whoever has to keep them out of texts."""
        return tuple(key.value for key in self._keys if key.value)

    def take(self) -> tuple[int, str, float] | None:
        """Position, value and seconds to wait of the key that is free first, the longest unused among equals.

        None once every key is dropped.
        """
        with self._lock:
            now = self._now()
            usable = [(max(k.free_at, now), k.used_at, n) for n, k in enumerate(self._keys) if not k.is_dropped]
            if not usable:
                return None
            free_at, _, n = min(usable)
            self._turns += 1
            self._keys[n].used_at = self._turns
            return n, self._keys[n].value, free_at - now

    def rest(self, position: int, seconds: float) -> None:
        """Do not use this one for so long."""
        with self._lock:
            key = self._keys[position]
            key.free_at = max(key.free_at, self._now() + seconds)

    def drop(self, position: int) -> None:
        """Never use this one again: the service refused it."""
        with self._lock:
            self._keys[position].is_dropped = True
