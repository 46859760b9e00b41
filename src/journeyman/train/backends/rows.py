"""Rows end to end through a model of transformers: no padding, and each row sees itself alone.

The model reads one long row with positions that begin anew; only attention knows where a row ends, and computes row by
row, so the blocks off the diagonal cost nothing. What is not known to mix tokens in attention alone is padded instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

NAME = "journeyman_rows"
"""Of the attention, for transformers."""
FAMILIES = ("llama", "qwen2", "qwen3", "qwen3_moe")
"""Model types whose layers mix tokens in plain causal attention only."""


def packs(model: Any) -> bool:
    """Whether rows may lie end to end in this model; its attention is changed in place then."""
    config = model.config
    layers = set(getattr(config, "layer_types", None) or ["full_attention"])
    is_plain = layers == {"full_attention"} and not getattr(config, "use_sliding_window", False)
    if config.model_type not in FAMILIES or not is_plain:
        return False
    from transformers import AttentionInterface

    AttentionInterface.register(NAME, rows_attention)
    model.set_attn_implementation(NAME)
    return True


def rows_attention(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Any = None,
    *,
    scaling: float | None = None,
    row_lengths: Sequence[int] | None = None,
    **others: Any,
) -> tuple[Tensor, None]:
    """Causal attention of each row.

    Args:
        query: float [1, heads, tokens, d]. key, value: float [1, kv_heads, tokens, d].
        row_lengths: tokens of the rows, in order; None: every row of a batch for itself.

    Returns:
        float [1, tokens, heads, d], and None for probabilities that nobody asks for.
    """
    shares = query.shape[1] != key.shape[1]
    lengths = list(row_lengths) if row_lengths is not None else [query.shape[2]]
    parts = [
        F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=scaling, enable_gqa=shares)
        for q, k, v in zip(*(torch.split(x, lengths, 2) for x in (query, key, value)), strict=True)
    ]
    return torch.cat(parts, 2).transpose(1, 2).contiguous(), None
