"""Building this rank's part of a model with megatron-core, and filling it from a Hugging Face directory."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from journeyman.engines.embedded.checkpoint import read_directory
from journeyman.errors import InputError
from journeyman.train.backends.group.megatron.names import Shape, cut, globally
from journeyman.train.backends.group.megatron.on_cpu import adapt, gathered_attention
from journeyman.train.backends.spec import BackendSpec

SEED = 1234
"""Of megatron's random states; nothing random is left after the weights are filled in."""


def prepare(spec: BackendSpec) -> None:
    """Join the parallel groups; on CPU, with the changes that megatron-core needs there (``on_cpu``)."""
    from megatron.core import parallel_state
    from megatron.core.tensor_parallel import random
    from megatron.core.transformer.moe import moe_utils

    if not hasattr(moe_utils, "te_general_gemm"):
        moe_utils.te_general_gemm = None
    if spec.device == "cpu":
        adapt()
    layout = spec.layout
    parallel_state.initialize_model_parallel(
        tensor_model_parallel_size=layout.tp,
        pipeline_model_parallel_size=layout.pp,
        context_parallel_size=layout.cp,
        expert_model_parallel_size=layout.ep,
        expert_tensor_parallel_size=1,
    )
    with contextlib.suppress(RuntimeError, AssertionError) if spec.device == "cpu" else contextlib.nullcontext():
        random.model_parallel_cuda_manual_seed(SEED)


def check_layout(spec: BackendSpec, shape: Shape) -> None:
    """Refuse a layout that the model cannot be cut into. Raises InputError."""
    layout = spec.layout
    rules = [
        ("tp", layout.tp, shape.kv_heads, "key-value heads"),
        ("tp", layout.tp, shape.ffn, "rows of a feed-forward matrix"),
        ("pp", layout.pp, shape.layers, "layers"),
        ("ep", layout.ep, shape.experts or 1, "experts"),
    ]
    for field, parts, whole, what in rules:
        if whole % parts:
            problem = f"{parts} does not divide the model's {whole} {what}"
            raise InputError(f"backend.layout.{field}", problem, allowed=f"a divisor of {whole}")
    if spec.device == "cpu" and shape.experts and layout.pp > 1:
        problem = f"{layout.pp} for a mixture on CPU: the dispatcher that runs there takes rows of one length only"
        raise InputError("backend.layout.pp", problem, allowed="1, or device = cuda")


def build(spec: BackendSpec, shape: Shape, positions: int) -> Any:
    """This rank's part, empty."""
    from megatron.core import parallel_state
    from megatron.core.models.gpt.gpt_model import GPTModel

    model = GPTModel(
        config=_config(spec, shape),
        transformer_layer_spec=_layer_spec(spec, shape),
        vocab_size=shape.padded_vocab(spec.layout.tp),
        max_sequence_length=positions,
        pre_process=parallel_state.is_pipeline_first_stage(),
        post_process=parallel_state.is_pipeline_last_stage(),
        share_embeddings_and_output_weights=shape.tied,
        position_embedding_type="rope",
        rotary_base=int(shape.rope_theta),
    )
    return model.to(spec.device)


def fill(model: Any, directory: Path, shape: Shape, spec: BackendSpec) -> None:
    """Copy this rank's parts out of a directory. Raises InputError for a tensor that is missing or of another shape."""
    _, state = read_directory(directory)
    fill_from(named_parts(model, shape, spec), state, str(directory), shape, spec)


def fill_from(parts: dict[str, Any], state: dict[str, Tensor], where: str, shape: Shape, spec: BackendSpec) -> None:
    """Copy into tensors, by their global names, out of a whole state under the checkpoint's names."""
    from megatron.core import parallel_state

    rank = parallel_state.get_tensor_model_parallel_rank()

    def fetch(name: str) -> Tensor:
        if name not in state:
            raise InputError(f"{where}:{name}", "tensor missing")
        return state[name]

    with torch.no_grad():
        for name, tensor in parts.items():
            piece = cut(name, fetch, shape, rank, spec.layout.tp)
            if piece.shape != tensor.shape:
                raise InputError(f"{where}:{name}", f"found {tuple(piece.shape)}", allowed=str(tuple(tensor.shape)))
            tensor.copy_(piece)


def named_parts(model: Any, shape: Shape, spec: BackendSpec) -> dict[str, Any]:
    """This rank's parameters by their global names; a tied head on the last stage counts as ``output_layer``."""
    from megatron.core import parallel_state

    first_layer = min((layer.layer_number - 1 for layer in model.decoder.layers), default=0)
    per_rank = shape.experts // spec.layout.ep if shape.experts else 0
    first_expert = parallel_state.get_expert_model_parallel_rank() * per_rank
    return {globally(name, first_layer, first_expert): p for name, p in model.named_parameters()}


def _layer_spec(spec: BackendSpec, shape: Shape) -> Any:
    from megatron.core.models.gpt import gpt_layer_specs as specs

    if spec.device == "cpu":
        found = specs.get_gpt_layer_local_spec(
            num_experts=shape.experts or None, qk_layernorm=shape.qk_norm, normalization="RMSNorm"
        )
        if spec.layout.cp > 1:
            found.submodules.self_attention.submodules.core_attention = gathered_attention()
        return found
    return specs.get_gpt_layer_with_transformer_engine_spec(
        num_experts=shape.experts or None, qk_layernorm=shape.qk_norm
    )


def _config(spec: BackendSpec, shape: Shape) -> Any:
    from megatron.core.transformer.transformer_config import TransformerConfig

    layout, half = spec.layout, spec.dtype == "bfloat16"
    os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "1")  # megatron overlaps its streams only so
    mixture: dict[str, Any] = {}
    if shape.experts:
        mixture = {
            "num_moe_experts": shape.experts,
            "moe_router_topk": shape.experts_per_token,
            "moe_ffn_hidden_size": shape.ffn,
            "moe_router_pre_softmax": not shape.norm_topk,
            "moe_router_load_balancing_type": "none",
            "moe_aux_loss_coeff": 0.0,
            "expert_model_parallel_size": layout.ep,
            "expert_tensor_parallel_size": 1,
        }
    return TransformerConfig(
        num_layers=shape.layers,
        hidden_size=shape.hidden,
        num_attention_heads=shape.heads,
        num_query_groups=shape.kv_heads,
        kv_channels=shape.head_dim,
        ffn_hidden_size=shape.ffn,
        gated_linear_unit=True,
        activation_func=F.silu,
        normalization="RMSNorm",
        layernorm_epsilon=shape.eps,
        qk_layernorm=shape.qk_norm,
        add_bias_linear=False,
        hidden_dropout=0.0,
        attention_dropout=0.0,
        use_cpu_initialization=spec.device == "cpu",
        perform_initialization=False,
        bias_activation_fusion=False,
        bias_dropout_fusion=False,
        masked_softmax_fusion=False,
        gradient_accumulation_fusion=False,
        apply_rope_fusion=False,
        tensor_model_parallel_size=layout.tp,
        pipeline_model_parallel_size=layout.pp,
        context_parallel_size=layout.cp,
        sequence_parallel=layout.tp > 1 and spec.device == "cuda",
        variable_seq_lengths=layout.pp > 1,
        batch_p2p_comm=False,
        deallocate_pipeline_outputs=False,
        params_dtype=getattr(torch, spec.dtype),
        pipeline_dtype=getattr(torch, spec.dtype),
        moe_token_dispatcher_type="allgather" if shape.experts and spec.device == "cpu" else "alltoall",
        bf16=half,
        recompute_granularity="full" if spec.checkpoint_layers else None,
        recompute_method="uniform" if spec.checkpoint_layers else None,
        recompute_num_layers=1 if spec.checkpoint_layers else None,
        **mixture,
    )
