"""The shape of a decoder, read from a Hugging Face configuration; what cannot be decoded exactly is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from journeyman.engines.embedded.rope import Rope, read_rope
from journeyman.errors import InputError, nearest

_QK_NORM = {"qwen3": True, "qwen2": False, "llama": False}
ARCHITECTURES = tuple(_QK_NORM)
"""Values of ``model_type`` that are decoded here."""


@dataclass(frozen=True)
class DecoderShape:
    """Sizes of a Qwen3-, Qwen2- or Llama-shaped decoder.

    Attributes:
        vocab, hidden, layers, heads, kv_heads, head_dim, ffn: sizes.
        rope: the rotary embedding.
        eps: of every RMSNorm.
        tied: the head is the embedding.
        qk_norm: queries and keys are normalised per head (Qwen3).
        qkv_bias, out_bias: attention's projections have biases.
        window: positions the model was made for; None when the configuration does not say.
    """

    vocab: int
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    eps: float
    tied: bool
    qk_norm: bool
    rope: Rope = field(default_factory=Rope)
    qkv_bias: bool = False
    out_bias: bool = False
    window: int | None = None

    @property
    def group(self) -> int:
        """Query heads that share one key-value head."""
        return self.heads // self.kv_heads

    @property
    def kv_elements_per_token(self) -> int:
        """Elements of keys and values that one token of context takes."""
        return self.layers * 2 * self.kv_heads * self.head_dim


def read_shape(config: Mapping[str, Any], where: str = "config.json") -> DecoderShape:
    """The shape in ``config.json`` (or ``config.to_dict()``).

    Raises:
        InputError: another architecture, or a feature that this decoder does not compute.
    """
    kind = str(config.get("model_type"))
    if kind not in _QK_NORM:
        near = nearest(kind, _QK_NORM)
        hint = "serve it with vLLM" + (f"; the nearest architecture decoded here is {near}" if near else "")
        problem = f"{kind!r} is not decoded here"
        raise InputError(f"{where}:model_type", problem, allowed=", ".join(_QK_NORM), hint=hint)
    _require(where, "hidden_act", config.get("hidden_act", "silu"), "silu")
    _require(where, "mlp_bias", bool(config.get("mlp_bias")), False)
    _require(where, "use_sliding_window", bool(config.get("use_sliding_window")), False)
    heads, hidden = int(config["num_attention_heads"]), int(config["hidden_size"])
    bias, window = bool(config.get("attention_bias")), config.get("max_position_embeddings")
    return DecoderShape(
        vocab=int(config["vocab_size"]),
        hidden=hidden,
        layers=int(config["num_hidden_layers"]),
        heads=heads,
        kv_heads=int(config.get("num_key_value_heads") or heads),
        head_dim=int(config.get("head_dim") or hidden // heads),
        ffn=int(config["intermediate_size"]),
        rope=read_rope(config, where),
        eps=float(config["rms_norm_eps"]),
        tied=bool(config.get("tie_word_embeddings")),
        qk_norm=_QK_NORM[kind],
        qkv_bias=bias or kind == "qwen2",
        out_bias=bias,
        window=None if window is None else int(window),
    )


def _require(where: str, field: str, found: object, needed: object) -> None:
    if found != needed:
        raise InputError(f"{where}:{field}", f"{found!r} is not decoded here", allowed=repr(needed))
