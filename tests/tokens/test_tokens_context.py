from __future__ import annotations

import numpy as np
import pytest

from journeyman.tokens import Context, Source


def two_turns() -> Context:
    context = Context()
    context.append_prompt([1, 2, 3])
    context.append_sampled([4, 5], [-0.5, -0.25], version=7)
    context.append_forced([9])
    context.append_observation([6, 6])
    context.append_sampled([8], np.array([-1.0], dtype=np.float32), version=8)
    return context


def test_every_token_has_a_source_a_mask_a_logprob_a_version_and_a_turn() -> None:
    columns = two_turns().arrays()
    assert columns.ids.tolist() == [1, 2, 3, 4, 5, 9, 6, 6, 8]
    assert columns.mask.tolist() == [0, 0, 0, 1, 1, 0, 0, 0, 1]
    assert columns.logprob.tolist() == [0, 0, 0, -0.5, -0.25, 0, 0, 0, -1]
    assert columns.source.tolist() == [0, 0, 0, 1, 1, 3, 2, 2, 1]
    assert columns.version.tolist() == [-1, -1, -1, 7, 7, -1, -1, -1, 8]
    assert columns.turn.tolist() == [0, 0, 0, 1, 1, 1, 1, 1, 2]
    assert [a.dtype.name for a in vars(columns).values()] == ["int32", "uint8", "float32", "uint8", "int32", "int32"]


@pytest.mark.parametrize("start", [0, 3, 8, 9])
def test_the_tail_holds_the_bytes_of_every_column_from_a_token_on(start: int) -> None:
    context = two_turns()
    columns = vars(context.arrays()).values()
    assert context.tail(start) == tuple(column[start:].tobytes() for column in columns)


def test_arrays_and_ids_handed_out_cannot_change_the_context() -> None:
    context = two_turns()
    columns, ids = context.arrays(), context.ids
    columns.ids[:] = 0
    ids.clear()
    context.append_observation([1])
    assert context.arrays().ids.tolist() == [1, 2, 3, 4, 5, 9, 6, 6, 8, 1]
    assert len(columns.ids) == 9


def test_a_demonstrated_turn_is_trained_on_but_has_no_logprob() -> None:
    context = Context()
    context.append_demonstration([4, 5])
    columns = context.arrays()
    assert columns.mask.tolist() == [1, 1]
    assert columns.logprob.tolist() == [0, 0]
    assert columns.source.tolist() == [Source.DEMONSTRATION] * 2
    assert context.turns == 1


@pytest.mark.parametrize(
    ("logprobs", "version"),
    [([-0.5], 0), ([-0.5, float("nan")], 0), ([-0.5, float("-inf")], 0), ([-0.5, 0.1], 0), ([-0.5, -0.5], -1)],
)
def test_sampled_tokens_without_a_true_logprob_or_version_are_refused(logprobs: list[float], version: int) -> None:
    context = Context()
    with pytest.raises(ValueError):
        context.append_sampled([4, 5], logprobs, version)
    assert len(context) == 0
    assert context.turns == 0


def test_a_negative_id_is_refused_and_nothing_is_appended() -> None:
    context = Context()
    with pytest.raises(ValueError, match="negative"):
        context.append_prompt([1, -2])
    assert len(context) == 0
