"""Model weights in the layout the decoder multiplies with, refreshed in place from a Hugging Face state dict.

Queries, keys and values are one matrix, gate and up another. The two layer norms' weights are folded into the matrices
that follow them. Rows of query and key heads are reordered from split halves to neighbouring pairs, so that the rotary
embedding is one complex product; dot products do not see the order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from journeyman.engines.embedded.shape import DecoderShape
from journeyman.engines.errors import EngineError


@dataclass(frozen=True)
class LayerWeights:
    """One layer: matrices [in, out] that lie in memory output by output, and ``qk_scale`` [heads + kv_heads, head_dim],
    the QK norms' weights with 1/sqrt(head_dim) in the queries' rows."""

    qkv: Tensor
    out: Tensor
    gate_up: Tensor
    down: Tensor
    qk_scale: Tensor


class Weights:
    """The weights of one model, allocated once.

    Args:
        shape: sizes.
        dtype, device: of every matrix.
    """

    def __init__(self, shape: DecoderShape, dtype: torch.dtype, device: torch.device) -> None:
        self.shape = shape

        def empty(*size: int) -> Tensor:
            return torch.empty(size, dtype=dtype, device=device)

        s = shape
        self.embed = empty(s.vocab, s.hidden)
        self.head = self.embed if s.tied else empty(s.vocab, s.hidden)
        self.final_norm = empty(s.hidden)
        self.layers = [
            LayerWeights(
                qkv=empty((s.heads + 2 * s.kv_heads) * s.head_dim, s.hidden).t(),
                out=empty(s.hidden, s.heads * s.head_dim).t(),
                gate_up=empty(2 * s.ffn, s.hidden).t(),
                down=empty(s.hidden, s.ffn).t(),
                qk_scale=torch.empty(s.heads + s.kv_heads, s.head_dim, dtype=torch.float32, device=device),
            )
            for _ in range(s.layers)
        ]

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Copy a whole Hugging Face state dict. All of it is checked before the first copy.

        Raises:
            EngineError: a tensor is missing, has another shape or is not finite, or a tied head differs from the
                embedding (a stale head); the old weights are untouched.
        """
        self._check(state)
        with torch.inference_mode():
            self.embed.copy_(state["model.embed_tokens.weight"])
            if not self.shape.tied:
                self.head.copy_(state["lm_head.weight"])
            self.final_norm.copy_(state["model.norm.weight"])
            for index, layer in enumerate(self.layers):
                self._load_layer(layer, state, f"model.layers.{index}.")

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
        layer.qk_scale.fill_(1.0)
        if s.qk_norm:
            layer.qk_scale[: s.heads] = _paired(state[prefix + "self_attn.q_norm.weight"].float(), s.head_dim)
            layer.qk_scale[s.heads :] = _paired(state[prefix + "self_attn.k_norm.weight"].float(), s.head_dim)
        layer.qk_scale[: s.heads] *= s.head_dim**-0.5

    def _check(self, state: Mapping[str, Tensor]) -> None:
        for name, size in expected_shapes(self.shape).items():
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
        names |= {f"model.layers.{index}.{name}": size for name, size in layer.items()}
    return names


def _paired(rows: Tensor, head_dim: int) -> Tensor:
    """Reorder the rows of each head from (x0..xh, y0..yh) to (x0, y0, x1, y1, ...)."""
    rest = rows.shape[1:]
    return rows.reshape(-1, 2, head_dim // 2, *rest).transpose(1, 2).reshape(rows.shape)
