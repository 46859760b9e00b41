"""Gradients summed over the ranks that hold the same tensor, and their square, each element counted once."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from journeyman.train.backends.group.megatron.names import Shape, is_cut, is_expert

PARTIAL = ("q_layernorm.weight", "k_layernorm.weight")
"""Tensors every tensor-parallel rank holds whole and uses for its own heads only."""


def summed(parts: dict[str, Any], shape: Shape) -> tuple[dict[str, Tensor], Tensor]:
    """Per global name the gradient of the whole step, and this rank's share of the sum of squares (float64, CPU).

    All ranks of a group hold the same names in the same order, so that their collectives meet.
    """
    from megatron.core import parallel_state as state

    tp, data = state.get_tensor_model_parallel_group(), state.get_data_parallel_group(with_context_parallel=True)
    experts = state.get_expert_data_parallel_group()
    several_stages = state.get_pipeline_model_parallel_world_size() > 1
    gradients: dict[str, Tensor] = {}
    square = torch.zeros((), dtype=torch.float64)
    for name, part in parts.items():
        gradient = torch.zeros_like(part) if part.grad is None else part.grad
        expert = is_expert(name)
        dist.all_reduce(gradient, group=experts if expert else data)
        if not expert and (name.endswith(PARTIAL) or getattr(part, "sequence_parallel", False)):
            dist.all_reduce(gradient, group=tp)
        copies = shape.tied and several_stages and name in ("embedding.word_embeddings.weight", "output_layer.weight")
        if copies:  # first and last stage hold one tensor
            dist.all_reduce(gradient, group=state.get_embedding_group())
        gradients[name] = gradient
        if _counts(name, expert, copies and name == "output_layer.weight"):
            square += gradient.detach().double().pow(2).sum().cpu()
    return gradients, square


def _counts(name: str, expert: bool, copy: bool) -> bool:
    from megatron.core import parallel_state as state

    if copy:
        return False
    if expert:
        return dist.get_rank(state.get_expert_data_parallel_group()) == 0
    first_of_data = state.get_data_parallel_rank(with_context_parallel=True) == 0
    return first_of_data and (is_cut(name) or state.get_tensor_model_parallel_rank() == 0)
