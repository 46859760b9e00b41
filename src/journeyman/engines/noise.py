"""Sampling noise as a pure function of (key, position): redone work draws the same numbers, whatever else runs."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def _mix(z: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The finaliser of splitmix64 (Steele, Lea, Flood 2014), wrapping modulo 2^64."""
    z = (z ^ (z >> np.uint64(30))) * _FIRST
    z = (z ^ (z >> np.uint64(27))) * _SECOND
    return z ^ (z >> np.uint64(31))


def uniforms(keys: npt.NDArray[np.uint64], positions: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """One float64 in [0, 1) for each (key, position); 53 random bits.

    The key is mixed before the position is added, so neighbouring keys do not share shifted streams.
    """
    steps = (positions.astype(np.uint64) + np.uint64(1)) * _GOLDEN
    bits = _mix(_mix(keys + _GOLDEN) + steps)
    return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53
