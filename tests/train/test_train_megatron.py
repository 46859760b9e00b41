"""megatron-core on CPU processes: any layout takes the steps that one process takes.

Needs megatron-core, which is no dependency: `make test-megatron` makes an environment that has it.
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from backend_cases import pushed, step_rows, worst_gap, write_model

from journeyman.errors import InputError
from journeyman.train.backends.group.megatron.names import Shape, cut, joined
from journeyman.train.backends.spec import BackendSpec, LayoutSpec
from journeyman.train.backends.table import make_trainer
from journeyman.train.optimizer import OptimizerSpec
from journeyman.train.update import update_policy

PYTHON = os.environ.get("MEGATRON_PYTHON")
PRESENT = PYTHON or importlib.util.find_spec("megatron")
needs_megatron = pytest.mark.skipif(not PRESENT, reason="megatron-core is not installed: make test-megatron")
RATE = OptimizerSpec(lr=1e-4)


@pytest.fixture(scope="module")
def dense(tmp_path_factory):
    return write_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def mixture(tmp_path_factory):
    config = transformers.Qwen3MoeConfig(
        vocab_size=61, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=16,
        intermediate_size=48, moe_intermediate_size=24, num_experts=4, num_experts_per_tok=2, norm_topk_prob=True,
        max_position_embeddings=128,
    )  # fmt: skip
    torch.manual_seed(3)
    model = transformers.Qwen3MoeForCausalLM(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    path = tmp_path_factory.mktemp("mixture")
    model.save_pretrained(path)
    return path


def opened(directory, **layout):
    python = Path(PYTHON).absolute() if PYTHON else None
    spec = BackendSpec(
        name="megatron",
        layout=LayoutSpec(**layout),
        tokens_per_micro_batch=80,
        deadline_s=240.0,
        python=python,
    )
    return make_trainer(spec, directory, RATE)


def steps(trainer, root):
    figures = []
    for step in range(2):
        metrics = update_policy(trainer, step_rows(40 + step))
        figures.append((metrics.loss, metrics.grad_norm, metrics.entropy))
        if step == 0:
            saved = trainer.save_state(root, {"step": step})
    return np.array(figures), saved, pushed(trainer)


def expected(directory):
    """The same steps in this process; one rate for all tensors, as megatron-core has it."""
    model = make_trainer(BackendSpec(stock_forward=True), directory, RATE)
    return np.array([_figures(update_policy(model, step_rows(40 + step))) for step in range(2)]), pushed(model)


def _figures(metrics):
    return metrics.loss, metrics.grad_norm, metrics.entropy


@pytest.mark.slow
@needs_megatron
def test_tensor_parallel_one_and_two_take_the_same_steps_and_resume_each_other(dense, tmp_path):
    found = {}
    for tp in (1, 2):
        with opened(dense, ranks=tp, tp=tp) as trainer:
            found[tp] = steps(trainer, tmp_path / str(tp))
            if tp == 2:
                assert trainer.load_state(found[1][1]) == {"step": 0}
                again = update_policy(trainer, step_rows(41))
                assert again.grad_norm == pytest.approx(found[1][0][1][1], rel=1e-4)
                assert worst_gap(pushed(trainer), found[1][2]) < 1e-5
    assert np.abs(found[1][0] - found[2][0]).max() < 1e-4
    assert worst_gap(found[1][2], found[2][2]) < 1e-5
    figures, _ = expected(dense)
    assert found[1][0][0] == pytest.approx(figures[0], rel=1e-3, abs=1e-5)  # before the rates can differ


@pytest.mark.slow
@needs_megatron
@pytest.mark.parametrize("layout", [{"ranks": 2}, {"ranks": 1, "offload": True}], ids=str)
def test_data_parallel_and_offloaded_layouts_take_the_steps_of_one_rank(dense, tmp_path, layout):
    with opened(dense, ranks=1) as alone, opened(dense, **layout) as trainer:
        wanted, _, weights = steps(alone, tmp_path / "a")
        got, _, others = steps(trainer, tmp_path / "b")
    assert np.abs(wanted - got).max() < 1e-4
    assert worst_gap(weights, others) < 1e-5


@pytest.mark.slow
@needs_megatron
@pytest.mark.parametrize(
    "layout", [{"ranks": 2, "pp": 2}, {"ranks": 2, "cp": 2}, {"ranks": 4, "pp": 2, "cp": 2}], ids=str
)
def test_cut_layers_and_cut_sequences_take_the_steps_of_one_rank(dense, tmp_path, layout):
    with opened(dense, ranks=1) as alone, opened(dense, **layout) as trainer:
        before = [trainer.forward_logprobs(step_rows(39)), alone.forward_logprobs(step_rows(39))]
        wanted, _, weights = steps(alone, tmp_path / "a")
        got, saved, others = steps(trainer, tmp_path / "b")
        assert trainer.load_state(saved) == {"step": 0}
        again = update_policy(trainer, step_rows(41))
    assert max(np.abs(a - b).max() for a, b in zip(*before, strict=True)) < 1e-5
    assert np.abs(wanted - got).max() < 1e-4
    assert worst_gap(weights, others) < 1e-5
    assert again.grad_norm == pytest.approx(got[1][1], rel=1e-4), "and resume where they stood"


@pytest.mark.slow
@needs_megatron
@pytest.mark.parametrize("layout", [{"ranks": 1}, {"ranks": 2, "ep": 2}], ids=str)
def test_a_mixture_takes_the_steps_it_takes_here(mixture, tmp_path, layout):
    with opened(mixture, **layout) as trainer:
        got, _, weights = steps(trainer, tmp_path)
    wanted, others = expected(mixture)
    assert got == pytest.approx(wanted, rel=1e-3, abs=1e-4)
    assert worst_gap(weights, others) < 1e-4


@pytest.mark.slow
@needs_megatron
def test_a_layout_the_model_cannot_be_cut_into_is_refused(dense):
    with pytest.raises(InputError, match="key-value heads"):
        opened(dense, ranks=4, tp=4)


SHAPE = {
    "model_type": "qwen3_moe", "num_hidden_layers": 2, "hidden_size": 8, "num_attention_heads": 4, "head_dim": 4,
    "num_key_value_heads": 2, "moe_intermediate_size": 6, "vocab_size": 11, "num_experts": 2, "num_experts_per_tok": 1,
    "rms_norm_eps": 1e-6, "rope_parameters": {"rope_theta": 1e4},
}  # fmt: skip


@pytest.mark.parametrize("tp", [1, 2])
def test_what_is_cut_for_the_ranks_joins_to_what_it_was(tp):
    shape = Shape.of(SHAPE, "config.json")
    sizes = {
        "self_attn.q_proj": (16, 8), "self_attn.k_proj": (8, 8), "self_attn.v_proj": (8, 8),
        "self_attn.o_proj": (8, 16),
        "self_attn.q_norm": (4,), "self_attn.k_norm": (4,), "input_layernorm": (8,), "mlp.gate": (2, 8),
        "mlp.experts.1.gate_proj": (6, 8), "mlp.experts.1.up_proj": (6, 8), "mlp.experts.1.down_proj": (8, 6),
    }  # fmt: skip
    state = {f"model.layers.1.{name}.weight": torch.randn(size) for name, size in sizes.items()}
    state |= {"model.embed_tokens.weight": torch.randn(11, 8), "lm_head.weight": torch.randn(11, 8)}
    names = [
        "self_attention.linear_qkv", "self_attention.linear_proj", "self_attention.q_layernorm", "input_layernorm",
        "self_attention.k_layernorm", "mlp.router", "mlp.experts.local_experts.1.linear_fc1",
        "mlp.experts.local_experts.1.linear_fc2",
    ]  # fmt: skip
    names = [f"decoder.layers.1.{name}.weight" for name in names]
    names += ["embedding.word_embeddings.weight", "output_layer.weight"]
    back = {}
    for name in names:
        back |= joined(name, [cut(name, state.__getitem__, shape, rank, tp) for rank in range(tp)], shape)
    assert back.keys() == state.keys()
    assert all(torch.equal(back[name], tensor) for name, tensor in state.items())


def test_a_family_that_is_not_converted_is_named():
    with pytest.raises(InputError, match="gpt_oss"):
        Shape.of({"model_type": "gpt_oss"}, "config.json")
