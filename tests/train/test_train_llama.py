"""A pretrained model is Llama-shaped: it loads, saves, trains and is served as the small policy is."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from journeyman.engines.embedded import EmbeddedEngine
from journeyman.errors import InputError
from journeyman.train.backends.torch import TorchTrainer
from journeyman.train.model import ModelShape, llama_model, load_model, rate_scale, save_model, shape_of
from journeyman.train.optimizer import OptimizerSpec, PolicyOptimizer
from journeyman.train.protocol import TrainRow

SHAPE = ModelShape(
    vocab_size=67, hidden=24, layers=2, heads=3, kv_heads=1, head_dim=8, ffn=40, positions=64, model_type="llama"
)


def llama_weights(seed=3):
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(seed)
    model = LlamaForCausalLM(LlamaConfig(**SHAPE.config_fields(), tie_word_embeddings=True, initializer_range=0.3))
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def random_llama():
    return llama_model(SHAPE, llama_weights(), rope_theta=1e5, eps=1e-5)


def test_a_llama_survives_disk_to_the_bit_with_its_own_rope_and_norms_and_loads_through_transformers(tmp_path):
    from transformers import AutoModelForCausalLM

    model = random_llama()
    save_model(model, tmp_path)
    ids = torch.arange(30)[None] % 67
    loaded, stock = load_model(tmp_path, SHAPE), AutoModelForCausalLM.from_pretrained(tmp_path)
    assert shape_of(loaded) == SHAPE
    assert type(stock).__name__ == "LlamaForCausalLM"
    assert loaded.config.rope_parameters["rope_theta"] == 1e5
    assert loaded.config.rms_norm_eps == 1e-5
    with torch.no_grad():
        expected = model(input_ids=ids).logits
        assert torch.equal(loaded(input_ids=ids).logits, expected)
        assert torch.equal(stock(input_ids=ids).logits, expected)


def test_engine_and_trainer_agree_on_a_llama(tmp_path):
    save_model(random_llama(), tmp_path)
    ids = np.random.default_rng(0).integers(0, 67, 40).astype(np.int32)
    mask = np.array([0, *[1] * 39], np.uint8)
    row = TrainRow(ids, mask, np.zeros(40, np.float32), 0.0, 0)
    (trained,) = TorchTrainer(load_model(tmp_path)).forward_logprobs([row])
    (served,) = EmbeddedEngine.from_directory(tmp_path, rows=1, max_len=64).forward_logprobs([ids.tolist()])
    assert np.abs(trained - served).max() < 1e-5


def test_a_checkpoint_of_the_other_model_type_is_refused_by_name(tmp_path, small_model):
    save_model(small_model, tmp_path)
    with pytest.raises(InputError, match=r"config\.json:model_type: found 'qwen3'"):
        load_model(tmp_path, SHAPE)


def test_a_pretrained_model_takes_one_rate_everywhere_and_the_small_policy_its_groups(small_model):
    rates = {
        name: sorted({group["lr"] for group in PolicyOptimizer(model, OptimizerSpec(lr=1e-3))._adam.param_groups})
        for name, model in (("llama", random_llama()), ("small", small_model))
    }
    assert rates["llama"] == [1e-3]
    scale = rate_scale(small_model)
    assert rates["small"] == pytest.approx([1e-3 / scale, 1e-3, 1e-3 * scale])


def test_new_rows_of_the_embedding_move_sqrt_hidden_times_as_far_and_nothing_else_does():
    moved = {}
    for rows in (0, 3):
        model = random_llama()
        before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
        optimizer = PolicyOptimizer(model, OptimizerSpec(lr=1e-3, new_rows=rows))
        model(input_ids=torch.arange(30)[None], labels=torch.arange(30)[None]).loss.backward()
        optimizer.step()
        moved[rows] = {name: parameter.detach() - before[name] for name, parameter in model.named_parameters()}
    name = "model.embed_tokens.weight"
    plain, boosted = moved[0].pop(name), moved[3].pop(name)
    assert torch.equal(boosted[:-3], plain[:-3])
    assert plain[-3:].abs().min() > 0
    torch.testing.assert_close(boosted[-3:], plain[-3:] * 24**0.5, rtol=1e-3, atol=1e-6)
    assert all(torch.equal(moved[3][other], plain_move) for other, plain_move in moved[0].items())
