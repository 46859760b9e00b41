"""The initialisation, the files transformers can read, and the checkpoints that are refused."""

from __future__ import annotations

import json
import math

import pytest
import torch

from journeyman.errors import InputError
from journeyman.train.model import ModelShape, build_model, check_shape, load_model, save_model


def test_the_default_shape_has_the_parameters_of_the_recipe_and_its_initialisation():
    model = build_model(ModelShape(vocab_size=626), seed=0)
    sizes = dict(model.named_parameters())
    assert sum(p.numel() for p in sizes.values()) == 523_584
    assert sum(p.ndim == 2 and "layers" in n for n, p in sizes.items()) == 21
    assert model.config.rope_parameters["rope_theta"] == 1e4
    expected = {
        "model.embed_tokens.weight": 0.02 * math.sqrt(128),
        "model.layers.0.self_attn.q_proj.weight": 0.8 / math.sqrt(128),
        "model.layers.2.mlp.up_proj.weight": 0.8 / math.sqrt(128),
        "model.layers.1.self_attn.o_proj.weight": 0.04 / math.sqrt(6),
        "model.layers.1.mlp.down_proj.weight": 0.04 / math.sqrt(6),
    }
    for name, std in expected.items():
        assert sizes[name].std().item() == pytest.approx(std, rel=0.03)
    assert torch.equal(sizes["model.norm.weight"], torch.full((128,), 1 / math.sqrt(128)))
    assert torch.equal(sizes["model.layers.0.input_layernorm.weight"], torch.ones(128))
    assert model.lm_head.weight is model.model.embed_tokens.weight


def test_equal_seeds_give_equal_weights_and_others_do_not(small_shape):
    first, again, other = (build_model(small_shape, seed).model.embed_tokens.weight for seed in (3, 3, 4))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert first[0, 0].item() == 0.2143644243478775  # pinned: another stream would change every run


def test_a_saved_model_loads_through_transformers_and_through_us_to_the_bit(small_model, small_shape, tmp_path):
    from transformers import AutoModelForCausalLM

    save_model(small_model, tmp_path)
    ids = torch.arange(30)[None] % 61
    with torch.no_grad():
        expected = small_model(input_ids=ids).logits
        stock = AutoModelForCausalLM.from_pretrained(tmp_path)
        assert type(stock).__name__ == "Qwen3ForCausalLM"
        assert torch.equal(stock(input_ids=ids).logits, expected)
        assert torch.equal(load_model(tmp_path, small_shape)(input_ids=ids).logits, expected)


def test_a_checkpoint_of_another_shape_is_refused_with_file_field_value_and_expectation(
    small_model, small_shape, tmp_path
):
    save_model(small_model, tmp_path)
    with pytest.raises(InputError) as caught:
        load_model(tmp_path, ModelShape(vocab_size=61))
    assert all(word in str(caught.value) for word in ("config.json:hidden_size", "found 32", "128", "heads=4"))
    check_shape(tmp_path, small_shape)


def test_weights_that_contradict_their_config_are_refused(small_model, tmp_path):
    save_model(small_model, tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "intermediate_size": 64}))
    with pytest.raises(InputError, match=r"model\.safetensors:model\.layers\.0\.mlp.*\(48, 32\).*\(64, 32\)"):
        load_model(tmp_path)


def test_a_missing_cut_or_foreign_checkpoint_is_refused_by_name(small_model, tmp_path):
    with pytest.raises(InputError, match=r"config\.json: cannot be read"):
        load_model(tmp_path)
    save_model(small_model, tmp_path)
    weights = (tmp_path / "model.safetensors").read_bytes()
    (tmp_path / "model.safetensors").write_bytes(weights[: len(weights) // 2])
    with pytest.raises(InputError, match=r"model\.safetensors: is not a whole"):
        load_model(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "gpt2"}')
    with pytest.raises(InputError, match=r"model_type.*gpt2"):
        load_model(tmp_path)
