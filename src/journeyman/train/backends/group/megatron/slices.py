"""Rows as megatron-core reads them, and the trained tokens' values out of what it answers.

With context parallel of C, a sequence is cut into 2 C equal chunks and rank r holds chunks r and 2 C - 1 - r, so that
the work of causal attention is even. The values of all chunks are brought together before the loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor

from journeyman.train.backends.spec import BackendSpec
from journeyman.train.protocol import TrainRow


@dataclass(frozen=True)
class Laid:
    """A micro-batch as one rank's part of the model reads it.

    Attributes:
        ids, labels, positions: int64 [rows, this rank's places].
        mask: bool [rows, 1, places, places], True where hidden; None where Transformer Engine masks by itself.
        longest: places of a whole row.
        at: int64 [trained tokens]: flat place, in [rows, longest], of the state that predicts each.
    """

    ids: Tensor
    labels: Tensor
    positions: Tensor
    mask: Tensor | None
    longest: int
    at: Tensor


class Slices:
    """How micro-batches are laid out over the ranks."""

    def __init__(self, spec: BackendSpec) -> None:
        from megatron.core import parallel_state as state

        self._device, self._cp = torch.device(spec.device), spec.layout.cp
        self._rank = state.get_context_parallel_rank()
        self._step = spec.layout.tp * (2 * spec.layout.cp if spec.layout.cp > 1 else 1)
        # the dispatcher of tokens to experts that runs on CPU takes as many tokens from each rank
        self._equal = spec.layout.ep > 1 and spec.device == "cpu"

    def laid(self, rows: Sequence[TrainRow]) -> Laid:
        """Lay rows out; with experts over CPU ranks a collective: all of them call it."""
        count, longest = self._shape(rows)
        ids, labels = (np.zeros((count, longest), np.int64) for _ in range(2))
        for i, row in enumerate(rows):
            ids[i, : len(row.ids)] = row.ids
            labels[i, : len(row.ids) - 1] = row.ids[1:]
        places = self._places(longest)
        positions = np.broadcast_to(np.arange(longest), ids.shape)
        cut = [torch.from_numpy(np.ascontiguousarray(t[:, places])).to(self._device) for t in (ids, labels, positions)]
        mask = None
        if self._device.type == "cpu":
            mask = torch.ones(1, 1, longest, longest, dtype=torch.bool).triu(1).expand(count, -1, -1, -1)
        at = np.concatenate([i * longest + np.flatnonzero(row.mask) - 1 for i, row in enumerate(rows)])
        return Laid(cut[0], cut[1], cut[2], mask, longest, torch.from_numpy(at).to(self._device))

    def trained(self, values: Tensor, laid: Laid) -> Tensor:
        """[trained tokens of the rows] out of [rows, this rank's places]; differentiable in this rank's own."""
        whole = values
        if self._cp > 1:
            from megatron.core import parallel_state as state

            whole = values.new_zeros(len(values), laid.longest)
            whole[:, self._places(laid.longest)] = values
            everybody = whole.detach().clone()
            dist.all_reduce(everybody, group=state.get_context_parallel_group())
            whole = everybody + (whole - whole.detach())
        return whole.reshape(-1)[laid.at]

    def _shape(self, rows: Sequence[TrainRow]) -> tuple[int, int]:
        longest = max(len(row.ids) for row in rows)
        shape = torch.tensor([len(rows), -(-longest // self._step) * self._step])
        if self._equal:
            from megatron.core import parallel_state as state

            dist.all_reduce(shape, dist.ReduceOp.MAX, group=state.get_expert_model_parallel_group())
        return int(shape[0]), int(shape[1])

    def _places(self, longest: int) -> NDArray[np.int64]:
        places = np.arange(longest)
        if self._cp == 1:
            return places
        chunks = np.split(places, 2 * self._cp)
        return np.concatenate([chunks[self._rank], chunks[2 * self._cp - 1 - self._rank]])
