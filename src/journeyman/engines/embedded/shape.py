"""The shape of a decoder, read from a Hugging Face configuration; what cannot be decoded exactly is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from journeyman.errors import InputError

_QK_NORM = {"qwen3": True, "llama": False}


@dataclass(frozen=True)
class DecoderShape:
    """Sizes of a Qwen3- or Llama-shaped decoder.

    Attributes:
        vocab, hidden, layers, heads, kv_heads, head_dim, ffn: sizes.
        rope_theta: base of the rotary frequencies.
        eps: of every RMSNorm.
        tied: the head is the embedding.
        qk_norm: queries and keys are normalised per head (Qwen3).
    """

    vocab: int
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    rope_theta: float
    eps: float
    tied: bool
    qk_norm: bool

    @property
    def group(self) -> int:
        """Query heads that share one key-value head."""
        return self.heads // self.kv_heads


def read_shape(config: Mapping[str, Any], where: str = "config.json") -> DecoderShape:
    """The shape in ``config.json`` (or ``config.to_dict()``).

    Raises:
        InputError: another architecture, or a feature that this decoder does not compute.
    """
    kind = config.get("model_type")
    if kind not in _QK_NORM:
        raise InputError(f"{where}:model_type", f"{kind!r} is not decoded here", allowed=", ".join(_QK_NORM))
    rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
    _require(where, "rope_type", rope.get("rope_type", rope.get("type", "default")), "default")
    _require(where, "hidden_act", config.get("hidden_act", "silu"), "silu")
    _require(where, "attention_bias", bool(config.get("attention_bias")), False)
    _require(where, "mlp_bias", bool(config.get("mlp_bias")), False)
    _require(where, "use_sliding_window", bool(config.get("use_sliding_window")), False)
    heads, hidden = int(config["num_attention_heads"]), int(config["hidden_size"])
    return DecoderShape(
        vocab=int(config["vocab_size"]),
        hidden=hidden,
        layers=int(config["num_hidden_layers"]),
        heads=heads,
        kv_heads=int(config.get("num_key_value_heads") or heads),
        head_dim=int(config.get("head_dim") or hidden // heads),
        ffn=int(config["intermediate_size"]),
        rope_theta=float(rope.get("rope_theta") or config.get("rope_theta") or 10_000.0),
        eps=float(config["rms_norm_eps"]),
        tied=bool(config.get("tie_word_embeddings")),
        qk_norm=_QK_NORM[kind],
    )


def _require(where: str, field: str, found: object, needed: object) -> None:
    if found != needed:
        raise InputError(f"{where}:{field}", f"{found!r} is not decoded here", allowed=repr(needed))
