"""Rows end to end in a stock model: the padded forward's values and gradients, fewer tokens, nothing across rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
import transformers

from journeyman.train.backends.rows import packs
from journeyman.train.backends.stock import StockPolicy, end_to_end, padded

SIZES = {
    "vocab_size": 61, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "intermediate_size": 48, "max_position_embeddings": 128, "initializer_range": 0.2,
}  # fmt: skip
MIXTURE = {"moe_intermediate_size": 24, "num_experts": 4, "num_experts_per_tok": 2, "head_dim": 16}
CONFIGS = {
    "qwen3": lambda: transformers.Qwen3Config(**SIZES, head_dim=16),
    "llama": lambda: transformers.LlamaConfig(**SIZES),
    "qwen3_moe": lambda: transformers.Qwen3MoeConfig(**SIZES, **MIXTURE),
}


def model_of(kind, seed=1):
    torch.manual_seed(seed)
    model = transformers.AutoModelForCausalLM.from_config(CONFIGS[kind]()).eval()
    return model if kind == "qwen3_moe" else model.double()  # a mixture's grouped products know no float64


def logprobs(policy, batch):
    return policy(batch.ids, batch.at, batch.targets, batch.experts, batch.positions, batch.lengths)


@pytest.mark.parametrize("kind", sorted(CONFIGS))
def test_rows_end_to_end_give_the_padded_forwards_logprobs_and_gradients(kind, make_rows):
    rows, tolerance = make_rows(21), 1e-4 if kind == "qwen3_moe" else 1e-10
    found = {}
    for pack in (False, True):
        policy = StockPolicy(model_of(kind), pack=pack, checkpoint_layers=pack)
        assert policy.packs is pack
        values = logprobs(policy, policy.laid(rows))
        (values * torch.linspace(-1, 1, len(values))).sum().backward()
        found[pack] = values.detach(), {n: p.grad for n, p in policy.named_parameters()}
    assert torch.allclose(found[True][0], found[False][0], atol=tolerance)
    for name, gradient in found[False][1].items():
        assert torch.allclose(found[True][1][name], gradient, atol=tolerance), name


def test_nothing_is_padded_and_no_row_sees_another(make_rows):
    rows = make_rows(22)
    policy = StockPolicy(model_of("qwen3"), pack=True)
    batch = policy.laid(rows)
    assert batch.ids.shape == (1, sum(len(row.ids) for row in rows))
    assert batch.ids.numel() < padded(rows).ids.numel()
    alone = torch.cat([logprobs(policy, policy.laid([row])) for row in rows])
    changed = [replace(rows[0], ids=(rows[0].ids + 1) % 61), *rows[1:]]
    with torch.no_grad():
        together, other = logprobs(policy, batch), logprobs(policy, end_to_end(changed))
    first = int(np.count_nonzero(rows[0].mask))
    assert torch.allclose(together, alone, atol=1e-10)
    assert torch.allclose(together[first:], other[first:], atol=1e-12) and not torch.allclose(
        together[:first], other[:first]
    )


def test_a_model_whose_layers_mix_tokens_otherwise_is_padded(make_rows):
    torch.manual_seed(1)
    config = transformers.Qwen2Config(**SIZES, use_sliding_window=True, sliding_window=8, max_window_layers=0)
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    assert not packs(model)
    policy = StockPolicy(model, pack=True)
    assert not policy.packs and policy.laid(make_rows(23)).lengths is None
