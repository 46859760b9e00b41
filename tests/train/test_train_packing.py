"""Packing: each sequence once, never over the cap, near the lower bound, fast."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from journeyman.errors import InputError
from journeyman.train.packing import pack, padded_batches


@given(st.lists(st.integers(1, 150), max_size=60), st.integers(1, 120))
def test_every_sequence_lies_in_one_bin_and_only_a_lone_one_exceeds_the_cap(lengths, cap):
    for bins, size in [
        (pack(lengths, cap), lambda b: sum(lengths[i] for i in b)),
        (padded_batches(lengths, cap), lambda b: len(b) * max(lengths[i] for i in b)),
    ]:
        assert sorted(i for b in bins for i in b) == list(range(len(lengths)))
        assert all(size(b) <= cap or len(b) == 1 for b in bins)


@pytest.mark.parametrize(("count", "seed", "lower_bound"), [(256, 0, 57), (1024, 1, 213), (4096, 2, 894)])
def test_packing_the_reference_lengths_takes_at_most_one_bin_above_the_lower_bound(count, seed, lower_bound):
    draws = np.random.default_rng(seed).lognormal(np.log(20000), 0.9, count)
    lengths = np.clip(draws, 512, 131072).astype(int).tolist()
    assert -(-sum(lengths) // 131072) == lower_bound
    cpu = min(_seconds(lengths) for _ in range(5))
    assert cpu < 0.010
    assert len(pack(lengths, 131072)) <= lower_bound + 1


def _seconds(lengths):
    start = time.process_time()
    pack(lengths, 131072)
    return time.process_time() - start


def test_padded_micro_batches_of_sorted_rows_waste_little():
    lengths = np.random.default_rng(0).integers(80, 240, 256).tolist()
    batches = padded_batches(lengths, 16_384)
    padded = sum(len(b) * max(lengths[i] for i in b) for b in batches)
    assert sum(lengths) / padded > 0.85
    assert len(batches) == 3


def test_a_length_or_cap_that_is_not_positive_is_refused():
    with pytest.raises(InputError, match="cap"):
        pack([1], 0)
    with pytest.raises(InputError, match=r"lengths\[1\]"):
        padded_batches([3, 0], 8)
