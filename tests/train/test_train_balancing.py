"""Micro-batches to ranks: as many for each, nothing lost, nothing over the cap, nearly equal work, fast."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from journeyman.errors import InputError
from journeyman.train.balancing import balance, cost_of, split_to
from journeyman.train.packing import pack


@given(st.lists(st.integers(1, 150), min_size=1, max_size=60), st.integers(1, 120), st.integers(1, 9))
def test_every_sequence_is_placed_once_on_ranks_of_equally_many_bins_never_over_the_cap(lengths, cap, ranks):
    bins = pack(lengths, cap)
    plan = balance(bins, ranks, lengths=lengths)
    assert len(plan) == ranks
    assert {len(rank) for rank in plan} == {-(-len(bins) // ranks)}
    assert sorted(i for rank in plan for b in rank for i in b) == list(range(len(lengths)))
    assert all(sum(lengths[i] for i in b) <= cap or len(b) == 1 for rank in plan for b in rank)
    empty = sum(not b for rank in plan for b in rank)
    assert empty == max(0, ranks * len(plan[0]) - len(lengths))  # only where there are fewer sequences than places
    assert plan == balance(bins, ranks, lengths=lengths)


def test_the_dearest_bin_is_split_and_a_lone_sequence_never():
    lengths = [9, 5, 4, 1]
    assert split_to([[0], [1, 2, 3]], 3, lengths) == [[0], [1], [2, 3]]
    assert split_to([[0]], 3, lengths) == [[0], [], []]


def test_each_rank_meets_its_dearest_micro_batch_first():
    lengths = [5, 9, 2, 7, 8, 1]
    plan = balance([[i] for i in range(6)], 2, lengths=lengths)
    assert all(
        [cost_of(lengths, b) for b in rank] == sorted((cost_of(lengths, b) for b in rank), reverse=True)
        for rank in plan
    )
    assert {lengths[rank[0][0]] for rank in plan} == {9, 8}


@pytest.mark.parametrize(
    ("count", "seed", "ranks", "limit"), [(256, 0, 8, 1.002), (1024, 1, 8, 1.0002), (4096, 2, 16, 1.0002)]
)
def test_ranks_carry_nearly_the_same_work_within_milliseconds(count, seed, ranks, limit):
    draws = np.random.default_rng(seed).lognormal(np.log(20000), 0.9, count)
    lengths = np.clip(draws, 512, 131072).astype(int).tolist()
    bins = pack(lengths, 131072)
    cpu = []
    for _ in range(3):
        start = time.process_time()
        plan = balance(bins, ranks, lengths=lengths)
        cpu.append(time.process_time() - start)
    work = [sum(cost_of(lengths, b) for b in rank) for rank in plan]
    assert max(work) * ranks / sum(work) < limit
    assert min(cpu) < 0.1


def test_no_rank_and_no_bin_are_refused():
    with pytest.raises(InputError, match="ranks"):
        balance([[0]], 0, lengths=[1])
    with pytest.raises(InputError, match="bins"):
        balance([], 2, lengths=[])
