from __future__ import annotations

import numpy as np
from scipy import stats

from journeyman.engines.noise import uniforms


def test_the_finaliser_is_splitmix64() -> None:
    """First outputs of splitmix64 from state 1234567, the reference vector of its public-domain C source."""
    from journeyman.engines.noise import _GOLDEN, _mix

    state = np.uint64(1234567) + _GOLDEN * np.arange(1, 4, dtype=np.uint64)
    assert _mix(state).tolist() == [6457827717110365317, 3203168211198807973, 9817491932198370423]


def test_noise_depends_on_key_and_position_only() -> None:
    keys = np.array([5, 6, 5], dtype=np.uint64)
    positions = np.array([0, 0, 1], dtype=np.int64)
    values = uniforms(keys, positions)
    assert len(set(values.tolist())) == 3
    assert uniforms(keys[1:2], positions[1:2])[0] == values[1]


def test_noise_is_uniform_over_positions_and_over_neighbouring_keys() -> None:
    count = np.arange(20_000)
    along = uniforms(np.full(20_000, 7, dtype=np.uint64), count)
    across = uniforms(count.astype(np.uint64), np.zeros(20_000, dtype=np.int64))
    for values in (along, across):
        assert 0 <= values.min() < values.max() < 1
        assert stats.kstest(values, "uniform").pvalue > 1e-3
        assert abs(np.corrcoef(values[1:], values[:-1])[0, 1]) < 0.03
