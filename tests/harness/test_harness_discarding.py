from __future__ import annotations

import pytest

from journeyman.harness.discarding import DiscardingContext


@pytest.mark.parametrize("start", [0, 2, 4])
def test_the_tail_of_a_context_shows_a_discarded_turn_with_mask_0_as_its_arrays_do(start: int) -> None:
    context = DiscardingContext()
    context.append_prompt([1, 2])
    context.append_sampled([3, 4], [-0.5, -0.25], version=1)
    context.discard(2)
    context.append_sampled([5], [-1.0], version=1)
    assert context.arrays().mask.tolist() == [0, 0, 0, 0, 1]
    assert context.tail(start) == tuple(column[start:].tobytes() for column in vars(context.arrays()).values())
