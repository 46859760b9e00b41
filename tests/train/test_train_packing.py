"""Packing: each sequence once, never over the cap, near the lower bound, fast."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from journeyman.errors import InputError
from journeyman.train.packing import grouped_batches, pack


@given(st.lists(st.tuples(st.integers(1, 150), st.integers(0, 4)), max_size=60), st.integers(1, 120))
def test_every_sequence_lies_in_one_bin_and_only_a_lone_one_exceeds_the_cap(rows, cap):
    lengths = [length for length, _ in rows]
    for bins in (pack(lengths, cap), grouped_batches(lengths, [g for _, g in rows], cap)):
        assert sorted(i for b in bins for i in b) == list(range(len(lengths)))
        assert all(sum(lengths[i] for i in b) <= cap or len(b) == 1 for b in bins)


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


def test_rows_of_one_group_stay_side_by_side_and_the_longest_group_comes_first():
    lengths, groups = [5, 9, 7, 3, 4], [1, 2, 1, 3, 2]
    assert grouped_batches(lengths, groups, 13) == [[1, 4], [2, 0], [3]]


def test_a_length_or_cap_that_is_not_positive_is_refused():
    with pytest.raises(InputError, match="cap"):
        pack([1], 0)
    with pytest.raises(InputError, match=r"lengths\[1\]"):
        grouped_batches([3, 0], [0, 0], 8)
