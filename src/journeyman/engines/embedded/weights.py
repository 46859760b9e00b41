"""Model weights in the layout the decoder multiplies with, refreshed in place from a Hugging Face state dict.

Queries, keys and values are one matrix, gate and up another. The two layer norms' weights are folded into the matrices
that follow them. Rows of query and key heads are reordered from split halves to neighbouring pairs, so that the rotary
embedding is one complex product; dot products do not see the order.

An adapter (LoRA) is added to the matrices. The plain ones are kept from the first adapter on, so that the next one
starts from them exactly; that doubles the memory of the layers, not of embedding and head.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from journeyman.engines.embedded.adapter import Adapter
from journeyman.engines.embedded.packed import Packed, can_pack
from journeyman.engines.embedded.shape import DecoderShape
from journeyman.engines.errors import EngineError


@dataclass(frozen=True)
class LayerWeights:
    """One layer: matrices [in, out] that lie in memory output by output, ``qk_scale`` [heads + kv_heads, head_dim], the
    QK norms' weights with 1/sqrt(head_dim) in the queries' rows, biases [out] where the shape has them, and the norm
    weights [hidden] that are folded into ``qkv`` and ``gate_up``."""

    qkv: Tensor
    out: Tensor
    gate_up: Tensor
    down: Tensor
    qk_scale: Tensor
    qkv_bias: Tensor | None
    out_bias: Tensor | None
    attention_norm: Tensor
    mlp_norm: Tensor

    def matrices(self) -> tuple[Tensor, ...]:
        return self.qkv, self.out, self.gate_up, self.down


class Weights:
    """The weights of one model, allocated once.

    Args:
        shape: sizes.
        dtype, device: of every matrix.
        rounded: what every loaded value is rounded to first; None leaves it as it is.
    """

    def __init__(
        self, shape: DecoderShape, dtype: torch.dtype, device: torch.device, *, rounded: torch.dtype | None = None
    ) -> None:
        self.shape, self._rounded = shape, rounded
        self._plain: list[list[Tensor]] | None = None

        def empty(*size: int) -> Tensor:
            return torch.empty(size, dtype=dtype, device=device)

        s, qkv = shape, (shape.heads + 2 * shape.kv_heads) * shape.head_dim
        self.embed = empty(s.vocab, s.hidden)
        self.head = self.embed if s.tied else empty(s.vocab, s.hidden)
        self._packed_head: Packed | None = None
        self.final_norm = empty(s.hidden)
        self.layers = [
            LayerWeights(
                qkv=empty(qkv, s.hidden).t(),
                out=empty(s.hidden, s.heads * s.head_dim).t(),
                gate_up=empty(2 * s.ffn, s.hidden).t(),
                down=empty(s.hidden, s.ffn).t(),
                qk_scale=torch.empty(s.heads + s.kv_heads, s.head_dim, dtype=torch.float32, device=device),
                qkv_bias=empty(qkv) if s.qkv_bias else None,
                out_bias=empty(s.hidden) if s.out_bias else None,
                attention_norm=torch.empty(s.hidden, dtype=torch.float32, device=device),
                mlp_norm=torch.empty(s.hidden, dtype=torch.float32, device=device),
            )
            for _ in range(s.layers)
        ]

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Copy a whole Hugging Face state dict; an adapter is dropped. All of it is checked before the first copy.

        Raises:
            EngineError: a tensor is missing, has another shape or is not finite, or a tied head differs from the
                embedding (a stale head); the old weights are untouched.
        """
        self._check(state)
        with torch.inference_mode():
            self._plain = None
            self.embed.copy_(self._served(state, "model.embed_tokens.")["model.embed_tokens.weight"])
            if not self.shape.tied:
                self.head.copy_(self._served(state, "lm_head.")["lm_head.weight"])
            self.final_norm.copy_(self._served(state, "model.norm.")["model.norm.weight"])
            self._packed_head = Packed(self.head) if can_pack(self.head) else None
            for index, layer in enumerate(self.layers):
                prefix = f"model.layers.{index}."
                self._load_layer(layer, self._served(state, prefix), prefix)

    def _served(self, state: Mapping[str, Tensor], prefix: str) -> Mapping[str, Tensor]:
        """The tensors of one part of the model, as they are to be served."""
        if self._rounded is None:
            return state
        return {name: tensor.to(self._rounded) for name, tensor in state.items() if name.startswith(prefix)}

    def head_product(self, hidden: Tensor) -> Tensor:
        """Logits [n, vocab] of final hidden states, in their dtype."""
        if self._packed_head is not None and len(hidden) >= 4:
            return self._packed_head.product(hidden)
        return torch.mm(hidden, self.head.t())

    def adapt(self, adapter: Adapter | None) -> None:
        """Put an adapter in the place of the present one; None takes it away.

        Raises:
            EngineError: it does not fit; the present one keeps serving.
        """
        if adapter is not None:
            adapter.check(expected_shapes(self.shape))
        with torch.inference_mode():
            if self._plain is None:
                self._plain = [[matrix.clone() for matrix in layer.matrices()] for layer in self.layers]
            for index, (layer, plain) in enumerate(zip(self.layers, self._plain, strict=True)):
                for matrix, original in zip(layer.matrices(), plain, strict=True):
                    matrix.copy_(original)
                if adapter is not None:
                    self._add(layer, adapter, f"model.layers.{index}.")

    def _add(self, layer: LayerWeights, adapter: Adapter, prefix: str) -> None:
        """Add the adapter's products in the layout of ``_load_layer``."""
        s, at = self.shape, 0
        for name, heads in (("q", s.heads), ("k", s.kv_heads), ("v", s.kv_heads)):
            delta, size = adapter.delta(f"{prefix}self_attn.{name}_proj.weight"), heads * s.head_dim
            if delta is not None:
                rows = delta if name == "v" else _paired(delta, s.head_dim)
                layer.qkv.t()[at : at + size] += rows.to(layer.qkv.device) * layer.attention_norm
            at += size
        for at, name in ((0, "gate"), (s.ffn, "up")):
            delta = adapter.delta(f"{prefix}mlp.{name}_proj.weight")
            if delta is not None:
                layer.gate_up.t()[at : at + s.ffn] += delta.to(layer.gate_up.device) * layer.mlp_norm
        for matrix, name in ((layer.out, "self_attn.o"), (layer.down, "mlp.down")):
            delta = adapter.delta(f"{prefix}{name}_proj.weight")
            if delta is not None:
                matrix.t().add_(delta.to(matrix.device))

    def _load_layer(self, layer: LayerWeights, state: Mapping[str, Tensor], prefix: str) -> None:
        s = self.shape
        attention_norm = state[prefix + "input_layernorm.weight"].float()
        parts = [state[f"{prefix}self_attn.{name}_proj.weight"].float() for name in "qkv"]
        parts[0], parts[1] = _paired(parts[0], s.head_dim), _paired(parts[1], s.head_dim)
        layer.qkv.t().copy_(torch.cat(parts) * attention_norm)
        layer.out.t().copy_(state[prefix + "self_attn.o_proj.weight"])
        mlp_norm = state[prefix + "post_attention_layernorm.weight"].float()
        gate_up = [state[f"{prefix}mlp.{name}_proj.weight"].float() for name in ("gate", "up")]
        layer.gate_up.t().copy_(torch.cat(gate_up) * mlp_norm)
        layer.down.t().copy_(state[prefix + "mlp.down_proj.weight"])
        layer.attention_norm.copy_(attention_norm)
        layer.mlp_norm.copy_(mlp_norm)
        if layer.qkv_bias is not None:
            biases = [state[f"{prefix}self_attn.{name}_proj.bias"] for name in "qkv"]
            layer.qkv_bias.copy_(torch.cat([*(_paired(bias, s.head_dim) for bias in biases[:2]), biases[2]]))
        if layer.out_bias is not None:
            layer.out_bias.copy_(state[prefix + "self_attn.o_proj.bias"])
        layer.qk_scale.fill_(1.0)
        if s.qk_norm:
            layer.qk_scale[: s.heads] = _paired(state[prefix + "self_attn.q_norm.weight"].float(), s.head_dim)
            layer.qk_scale[s.heads :] = _paired(state[prefix + "self_attn.k_norm.weight"].float(), s.head_dim)
        layer.qk_scale[: s.heads] *= s.head_dim**-0.5

    def _check(self, state: Mapping[str, Tensor]) -> None:
        expected = expected_shapes(self.shape)
        for name in state:
            if name not in expected and name != "lm_head.weight" and not name.endswith("rotary_emb.inv_freq"):
                raise EngineError(f"weight update has {name}, which this model lacks; the old weights keep serving")
        for name, size in expected.items():
            if name not in state:
                raise EngineError(f"weight update lacks {name}; the old weights keep serving")
            found = tuple(state[name].shape)
            if found != size:
                raise EngineError(
                    f"weight update has {name} of shape {found}, needed {size}; the old ones keep serving"
                )
            if not torch.isfinite(state[name]).all():
                raise EngineError(f"weight update has values in {name} that are not finite; the old ones keep serving")
        if self.shape.tied and "lm_head.weight" in state:
            head, embed = state["lm_head.weight"], state["model.embed_tokens.weight"]
            if head.data_ptr() != embed.data_ptr() and not torch.equal(head, embed):
                raise EngineError(
                    "weight update has a tied lm_head.weight that differs from the embedding: it is stale"
                )


def computes(dtype: torch.dtype, device: torch.device) -> bool:
    """Whether the device multiplies in this type; without the instructions bfloat16 is converted at every product."""
    if dtype != torch.bfloat16 or device.type != "cpu":
        return True
    asked = [getattr(torch.cpu, f"_is_{name}_supported", None) for name in ("avx512_bf16", "amx_tile")]
    return any(ask is None or ask() for ask in asked) or platform.machine() not in ("x86_64", "AMD64")


def expected_shapes(shape: DecoderShape) -> dict[str, tuple[int, ...]]:
    """Every tensor that a complete state dict of this shape holds (a tied head need not be there)."""
    s, query, key = shape, shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    names: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (s.vocab, s.hidden)}
    names["model.norm.weight"] = (s.hidden,)
    if not s.tied:
        names["lm_head.weight"] = (s.vocab, s.hidden)
    for index in range(s.layers):
        layer: dict[str, tuple[int, ...]] = {
            "input_layernorm.weight": (s.hidden,),
            "post_attention_layernorm.weight": (s.hidden,),
            "self_attn.q_proj.weight": (query, s.hidden),
            "self_attn.k_proj.weight": (key, s.hidden),
            "self_attn.v_proj.weight": (key, s.hidden),
            "self_attn.o_proj.weight": (s.hidden, query),
            "mlp.gate_proj.weight": (s.ffn, s.hidden),
            "mlp.up_proj.weight": (s.ffn, s.hidden),
            "mlp.down_proj.weight": (s.hidden, s.ffn),
        }
        if s.qk_norm:
            layer |= {"self_attn.q_norm.weight": (s.head_dim,), "self_attn.k_norm.weight": (s.head_dim,)}
        if s.qkv_bias:
            layer |= {"self_attn.q_proj.bias": (query,), "self_attn.k_proj.bias": (key,)}
            layer["self_attn.v_proj.bias"] = (key,)
        if s.out_bias:
            layer["self_attn.o_proj.bias"] = (s.hidden,)
        names |= {f"model.layers.{index}.{name}": size for name, size in layer.items()}
    return names


def _paired(rows: Tensor, head_dim: int) -> Tensor:
    """Reorder the rows of each head from (x0..xh, y0..yh) to (x0, y0, x1, y1, ...)."""
    rest = rows.shape[1:]
    return rows.reshape(-1, 2, head_dim // 2, *rest).transpose(1, 2).reshape(rows.shape)
