"""What megatron-core 0.16 needs to run on CPU processes: a few functions replaced, and attention over cut sequences.

It asks CUDA for the present device in places, its random states fork CUDA generators for dropout (there is none here),
its pipeline schedule counts tokens in CUDA memory and copies tied embeddings there, and it cuts rotary angles over
ranks with a copy to CUDA. Without Transformer Engine its mixtures miss a name that they test for None, and its
attention refuses context parallelism.
"""

from __future__ import annotations

import contextlib
import copy
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor


def adapt() -> None:
    """Replace what names CUDA. For processes that have no other use for megatron-core."""
    from megatron.core.models.common.embeddings import rotary_pos_embedding
    from megatron.core.pipeline_parallel import schedules
    from megatron.core.tensor_parallel import random

    device: Any = lambda: torch.device("cpu")  # noqa: E731 - takes the place of torch's own function
    torch.cuda.current_device = device
    torch.cuda.synchronize = lambda *_, **__: None
    stay: Any = lambda tensor, *_, **__: tensor  # noqa: E731 - as above
    torch.Tensor.cuda = stay  # type: ignore[method-assign]
    random.CudaRNGStatesTracker.fork = lambda *_, **__: contextlib.nullcontext()
    schedules.torch = _OnCpu()
    rotary_pos_embedding.get_pos_emb_on_this_cp_rank = _own_angles


class _OnCpu:
    """``torch`` as the schedules see it: their counters are made here."""

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)

    def zeros(self, *size: Any, **options: Any) -> Tensor:
        """``torch.zeros``, on CPU."""
        return torch.zeros(*size, **{**options, "device": "cpu"})


def _own_angles(angles: Tensor, dim: int, group: Any) -> Tensor:
    """The angles of this rank's places."""
    return angles.index_select(dim, places_of(group.rank(), group.size(), angles.shape[dim]))


def places_of(rank: int, ranks: int, longest: int) -> Tensor:
    """int64: places of a sequence that a rank of a context-parallel group holds: chunks ``rank`` and ``2 C - 1 - rank``
    of ``2 C`` equal ones."""
    chunks = torch.arange(longest).chunk(2 * ranks)
    return torch.cat([chunks[rank], chunks[2 * ranks - 1 - rank]])


def gathered_attention() -> type:
    """The class of a core attention over sequences that lie cut over ranks: all keys and values come to each.

    Memory grows with the whole sequence, so this is for CPU processes; on a GPU, Transformer Engine's ring serves.
    """
    from megatron.core import parallel_state as state
    from megatron.core.transformer.dot_product_attention import DotProductAttention

    class GatheredAttention(DotProductAttention):  # type: ignore[misc]
        def __init__(self, config: Any, *words: Any, **named: Any) -> None:
            whole = copy.copy(config)
            whole.context_parallel_size = 1
            super().__init__(whole, *words, **named)

        def forward(self, query: Tensor, key: Tensor, value: Tensor, mask: Any, *words: Any, **named: Any) -> Any:
            group = state.get_context_parallel_group()
            ranks, here = group.size(), len(query)
            keys = [_Gathered.apply(part, group) for part in (key, value)]  # type: ignore[no-untyped-call]
            lies_at = torch.cat([places_of(rank, ranks, here * ranks) for rank in range(ranks)])
            own = places_of(group.rank(), ranks, here * ranks)
            hidden = (lies_at[None, :] > own[:, None])[None, None].expand(query.shape[1], -1, -1, -1)
            return super().forward(query, *keys, hidden, *words, **named)

    return GatheredAttention


class _Gathered(torch.autograd.Function):
    """[places of all ranks, ...], rank after rank; each rank's gradient is the sum of what all make of its part."""

    @staticmethod
    def forward(ctx: Any, own: Tensor, group: Any) -> Tensor:
        ctx.group = group
        parts = [torch.empty_like(own) for _ in range(group.size())]
        dist.all_gather(parts, own.contiguous(), group=group)
        return torch.cat(parts)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        total = gradients[0].contiguous()
        dist.all_reduce(total, group=ctx.group)
        return total.chunk(ctx.group.size())[ctx.group.rank()], None
