"""Rows as megatron-core reads them, and the trained tokens' values out of what it answers.

With context parallel of C, a sequence is cut into 2 C equal chunks and rank r holds chunks r and 2 C - 1 - r, so that
the work of causal attention is even. The values of all chunks are brought together before the loss.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from journeyman.train.backends.spec import BackendSpec
from journeyman.train.protocol import TrainRow


class Slices:
    """How one rank's part of a micro-batch is laid out."""

    def __init__(self, spec: BackendSpec) -> None:
        from megatron.core import parallel_state as state

        self._device, self._cp = torch.device(spec.device), spec.layout.cp
        self._rank = state.get_context_parallel_rank()
        self._step = spec.layout.tp * (2 * spec.layout.cp if spec.layout.cp > 1 else 1)

    def inputs(self, rows: Sequence[TrainRow]) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
        """(ids, labels, positions), each int64 [rows, this rank's places], and the mask, True where hidden.

        On a GPU Transformer Engine masks by itself.
        """
        longest = self._padded(rows)
        ids, labels = (np.zeros((len(rows), longest), np.int64) for _ in range(2))
        for i, row in enumerate(rows):
            ids[i, : len(row.ids)] = row.ids
            labels[i, : len(row.ids) - 1] = row.ids[1:]
        places = self._places(longest)
        positions = np.broadcast_to(np.arange(longest), ids.shape)
        cut = [torch.from_numpy(np.ascontiguousarray(t[:, places])).to(self._device) for t in (ids, labels, positions)]
        mask = None
        if self._device.type == "cpu":
            mask = torch.ones(1, 1, longest, longest, dtype=torch.bool).triu(1).expand(len(rows), -1, -1, -1)
        return cut[0], cut[1], cut[2], mask

    def trained(self, losses: Tensor, rows: Sequence[TrainRow]) -> Tensor:
        """[trained tokens of the rows] out of [rows, this rank's places]; differentiable in this rank's own."""
        longest = self._padded(rows)
        whole = losses
        if self._cp > 1:
            from megatron.core import parallel_state as state

            whole = losses.new_zeros(len(rows), longest)
            whole[:, self._places(longest)] = losses
            everybody = whole.detach().clone()
            dist.all_reduce(everybody, group=state.get_context_parallel_group())
            whole = everybody + (whole - whole.detach())
        at = [i * longest + np.flatnonzero(row.mask) - 1 for i, row in enumerate(rows)]
        return whole.reshape(-1)[torch.from_numpy(np.concatenate(at)).to(whole.device)]

    def _padded(self, rows: Sequence[TrainRow]) -> int:
        longest = max(len(row.ids) for row in rows)
        return -(-longest // self._step) * self._step

    def _places(self, longest: int) -> np.ndarray:
        places = np.arange(longest)
        if self._cp == 1:
            return places
        chunks = np.split(places, 2 * self._cp)
        return np.concatenate([chunks[self._rank], chunks[2 * self._cp - 1 - self._rank]])
