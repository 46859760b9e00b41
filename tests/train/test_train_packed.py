"""Rows packed into one micro-batch: none sees another, nothing is padded to the longest, logits never exist whole."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from journeyman.train.backends.decoder import token_logprobs
from journeyman.train.backends.head import LOGITS_AT_ONCE
from journeyman.train.backends.torch import TorchTrainer
from journeyman.train.layout import layout_of
from journeyman.train.model import ModelShape, build_model
from journeyman.train.protocol import TrainRow
from journeyman.train.update import UpdateSpec, row_weights


class LargestTensor(TorchDispatchMode):
    """Remembers the most numbers any tensor made by an operation holds."""

    def __init__(self):
        super().__init__()
        self.numbers = 0

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        result = operation(*args, **(kwargs or {}))
        for out in result if isinstance(result, list | tuple) else [result]:
            if isinstance(out, torch.Tensor):
                self.numbers = max(self.numbers, out.untyped_storage().nbytes() // out.element_size())
        return result


def rows_of(lengths, vocab=61, seed=0):
    rng = np.random.default_rng(seed)
    ids = [rng.integers(0, vocab, n).astype(np.int32) for n in lengths]
    masks = [(np.arange(n) > 0).astype(np.uint8) for n in lengths]
    return [
        TrainRow(i, m, np.zeros(len(i), np.float32), 1.0, k) for k, (i, m) in enumerate(zip(ids, masks, strict=True))
    ]


def packed_logprobs(model, rows):
    layout = layout_of([row.ids for row in rows], [row.mask for row in rows], share_prefixes=True)
    ends = np.cumsum([int(row.mask.sum()) for row in rows])
    return token_logprobs(model, layout).tensor_split(ends[:-1].tolist())


def test_packed_rows_do_not_see_each_other(small_model):
    rows = rows_of([9, 30, 17, 64, 5])
    together = packed_logprobs(small_model, rows)
    for row, values in zip(rows, together, strict=True):
        assert torch.allclose(values, packed_logprobs(small_model, [row])[0], atol=1e-5, rtol=0)
    other = replace(rows[3], ids=(rows[3].ids + 1) % 61)
    changed = packed_logprobs(small_model, [*rows[:3], other, rows[4]])
    for i in (0, 1, 2, 4):
        assert torch.allclose(changed[i], together[i], atol=1e-6, rtol=0)
    assert not torch.allclose(changed[3], together[3], atol=1e-2)


def test_no_gradient_flows_from_one_packed_row_into_another(small_model):
    rows = rows_of([12, 12])
    rows = [replace(rows[0], ids=rows[0].ids % 30), replace(rows[1], ids=30 + rows[1].ids % 30)]
    small_model.lm_head.weight = torch.nn.Parameter(small_model.lm_head.weight.detach().clone())  # untie: inputs alone
    packed_logprobs(small_model, rows)[0].sum().backward()
    gradient = small_model.model.embed_tokens.weight.grad
    assert gradient[:30].abs().sum() > 0
    assert torch.count_nonzero(gradient[30:]) == 0


def test_attention_costs_what_the_rows_cost_and_not_what_their_sum_would(small_model):
    rows = rows_of([40] * 24)
    with LargestTensor() as seen:
        sum(v.sum() for v in packed_logprobs(small_model, rows)).backward()
    total = sum(len(row.ids) for row in rows)
    assert seen.numbers < total**2 / 4


def test_short_rows_are_not_padded_to_the_longest():
    rows = rows_of([128] + [8] * 40)
    layout = layout_of([row.ids for row in rows], [row.mask for row in rows], share_prefixes=True)
    assert len(layout.ids) <= sum(len(row.ids) for row in rows)
    assert sum(block.size for block in layout.blocks) <= 1.18 * sum(len(row.ids) for row in rows)


def test_a_training_step_never_holds_the_logits_of_its_micro_batch():
    vocab = 32_768
    model = build_model(ModelShape(vocab, hidden=16, layers=1, heads=2, kv_heads=1, head_dim=8, ffn=16), seed=0)
    rows = rows_of([90] * 7, vocab)
    trained = sum(int(row.mask.sum()) for row in rows)
    assert trained * vocab > LOGITS_AT_ONCE  # they would be larger than the bound
    spec = UpdateSpec()
    trainer = TorchTrainer(model)
    with LargestTensor() as seen:
        metrics = trainer.forward_backward(rows, row_weights(rows, spec), spec.loss)
    assert metrics.tokens == trained
    assert seen.numbers <= LOGITS_AT_ONCE
