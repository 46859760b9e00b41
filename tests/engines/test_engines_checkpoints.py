"""Checkpoints of every supported kind, LoRA adapters, pushes from a directory: against transformers and peft."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from journeyman.engines import EngineError, Sampling, TurnRequest
from journeyman.engines.embedded import EmbeddedEngine
from journeyman.errors import InputError

pytestmark = pytest.mark.thorough

VOCAB = 96
Reference = Callable[..., Any]
PROBE = [5, 9, 41, 17, 30, 77, 8, 12]
SIZES: dict[str, Any] = {
    "vocab_size": VOCAB,
    "hidden_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 80,
    "max_position_embeddings": 512,
    "initializer_range": 0.2,
}
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 10_000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}


def _qwen3_with_biases() -> Any:
    from transformers import Qwen3Config, Qwen3ForCausalLM

    return Qwen3ForCausalLM(Qwen3Config(**SIZES, head_dim=16, attention_bias=True, tie_word_embeddings=True))


def _qwen2() -> Any:
    from transformers import Qwen2Config, Qwen2ForCausalLM

    return Qwen2ForCausalLM(Qwen2Config(**SIZES, tie_word_embeddings=False))


def _llama_with_biases() -> Any:
    from transformers import LlamaConfig, LlamaForCausalLM

    return LlamaForCausalLM(LlamaConfig(**SIZES, attention_bias=True))


def _llama3_rope() -> Any:
    from transformers import LlamaConfig, LlamaForCausalLM

    return LlamaForCausalLM(LlamaConfig(**SIZES, rope_parameters=LLAMA3))


def _linear_rope() -> Any:
    from transformers import LlamaConfig, LlamaForCausalLM

    rope = {"rope_type": "linear", "rope_theta": 10_000.0, "factor": 4.0}
    return LlamaForCausalLM(LlamaConfig(**SIZES, rope_parameters=rope))


KINDS = [_qwen3_with_biases, _qwen2, _llama_with_biases, _llama3_rope, _linear_rope]


@pytest.mark.parametrize("build", KINDS, ids=lambda build: build.__name__[1:])
def test_every_kind_of_checkpoint_is_decoded_as_transformers_does(
    build: Callable[[], Any], reference: Reference, tmp_path: Path
) -> None:
    torch.manual_seed(0)
    model = build().eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("bias"):
                parameter.normal_(0, 0.3)
    model.save_pretrained(tmp_path, max_shard_size="40KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 1
    engine = EmbeddedEngine.from_directory(tmp_path, rows=4, max_len=256)
    prompt = np.random.default_rng(0).integers(3, VOCAB, 150).tolist()
    (result,) = engine.generate([TurnRequest("a", prompt, 1, Sampling(40, 1.0, frozenset()))])
    table = reference(model, prompt + result.ids)
    expected = [table[len(prompt) + n - 1, token] for n, token in enumerate(result.ids)]
    assert result.logprobs == pytest.approx(expected, abs=1e-4)


def test_a_shard_that_the_index_names_and_that_is_missing_is_an_input_error(model: Any, tmp_path: Path) -> None:
    model.save_pretrained(tmp_path, max_shard_size="40KB")
    sorted(tmp_path.glob("*.safetensors"))[1].unlink()
    with pytest.raises(InputError, match="00002"):
        EmbeddedEngine.from_directory(tmp_path)


def test_an_unknown_architecture_names_the_nearest_one(model: Any) -> None:
    with pytest.raises(InputError, match="nearest architecture decoded here is qwen3"):
        EmbeddedEngine({**model.config.to_dict(), "model_type": "qwen3_5"}, model.state_dict())


def test_weights_are_pushed_from_a_directory(model: Any, reference: Reference, tmp_path: Path) -> None:
    from copy import deepcopy

    moved = deepcopy(model)
    with torch.no_grad():
        moved.model.embed_tokens.weight.mul_(1.1)
    moved.save_pretrained(tmp_path)
    engine = EmbeddedEngine(model.config.to_dict(), model.state_dict(), rows=2, max_len=64)
    engine.update_weights(tmp_path, 1)
    table = reference(moved, PROBE)
    expected = [table[n, token] for n, token in enumerate(PROBE[1:])]
    assert engine.forward_logprobs([PROBE])[0][1:] == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("fault", ["truncated", "empty", "extra tensor", "deadline"])
def test_a_failed_push_keeps_the_old_version_serving_turns_under_way(model: Any, tmp_path: Path, fault: str) -> None:
    from safetensors.torch import save_file

    engine = EmbeddedEngine(model.config.to_dict(), model.state_dict(), rows=2, max_len=64)
    request = TurnRequest("a", [5, 9], 3, Sampling(12, 1.0, frozenset()))
    (expected,) = engine.generate([request])
    engine.release("a")
    engine.submit(request)
    engine.step()
    path = tmp_path / "model.safetensors"
    state = {name: tensor.clone() * 1.1 for name, tensor in model.state_dict().items() if name != "lm_head.weight"}
    if fault == "extra tensor":
        state["model.layers.9.mlp.down_proj.weight"] = torch.zeros(3)
    if fault != "empty":
        save_file(state, path)
    if fault == "truncated":
        path.write_bytes(path.read_bytes()[:-1000])
    from journeyman.errors import SystemFault

    with pytest.raises(SystemFault):
        engine.update_weights(tmp_path, 1, deadline_s=1e-9 if fault == "deadline" else 60.0)
    ended = []
    while not ended:
        ended = engine.step()
    assert engine.version == 0
    assert ended[0].ids == expected.ids
    assert ended[0].spans == expected.spans


def test_a_lower_version_cannot_be_pushed_under_a_turn_that_has_begun(model: Any) -> None:
    engine = EmbeddedEngine(model.config.to_dict(), model.state_dict(), rows=2, max_len=64, version=4)
    engine.submit(TurnRequest("a", [5, 9], 3, Sampling(12, 1.0, frozenset())))
    engine.step()
    with pytest.raises(EngineError, match="version 3 under turns that version 4"):
        engine.update_weights(model.state_dict(), 3)
    engine.release("a")
    engine.update_weights(model.state_dict(), 3)
    assert engine.version == 3


def lora(model: Any, path: Path, *, seed: int, **options: Any) -> Any:
    """An adapter on every linear layer, saved by peft; the merged model."""
    from copy import deepcopy

    from peft import LoraConfig, get_peft_model

    torch.manual_seed(seed)
    fixed: dict[str, Any] = {"r": 4, "lora_alpha": 12, "target_modules": "all-linear", "init_lora_weights": False}
    config = LoraConfig(**{**fixed, **options})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # peft uses what the newest transformers calls deprecated
        adapted = get_peft_model(deepcopy(model), config)
        adapted.save_pretrained(path)
        return adapted.merge_and_unload().eval()


@pytest.mark.parametrize("kind", ["all", "rslora", "some"])
def test_an_adapter_is_served_as_peft_merges_it_and_swapped_exactly(
    any_model: Any, reference: Reference, tmp_path: Path, kind: str
) -> None:
    some = {"layers_to_transform": [1], "target_modules": ["q_proj", "down_proj"], "alpha_pattern": {"q_proj": 40}}
    options: dict[str, Any] = {"all": {}, "rslora": {"use_rslora": True}, "some": some}[kind]
    first, second = lora(any_model, tmp_path / "1", seed=1, **options), lora(any_model, tmp_path / "2", seed=2)
    engine = EmbeddedEngine(any_model.config.to_dict(), any_model.state_dict(), rows=2, max_len=64)
    (plain,) = engine.forward_logprobs([PROBE])

    def gap(merged: Any) -> float:
        table = reference(merged, PROBE)
        expected = np.array([table[n, token] for n, token in enumerate(PROBE[1:])])
        return float(np.abs(engine.forward_logprobs([PROBE])[0][1:] - expected).max())

    for version, (folder, merged, other) in enumerate([("1", first, second), ("2", second, first)], 1):
        engine.load_adapter(tmp_path / folder, version)
        assert engine.version == version
        assert gap(merged) < 1e-4
        assert gap(other) > 1e-2
    engine.load_adapter(None, 3)
    assert (engine.forward_logprobs([PROBE])[0] == plain).all()


def test_an_adapter_is_swapped_under_a_turn(model: Any, reference: Reference, tmp_path: Path) -> None:
    merged = lora(model, tmp_path, seed=3)
    engine = EmbeddedEngine(model.config.to_dict(), model.state_dict(), rows=2, max_len=64)
    engine.submit(TurnRequest("a", PROBE, 3, Sampling(20, 1.0, frozenset())))
    for _ in range(7):
        engine.step()
    engine.load_adapter(tmp_path, 1, kv="recompute")
    ended: list[Any] = []
    while not ended:
        ended = engine.step()
    (result,) = ended
    assert [span.version for span in result.spans] == [0, 1]
    for span, source in zip(result.spans, (model, merged), strict=True):
        table = reference(source, PROBE + result.ids)
        expected = [table[len(PROBE) + n - 1, result.ids[n]] for n in range(span.start, span.end)]
        assert result.logprobs[span.start : span.end] == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("fault", ["no file", "dora", "other model"])
def test_an_adapter_that_does_not_fit_leaves_the_old_weights(model: Any, tmp_path: Path, fault: str) -> None:
    engine = EmbeddedEngine(model.config.to_dict(), model.state_dict(), rows=2, max_len=64)
    before = engine.forward_logprobs([PROBE])[0]
    if fault != "no file":
        lora(_qwen2() if fault == "other model" else model, tmp_path, seed=1)
    if fault == "dora":
        config = json.loads((tmp_path / "adapter_config.json").read_text())
        (tmp_path / "adapter_config.json").write_text(json.dumps({**config, "use_dora": True}))
    with pytest.raises(EngineError):
        engine.load_adapter(tmp_path, 1)
    assert engine.version == 0
    assert (engine.forward_logprobs([PROBE])[0] == before).all()


def test_a_memory_bound_in_bytes_sets_the_rows_and_one_too_small_is_refused(model: Any) -> None:
    config, state = model.config.to_dict(), model.state_dict()
    row = 3 * 2 * 2 * 16 * 64 * 4
    engine = EmbeddedEngine(config, state, rows=99, max_len=64, kv_bytes=5 * row + 7)
    assert engine.usage().capacity == 5 * 64
    with pytest.raises(InputError, match="kv_bytes"):
        EmbeddedEngine(config, state, max_len=64, kv_bytes=row - 1)
    with pytest.raises(InputError, match="kv_tokens"):
        EmbeddedEngine(config, state, max_len=64, kv_tokens=63)
