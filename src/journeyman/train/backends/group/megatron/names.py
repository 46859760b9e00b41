"""Tensors of megatron-core from and to those of a Hugging Face checkpoint: pure functions on tensors.

megatron keeps query, key and value rows of each key-value group side by side in one matrix, gate and up in another, and
cuts matrices over tensor-parallel ranks by rows or columns. Names here are global: layers and experts counted over all
ranks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from journeyman.errors import InputError

Fetch = Callable[[str], Tensor]
"""A tensor of the checkpoint by its name on disk."""
MODEL_TYPES = ("qwen3", "qwen3_moe", "llama")


@dataclass(frozen=True)
class Shape:
    """Numbers of a ``config.json`` that the conversion needs; counts, except where said.

    Attributes:
        experts: 0 for a dense model.
        ffn: of a dense layer, or of one expert.
        tied: the head is the embedding.
        qk_norm: queries and keys are normed per head.
    """

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    vocab: int
    experts: int
    experts_per_token: int
    tied: bool
    qk_norm: bool
    eps: float
    rope_theta: float
    norm_topk: bool

    @classmethod
    def of(cls, config: Mapping[str, Any], where: str) -> Shape:
        """The shape of a ``config.json``. Raises InputError for a model that is not converted here."""
        kind = config.get("model_type")
        if kind not in MODEL_TYPES:
            raise InputError(f"{where}:model_type", f"found {kind!r}", allowed=", ".join(MODEL_TYPES))
        if config.get("attention_bias") or config.get("mlp_only_layers"):
            raise InputError(where, "has attention biases or dense layers between mixtures", allowed="neither")
        mixture = kind == "qwen3_moe"
        rope = config.get("rope_parameters") or {"rope_theta": config.get("rope_theta", 1e4)}
        return cls(
            layers=config["num_hidden_layers"],
            hidden=config["hidden_size"],
            heads=config["num_attention_heads"],
            kv_heads=config["num_key_value_heads"],
            head_dim=config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"],
            ffn=config["moe_intermediate_size" if mixture else "intermediate_size"],
            vocab=config["vocab_size"],
            experts=(config.get("num_experts") or config["num_local_experts"]) if mixture else 0,
            experts_per_token=config["num_experts_per_tok"] if mixture else 0,
            tied=bool(config.get("tie_word_embeddings")),
            qk_norm=kind != "llama",
            eps=config["rms_norm_eps"],
            rope_theta=float(rope["rope_theta"]),
            norm_topk=bool(config.get("norm_topk_prob", False)),
        )

    def padded_vocab(self, tp: int) -> int:
        """The vocabulary as it is cut: a multiple of ``tp``."""
        return -(-self.vocab // tp) * tp


_LAYER = re.compile(r"^decoder\.layers\.(\d+)\.(.+)$")
_EXPERT = re.compile(r"^mlp\.experts\.local_experts\.(\d+)\.(linear_fc[12])\.weight$")
PLAIN = {
    "input_layernorm.weight": "input_layernorm.weight",
    "pre_mlp_layernorm.weight": "post_attention_layernorm.weight",
    "self_attention.q_layernorm.weight": "self_attn.q_norm.weight",
    "self_attention.k_layernorm.weight": "self_attn.k_norm.weight",
    "mlp.router.weight": "mlp.gate.weight",
}
"""Tensors of a layer that are the same on all ranks: megatron's name -> the checkpoint's."""


CUT = (
    "word_embeddings.weight",
    "output_layer.weight",
    "linear_qkv.weight",
    "linear_proj.weight",
    "linear_fc1.weight",
    "linear_fc2.weight",
)
"""Ends of the names of matrices that are cut over tensor-parallel ranks."""


def globally(name: str, first_layer: int, first_expert: int) -> str:
    """A rank's own name with layer and expert counted over all ranks."""
    found = _LAYER.match(name)
    if not found:
        return name
    layer, rest = int(found[1]) + first_layer, found[2]
    expert = _EXPERT.match(rest)
    if expert:
        rest = f"mlp.experts.local_experts.{int(expert[1]) + first_expert}.{expert[2]}.weight"
    return f"decoder.layers.{layer}.{rest}"


def is_expert(name: str) -> bool:
    """Whether a tensor belongs to one expert."""
    return ".local_experts." in name


def is_cut(name: str) -> bool:
    """Whether each tensor-parallel rank holds a part of a tensor, not all of it; experts are never cut."""
    return not is_expert(name) and name.endswith(CUT)


def cut(name: str, fetch: Fetch, shape: Shape, rank: int, tp: int) -> Tensor:
    """The part of a global tensor that one tensor-parallel rank holds.

    Args:
        fetch: reads the checkpoint.
        rank, tp: which part of how many.
    """
    if name in ("embedding.word_embeddings.weight", "output_layer.weight"):
        source = "model.embed_tokens.weight" if shape.tied or name.startswith("embedding") else "lm_head.weight"
        rows = fetch(source)
        padding = rows.new_zeros(shape.padded_vocab(tp) - shape.vocab, shape.hidden)
        return torch.cat([rows, padding]).chunk(tp)[rank]
    if name == "decoder.final_layernorm.weight":
        return fetch("model.norm.weight")
    prefix, rest = _split(name)
    if rest in PLAIN:
        return fetch(prefix + PLAIN[rest])
    if rest == "self_attention.linear_qkv.weight":
        q, k, v = (fetch(f"{prefix}self_attn.{letter}_proj.weight") for letter in "qkv")
        group = [part.view(shape.kv_heads, -1, shape.hidden) for part in (q, k, v)]
        return torch.cat(group, 1).chunk(tp)[rank].reshape(-1, shape.hidden)
    if rest == "self_attention.linear_proj.weight":
        return fetch(f"{prefix}self_attn.o_proj.weight").chunk(tp, 1)[rank]
    where, matrix, rank, tp = _mlp(rest, rank, tp)
    if matrix == "linear_fc2":
        return fetch(f"{prefix}{where}down_proj.weight").chunk(tp, 1)[rank]
    return torch.cat([fetch(f"{prefix}{where}{part}_proj.weight").chunk(tp)[rank] for part in ("gate", "up")])


def joined(name: str, parts: Sequence[Tensor], shape: Shape) -> dict[str, Tensor]:
    """The other way round: the checkpoint's tensors from the parts of all tensor-parallel ranks, in their order."""
    if name in ("embedding.word_embeddings.weight", "output_layer.weight"):
        target = "model.embed_tokens.weight" if name.startswith("embedding") else "lm_head.weight"
        return {target: torch.cat(list(parts))[: shape.vocab]}
    if name == "decoder.final_layernorm.weight":
        return {"model.norm.weight": parts[0]}
    prefix, rest = _split(name)
    if rest in PLAIN:
        return {prefix + PLAIN[rest]: parts[0]}
    if rest == "self_attention.linear_qkv.weight":
        whole = torch.cat(list(parts)).view(shape.kv_heads, -1, shape.head_dim, shape.hidden)
        q, k, v = torch.split(whole, [shape.heads // shape.kv_heads, 1, 1], 1)
        named = zip("qkv", (q, k, v), strict=True)
        return {f"{prefix}self_attn.{letter}_proj.weight": t.reshape(-1, shape.hidden) for letter, t in named}
    if rest == "self_attention.linear_proj.weight":
        return {f"{prefix}self_attn.o_proj.weight": torch.cat(list(parts), 1)}
    where, matrix, _, tp = _mlp(rest, 0, len(parts))
    held = list(parts)[:tp]
    if matrix == "linear_fc2":
        return {f"{prefix}{where}down_proj.weight": torch.cat(held, 1)}
    gates, ups = zip(*(part.chunk(2) for part in held), strict=True)
    return {f"{prefix}{where}{n}_proj.weight": torch.cat(t) for n, t in (("gate", list(gates)), ("up", list(ups)))}


def _split(name: str) -> tuple[str, str]:
    found = _LAYER.match(name)
    if not found:
        raise KeyError(f"megatron has a tensor {name}, which no checkpoint of ours has")
    return f"model.layers.{found[1]}.", found[2]


def _mlp(rest: str, rank: int, tp: int) -> tuple[str, str, int, int]:
    """(the checkpoint's place, matrix, part, parts): an expert is never cut."""
    expert = _EXPERT.match(rest)
    if expert:
        return f"mlp.experts.{expert[1]}.", expert[2], 0, 1
    found = re.match(r"^mlp\.(linear_fc[12])\.weight$", rest)
    if not found:
        raise KeyError(f"megatron has a layer's tensor {rest}, which no checkpoint of ours has")
    return "mlp.", found[1], rank, tp
