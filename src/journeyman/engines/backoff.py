"""How long to wait before something that failed is tried again: a wait that doubles, with jitter."""

from __future__ import annotations

from collections.abc import Callable

FIRST_WAIT_S, LONGEST_WAIT_S = 0.5, 30.0


def own_wait(tries: int, uniform: Callable[[], float]) -> float:
    """Seconds before the try after ``tries`` failed ones: between half and all of a wait that doubles each time."""
    longest = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0 ** (tries - 1))
    return longest * (0.5 + 0.5 * uniform())
