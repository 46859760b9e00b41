"""Rows of trials whose context was edited: one for each segment, as the model saw it."""

from __future__ import annotations

import numpy as np

from journeyman.tokens.context import Context, segment_columns
from journeyman.tokens.segments import as_json
from journeyman.train.loop.protocol import FinishedTrial
from journeyman.train.loop.settling import parts_of


def edited_trial():
    """A prompt, two turns, and after a compaction that keeps the prompt another turn."""
    context = Context()
    context.append_prompt([1, 2, 3])
    context.append_sampled([4, 5], [-0.1, -0.2], 0)
    context.append_observation([6])
    context.append_sampled([7], [-0.3], 1)
    context.open_segment(3, "compaction")
    context.append_observation([8, 9])
    context.append_sampled([10, 11], [-0.4, -0.5], 2)
    columns = context.arrays()
    sampled = int(columns.mask.sum())
    told = {
        "topk_ids": np.arange(2 * sampled, dtype=np.int32).reshape(sampled, 2),
        "topk_logprobs": -np.ones((sampled, 2), np.float32),
        "routed_experts": np.arange(len(columns.ids), dtype=np.uint8)[:, None, None],
    }
    facts = {"segments": as_json(context.segments)}
    trial = FinishedTrial(
        0, 0, columns.ids, columns.mask, columns.logprob, columns.version, 1.0, True, "none", facts, **told
    )
    return context, columns, trial


def test_each_segment_is_a_row_of_what_the_model_saw():
    context, columns, trial = edited_trial()
    rows = parts_of(trial, advantage=0.5, prompt=3)
    wanted = segment_columns(columns, context.segments)
    assert len(rows) == len(wanted) == 2
    for row, segment in zip(rows, wanted, strict=True):
        assert row.ids.tolist() == segment.ids.tolist() and row.mask.tolist() == segment.mask.tolist()
        assert np.array_equal(row.logprobs[row.mask == 1], segment.logprob[segment.mask == 1])
        assert (row.advantage, row.prompt) == (0.5, 3)
    assert rows[1].ids.tolist() == [1, 2, 3, 8, 9, 10, 11]
    assert rows[1].topk_ids[rows[1].mask == 1].tolist() == [[6, 7], [8, 9]]
    assert rows[1].routed_experts[:, 0, 0].tolist() == [0, 1, 2, 7, 8, 9, 10]
    assert sum(int(row.mask.sum()) for row in rows) == trial.num_sampled, "each token is trained on once"
