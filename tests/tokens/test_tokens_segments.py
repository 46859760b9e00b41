"""Segments: an edit of the conversation opens one, history stays, and each token is stored once."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from journeyman.tokens import Context, Source, segment_columns

TURNS, SAMPLED, OBSERVED = 300, 150, 150
COLUMN_BYTES = 4 + 1 + 4 + 1 + 4 + 4


def opened() -> Context:
    context = Context()
    context.append_prompt([1, 2, 3])
    context.append_sampled([4, 5], [-0.5, -0.5], 0)
    context.append_observation([6])
    return context


def test_a_compaction_begins_anew_and_leaves_history_as_it_was() -> None:
    context = opened()
    before = context.arrays()
    context.open_segment(2, "compaction")
    context.append_prompt([7])
    context.append_sampled([8], [-1.0], 1)
    assert context.ids == [1, 2, 7, 8]
    assert (len(context), context.stored) == (4, 8)
    assert [(s.reason, s.start, s.shared) for s in context.segments] == [
        ("opening", 0, ()),
        ("compaction", 6, ((0, 2),)),
    ]
    after = context.arrays()
    for name, column in vars(before).items():
        assert getattr(after, name)[:6].tolist() == column.tolist()


def test_a_discarded_turn_shares_everything_before_it_and_segments_nest() -> None:
    context = opened()
    context.append_sampled([9, 9], [-1.0, -1.0], 0)
    context.open_segment(6, "regenerated")
    context.append_sampled([8], [-1.0], 0)
    context.open_segment(7, "compaction")
    context.append_prompt([7])
    assert context.ids == [1, 2, 3, 4, 5, 6, 8, 7]
    assert context.segments[2].shared == ((0, 6), (8, 9))
    assert context.stored == 10


def test_each_segment_is_one_row_and_a_shared_token_is_trained_on_once() -> None:
    context = opened()
    context.open_segment(5, "compaction")
    context.append_sampled([8], [-1.0], 1)
    rows = segment_columns(context.arrays(), context.segments)
    assert [row.ids.tolist() for row in rows] == [[1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 8]]
    assert [row.mask.tolist() for row in rows] == [[0, 0, 0, 1, 1, 0], [0, 0, 0, 0, 0, 1]]
    assert context.arrays().mask.sum() == sum(int(row.mask.sum()) for row in rows)
    (only,) = segment_columns(opened().arrays(), opened().segments)
    assert only.mask.tolist() == opened().arrays().mask.tolist()


@pytest.mark.parametrize("keep", [-1, 7])
def test_no_segment_keeps_more_than_there_is(keep: int) -> None:
    with pytest.raises(ValueError, match="of 6 tokens"):
        opened().open_segment(keep, "compaction")


def test_weights_that_change_within_a_turn_leave_a_version_per_token() -> None:
    context = Context()
    context.append_sampled([4, 5, 6], [-0.5] * 3, [7, 7, 8])
    context.append_sampled([4], [-0.5], np.int64(9))
    context.append_sampled([5, 6], [-0.5] * 2, np.array([9, 10], dtype=np.int32))
    assert context.arrays().version.tolist() == [7, 7, 8, 9, 9, 10]
    with pytest.raises(ValueError, match="2 versions"):
        context.append_sampled([4], [-0.5], [7, 8])
    with pytest.raises(ValueError, match="version must be"):
        context.append_sampled([4], [-0.5], [-1])
    with pytest.raises(ValueError, match="version must be"):
        context.append_sampled([], [], -1)


def long_trial() -> tuple[Context, int]:
    """A trial of 300 turns, and the ids that a record of full prompts per call would hold."""
    context, full = Context(), 0
    context.append_prompt(list(range(500)))
    for turn in range(TURNS):
        full += len(context) + SAMPLED
        context.append_sampled([turn] * SAMPLED, [-0.5] * SAMPLED, turn)
        context.append_observation([turn] * OBSERVED)
    return context, full


def test_a_trial_of_300_turns_stores_each_token_once(capsys: pytest.CaptureFixture[str]) -> None:
    context, full = long_trial()
    tokens = 500 + TURNS * (SAMPLED + OBSERVED)
    assert context.stored == len(context) == tokens
    columns = context.arrays()
    ours = sum(column.nbytes for column in vars(columns).values()) / tokens
    per_call = full * columns.ids.itemsize / tokens
    assert ours == COLUMN_BYTES
    held = sum(
        sys.getsizeof(value) for name, value in vars(context).items() if name.startswith("_") and name != "_turns"
    )
    assert held / tokens < 1.3 * COLUMN_BYTES
    assert per_call > 30 * ours
    with capsys.disabled():
        print(f"\n300 turns: {ours:.0f} bytes per token in six columns; full prompt ids per call: {per_call:.0f}")


def test_memory_grows_by_a_share_of_what_is_there_so_appending_stays_cheap() -> None:
    context = Context()
    sizes: list[int] = []
    for _ in range(2_000):
        context.append_observation([1] * 50)
        size = sum(sys.getsizeof(column) for column in vars(context).values())
        if not sizes or size != sizes[-1]:
            sizes.append(size)
    moved = sum(sizes) / sizes[-1]
    assert len(sizes) < 400
    assert moved < 40, "copies add up to a fixed multiple of the final size, so O(1) per token"
    assert np.all(context.arrays().source == Source.OBSERVATION)
