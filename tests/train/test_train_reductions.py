"""Reductions: what each weighs the same, and what never changes a weight."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from journeyman.errors import InputError
from journeyman.train.reductions import token_weights


def weights(kind, lengths, prompt_of, masked=(), **options):
    sequence_of = torch.repeat_interleave(torch.arange(len(lengths)), torch.tensor(lengths))
    mask = torch.tensor([int(s) not in masked for s in sequence_of])
    return token_weights(kind, mask=mask, sequence_of=sequence_of, prompt_of=torch.tensor(prompt_of), **options)


def test_prompt_mean_gives_every_prompt_the_same_weight_whatever_its_length():
    assert weights("prompt", [3, 1, 2], [0, 0, 1]).tolist() == [1 / 8] * 4 + [1 / 4] * 2


def test_sequence_mean_gives_every_sequence_the_same_weight_and_token_mean_every_token():
    assert weights("sequence", [3, 1], [0, 0]).tolist() == pytest.approx([1 / 6] * 3 + [1 / 2])
    assert weights("token", [3, 1], [0, 0]).tolist() == [1 / 4] * 4


def test_drgrpo_divides_by_the_constant_of_the_recipe():
    assert weights("drgrpo", [3, 1], [0, 0], max_length=10).tolist() == pytest.approx([1 / 20] * 4)
    with pytest.raises(InputError, match="max_length"):
        weights("drgrpo", [3, 1], [0, 0])


@pytest.mark.parametrize("kind", ["token", "sequence", "prompt"])
def test_a_fully_masked_prompt_does_not_shrink_the_step_unless_asked_to(kind):
    assert weights(kind, [3, 1, 2], [0, 0, 7], masked={2}).sum().item() == pytest.approx(1)
    counted = weights(kind, [3, 1, 2], [0, 0, 7], masked={2}, count_empty=True).sum().item()
    assert counted == pytest.approx({"token": 1, "sequence": 2 / 3, "prompt": 1 / 2}[kind])


@pytest.mark.parametrize("kind", ["token", "sequence", "prompt", "drgrpo"])
def test_nothing_trainable_gives_zero_weights(kind):
    assert weights(kind, [3, 1], [0, 1], masked={0, 1}, max_length=4).tolist() == [0] * 4


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 3)), min_size=1, max_size=8), st.data())
def test_weights_sum_to_one_and_prompts_weigh_the_same(rows, data):
    lengths, prompts = [length for length, _ in rows], [p for _, p in rows]
    masked = data.draw(st.sets(st.integers(0, len(rows) - 1), max_size=len(rows) - 1))
    for kind in ("token", "sequence", "prompt"):
        assert weights(kind, lengths, prompts, masked).sum().item() == pytest.approx(1)
    per_token = weights("prompt", lengths, prompts, masked)
    of_token = torch.repeat_interleave(torch.tensor(prompts), torch.tensor(lengths))
    shares = {per_token[of_token == p].sum().item() for i, p in enumerate(prompts) if i not in masked}
    assert max(shares) == pytest.approx(min(shares))


@pytest.mark.parametrize("kind", ["token", "prompt"])
def test_token_and_prompt_mean_do_not_see_how_a_trajectory_is_cut_into_rows(kind):
    whole = weights(kind, [6, 2, 4], [0, 0, 1])
    cut = weights(kind, [2, 4, 2, 1, 3], [0, 0, 0, 1, 1])
    assert whole.tolist() == pytest.approx(cut.tolist())


def test_an_unknown_reduction_is_refused_with_the_nearest_name():
    with pytest.raises(InputError, match="did you mean prompt"):
        weights("promt", [1], [0])
