"""The forward and backward pass of a Qwen3 or Llama decoder over a ``Layout``: the same numbers as ``transformers``.

It reads the stock module's parameters and computes in float32. What is saved against the stock forward: padding and
shared prefixes, logits and the last layer's MLP at positions that predict nothing, norm weights folded into
the matrices, hand-written gradients. bfloat16 is used nowhere: a CPU without avx512_bf16 multiplies it 15 times slower.

Equal to the stock forward to 1e-5 in logprobs (tests).
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from journeyman.errors import InputError
from journeyman.train.backends.attention import causal_attention
from journeyman.train.backends.head import head_logprobs
from journeyman.train.layout import Layout
from journeyman.train.model import CausalLM

SUPPORTED = ("llama", "qwen3")
"""Model types whose layers this forward knows."""


def check_supported(model: CausalLM) -> None:
    """Refuse a model that this forward would compute wrongly.

    Raises:
        InputError: another model type, biases, a sliding window, an activation or positions it does not know.
    """
    config = model.config
    facts = {
        "model_type": (config.model_type, SUPPORTED),
        "hidden_act": (config.hidden_act, ("silu",)),
        "attention_bias": (config.attention_bias, (False,)),
        "mlp_bias": (getattr(config, "mlp_bias", False), (False,)),
        "use_sliding_window": (getattr(config, "use_sliding_window", False), (False,)),
        "rope_type": (config.rope_parameters["rope_type"], ("default",)),
        "dtype": (str(model.lm_head.weight.dtype), ("torch.float32",)),
    }
    for field, (found, allowed) in facts.items():
        if found not in allowed:
            raise InputError(f"model config: {field}", f"found {found!r}", allowed=", ".join(map(str, allowed)))


def token_logprobs(model: CausalLM, layout: Layout, ids: Tensor | None = None) -> Tensor:
    """Log-probability of every trained token of a layout: float32 [trained tokens], differentiable.

    ``ids`` int64 [trained tokens, k] are asked for in place of the tokens themselves; then float32 [trained tokens, k].
    """
    config = model.config
    heads = (config.num_attention_heads, config.num_key_value_heads, model.model.layers[0].self_attn.head_dim)
    eps = config.rms_norm_eps
    angles = torch.from_numpy(layout.positions).float()[:, None] * model.model.rotary_emb.inv_freq
    rotation = torch.polar(torch.ones_like(angles), angles).unsqueeze(1)
    blocks = [torch.from_numpy(block) for block in layout.blocks]
    own, predictors = torch.from_numpy(layout.own), torch.from_numpy(layout.predictors)
    hidden = F.embedding(torch.from_numpy(layout.ids), model.model.embed_tokens.weight)
    last = len(model.model.layers) - 1
    for index, layer in enumerate(model.model.layers):
        outputs = _attention(layer, hidden, rotation, blocks, heads, eps)
        if index == last:  # only the states that predict something are still needed
            outputs, hidden = F.embedding(own[predictors], outputs), F.embedding(predictors, hidden)
        else:
            outputs = F.embedding(own, outputs)
        hidden = torch.addmm(hidden, outputs, layer.self_attn.o_proj.weight.t())
        mlp, gain = layer.mlp, layer.post_attention_layernorm.weight
        gate_up = F.linear(_normalise(hidden, eps), torch.cat([mlp.gate_proj.weight, mlp.up_proj.weight]) * gain)
        hidden = torch.addmm(hidden, _swiglu(gate_up), mlp.down_proj.weight.t())
    head = model.lm_head.weight * model.model.norm.weight
    targets = torch.from_numpy(layout.targets) if ids is None else ids
    return head_logprobs(_normalise(hidden, eps), head, torch.from_numpy(layout.predictor_of), targets)


def _attention(
    layer: Any, hidden: Tensor, rotation: Tensor, blocks: list[Tensor], heads: tuple[int, int, int], eps: float
) -> Tensor:
    """Attention outputs [places of all blocks, heads x head_dim], before the output matrix."""
    num_heads, kv_heads, head_dim = heads
    attention = layer.self_attn
    query_key = torch.cat([_paired(attention.q_proj.weight, num_heads), _paired(attention.k_proj.weight, kv_heads)])
    weight = torch.cat([query_key, attention.v_proj.weight]) * layer.input_layernorm.weight
    qkv = F.linear(_normalise(hidden, eps), weight)
    qk, values = torch.split(qkv, [(num_heads + kv_heads) * head_dim, kv_heads * head_dim], -1)
    qk = qk.reshape(len(qk), num_heads + kv_heads, head_dim)
    if hasattr(attention, "q_norm"):
        gains = [_paired(norm.weight, 1).view(1, head_dim) for norm in (attention.q_norm, attention.k_norm)]
        qk = _normalise(qk, eps) * torch.cat([gains[0].expand(num_heads, -1), gains[1].expand(kv_heads, -1)])
    turned = torch.view_as_complex(qk.reshape(*qk.shape[:2], head_dim // 2, 2)) * rotation
    qk = torch.view_as_real(turned).reshape(len(qk), -1)
    outputs = []
    for block in blocks:
        n, t = block.shape
        both = F.embedding(block, qk).view(n, t, num_heads + kv_heads, head_dim)
        q, k = torch.split(both, [num_heads, kv_heads], 2)
        v = F.embedding(block, values).view(n, t, kv_heads, head_dim)
        outputs.append(causal_attention(q, k, v))
    return torch.cat(outputs)


def _paired(weight: Tensor, heads: int) -> Tensor:
    """Rows of each head reordered so that the two of one rotation are neighbours; q . k does not change by it."""
    half = weight.shape[0] // heads // 2
    return weight.view(heads, 2, half, -1).transpose(1, 2).reshape(weight.shape)


class _Normalise(torch.autograd.Function):
    """x / rms(x) over the last axis."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, eps: float) -> Tensor:
        scale = torch.linalg.vecdot(x, x).div_(x.shape[-1]).add_(eps).rsqrt_().unsqueeze(-1)
        y: Tensor = x * scale
        ctx.save_for_backward(y, scale)
        return y

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        y, scale = ctx.saved_tensors
        along = torch.linalg.vecdot(grad, y).div_(-y.shape[-1]).unsqueeze(-1)
        return torch.addcmul(grad, y, along).mul_(scale), None


class _SwiGlu(torch.autograd.Function):
    """silu(gate) * up of [gate, up]."""

    @staticmethod
    def forward(ctx: Any, gate_up: Tensor) -> Tensor:
        gate, up = gate_up.chunk(2, -1)
        activated = F.silu(gate)
        ctx.save_for_backward(gate_up, activated)
        return activated * up

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        gate_up, activated = ctx.saved_tensors
        gate, up = gate_up.chunk(2, -1)
        out = torch.empty_like(gate_up)
        out_gate, out_up = out.chunk(2, -1)
        torch.mul(grad, activated, out=out_up)
        torch.ops.aten.silu_backward.grad_input(grad * up, gate, grad_input=out_gate)
        return out


def _normalise(x: Tensor, eps: float) -> Tensor:
    result: Tensor = _Normalise.apply(x, eps)  # type: ignore[no-untyped-call]
    return result


def _swiglu(gate_up: Tensor) -> Tensor:
    result: Tensor = _SwiGlu.apply(gate_up)  # type: ignore[no-untyped-call]
    return result
