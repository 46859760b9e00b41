"""The two reference data sets of the evaluation reference, section 3.1."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def _bits(text: str) -> NDArray[np.float64]:
    return np.array([[float(bit) for bit in task] for task in text.split()])


WORLDS = [0, 0, 0, 1, 1, 1, 1, 2, 2, 3, 3, 3]
A = _bits("101 000 111 010 001 000 100 111 110 000 010 000")
B = _bits("111 001 111 011 001 000 000 111 111 010 110 000")


def large_set() -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Worlds [480], trials of A and B [480, 3]: 60 worlds of 8 tasks."""
    rng = np.random.default_rng(0)
    base = np.repeat(rng.beta(1, 2.2, 60), 8)
    task = np.clip(base + rng.normal(0, 0.15, 480), 0, 1)
    a = rng.random((480, 3)) < task[:, None]
    b = rng.random((480, 3)) < np.clip(task + 0.04, 0, 1)[:, None]
    return np.repeat(np.arange(60), 8), a.astype(float), b.astype(float)
