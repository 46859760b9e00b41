"""The key-value cache: one row per trial, allocated once, rows moved whole so that live ones stay dense."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from journeyman.engines.embedded.shape import DecoderShape


class KVCache:
    """Keys and values as ``[layers, 2, rows, kv_heads, max_len, head_dim]``.

    Memory is touched column by column as conversations grow, so what is never used costs no resident memory.
    """

    def __init__(self, shape: DecoderShape, rows: int, max_len: int, dtype: torch.dtype, device: torch.device) -> None:
        self.rows, self.max_len, self.kv_heads = rows, max_len, shape.kv_heads
        size = (shape.layers, 2, rows, shape.kv_heads, max_len, shape.head_dim)
        self.data = _untouched(size, dtype) if device.type == "cpu" else torch.zeros(size, dtype=dtype, device=device)
        self._flat = self.data.view(shape.layers, 2 * rows * shape.kv_heads * max_len, shape.head_dim)
        self._by_head = [tuple(layer.flatten(1, 2)) for layer in self.data]
        plane = torch.arange(2, device=device)[:, None] * rows * shape.kv_heads
        heads = torch.arange(shape.kv_heads, device=device)
        self._planes = ((plane + heads) * max_len).flatten()

    def places(self, slots: Tensor, columns: Tensor) -> Tensor:
        """Where the tokens of ``slots`` at ``columns`` (both [n], int64) are written: [n * 2 * kv_heads]."""
        return ((slots * (self.kv_heads * self.max_len) + columns)[:, None] + self._planes).flatten()

    def write(self, layer: int, places: Tensor, keys_values: Tensor) -> None:
        """Write [n, 2 * kv_heads, head_dim] (keys before values) at ``places``."""
        self._flat[layer].index_copy_(0, places, keys_values.reshape(len(places), -1))

    def dense(self, layer: int, count: int, columns: int) -> tuple[Tensor, Tensor]:
        """Keys and values of the first rows as views [count * kv_heads, columns, head_dim]."""
        keys, values = self._by_head[layer]
        return keys[: count * self.kv_heads, :columns], values[: count * self.kv_heads, :columns]

    def gather(self, layer: int, slots: Tensor, columns: int) -> tuple[Tensor, Tensor]:
        """Keys and values of any rows, copied: [len(slots) * kv_heads, columns, head_dim]."""
        keys, values = (self.data[layer, part, :, :, :columns].index_select(0, slots) for part in (0, 1))
        return keys.flatten(0, 1), values.flatten(0, 1)

    def move(self, source: int, target: int, length: int) -> None:
        """Copy the first ``length`` columns of one row over another."""
        self.data[:, :, target, :, :length].copy_(self.data[:, :, source, :, :length])

    def swap(self, a: int, b: int, length: int) -> None:
        """Exchange the first ``length`` columns of two rows."""
        kept = self.data[:, :, a, :, :length].clone()
        self.move(b, a, length)
        self.data[:, :, b, :, :length].copy_(kept)

    def spread(self, source: int, targets: Tensor, length: int) -> None:
        """Copy the first ``length`` columns of one row to several."""
        self.data[:, :, targets, :, :length] = self.data[:, :, source : source + 1, :, :length]


def _untouched(size: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """Zeros whose pages the system hands out at their first use (calloc); torch.zeros would touch them all.

    They start at a multiple of 64 bytes, as torch's own memory does: matrix products may round by alignment.
    """
    count = math.prod(size) * dtype.itemsize
    raw = np.zeros(count + 64, dtype=np.uint8)
    start = -raw.ctypes.data % 64
    return torch.from_numpy(raw[start : start + count]).view(dtype).view(size)
