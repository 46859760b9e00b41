"""The layout and the forward over it against transformers' own forward, values and gradients."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from journeyman.errors import InputError
from journeyman.train.backends.decoder import check_supported, token_logprobs
from journeyman.train.layout import layout_of


def stock_logprobs(model, rows):
    """Per trained token, from one unpadded stock forward per row."""
    values = []
    for row in rows:
        ids = torch.from_numpy(row.ids.astype(np.int64))
        logprobs = model(input_ids=ids[None]).logits[0, :-1].log_softmax(-1)
        values.append(logprobs.gather(1, ids[1:, None])[torch.from_numpy(row.mask[1:]).bool(), 0])
    return torch.cat(values)


def layout(rows, share):
    return layout_of([row.ids for row in rows], [row.mask for row in rows], share_prefixes=share)


def gradients(model, values):
    coefficients = torch.linspace(-1, 1, len(values))
    model.zero_grad()
    (values * coefficients).sum().backward()
    return {name: parameter.grad.clone() for name, parameter in model.named_parameters()}


@pytest.mark.parametrize("share", [False, True])
def test_logprobs_and_gradients_equal_the_stock_forward_on_ragged_rows(small_model, make_rows, share):
    rows = make_rows(0)
    ours, stock = token_logprobs(small_model, layout(rows, share)), stock_logprobs(small_model, rows)
    assert torch.allclose(ours, stock, atol=1e-5, rtol=0)
    ours_grad, stock_grad = gradients(small_model, ours), gradients(small_model, stock)
    for name, grad in stock_grad.items():
        assert torch.allclose(ours_grad[name], grad, atol=1e-5 * max(1.0, grad.abs().max().item()), rtol=1e-4), name


def test_a_llama_gives_the_stock_forward_too(make_rows):
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=61,
        hidden_size=48,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=3,
        num_key_value_heads=1,
        tie_word_embeddings=True,
    )
    model = LlamaForCausalLM(config)
    check_supported(model)
    rows = make_rows(1)
    with torch.no_grad():
        ours, stock = token_logprobs(model, layout(rows, True)), stock_logprobs(model, rows)
    assert torch.allclose(ours, stock, atol=1e-5, rtol=0)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=9), min_size=1, max_size=8), st.booleans())
def test_a_layout_gives_every_place_the_token_with_its_whole_prefix(rows, share):
    ids = [np.array(row) for row in rows]
    masks = [np.arange(len(row)) > 0 for row in rows]
    got = layout_of(ids, masks, share_prefixes=share)
    prefixes = {tuple(row[: t + 1]) for row in rows for t in range(len(row))}
    assert len(got.ids) == (len(prefixes) if share else sum(map(len, rows)))
    prefix_of = {}
    for block in got.blocks:  # what attention sees in a row, up to each unique token's own place
        for row in block:
            for t, unique in enumerate(row):
                if got.positions[unique] == t:
                    prefix_of.setdefault(int(unique), tuple(int(i) for i in got.ids[row[: t + 1]]))
    expected = [(tuple(row[:t]), row[t]) for row in rows for t in range(1, len(row))]
    found = [prefix_of[int(got.predictors[p])] for p in got.predictor_of]
    assert list(zip(found, got.targets.tolist(), strict=True)) == expected
    places = np.concatenate([block.ravel() for block in got.blocks])
    assert (places[got.own] == np.arange(len(got.ids))).all()


def test_shared_prefixes_are_computed_once():
    rows = [np.array([1, 2, 3, 4]), np.array([1, 2, 3, 5]), np.array([1, 2]), np.array([2, 2])]
    got = layout_of(rows, [np.zeros(len(r)) for r in rows], share_prefixes=True)
    assert len(got.ids) == 7
    assert got.num_tokens == 12


@pytest.mark.parametrize(
    ("ids", "mask", "words"),
    [([], [], "no|0"), ([1, 2], [0], "mask values"), ([1, 2], [1, 0], "before the first token")],
)
def test_rows_that_cannot_be_trained_on_are_refused(ids, mask, words):
    with pytest.raises(InputError, match=words):
        layout_of([np.array(ids)], [np.array(mask)], share_prefixes=False)


def test_a_model_that_would_be_computed_wrongly_is_refused(small_model):
    small_model.config.attention_bias = True
    with pytest.raises(InputError, match="attention_bias"):
        check_supported(small_model)
    small_model.config.attention_bias = False
    with pytest.raises(InputError, match="dtype"):
        check_supported(small_model.bfloat16())
