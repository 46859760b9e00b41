"""The decoder's arithmetic: prefill of ragged new tokens and one-token steps over dense rows.

Both follow ``transformers`` modeling_qwen3 (pre-norm blocks, per-head QK norm, rotary embedding, grouped-query
attention, SwiGLU) with the layout of ``Weights``. Attention multiplies each group of query heads with its un-repeated
key-value head. Column t of the cache is visible to a token at position p iff t <= p: what lies beyond is never read.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import silu

from journeyman.engines.embedded.cache import KVCache
from journeyman.engines.embedded.weights import LayerWeights, Weights


@dataclass(frozen=True)
class Ragged:
    """New tokens of several rows, packed without padding, and the indices between packed and padded form.

    Attributes:
        tokens, positions: [n] int64, row after row.
        slots: [rows] cache row of each row; None when there is no cache (all rows start at position 0).
        starts, counts: [rows] tokens before the new ones, and how many are new.
        to_padded: [rows * width] packed index of each padded place (0 where there is padding).
        to_packed: [n] padded index of each packed token.
        last: [rows] packed index of each row's last token.
        width, columns: longest row of new tokens; cache columns to look at.
        fresh: no row has earlier tokens.
    """

    tokens: Tensor
    positions: Tensor
    slots: Tensor | None
    starts: Tensor
    counts: Tensor
    to_padded: Tensor
    to_packed: Tensor
    last: Tensor
    width: int
    columns: int
    fresh: bool


def ragged(tokens: list[list[int]], starts: list[int], slots: list[int] | None, device: torch.device) -> Ragged:
    """Index tables for prefilling ``tokens[r]`` after ``starts[r]`` earlier tokens of cache row ``slots[r]``."""
    counts = torch.tensor([len(row) for row in tokens])
    start = torch.tensor(starts)
    width, count = int(counts.max()), int(counts.sum())
    begins = counts.cumsum(0) - counts
    row_of = torch.repeat_interleave(torch.arange(len(tokens)), counts)
    offset = torch.arange(count) - begins[row_of]
    to_packed = row_of * width + offset
    to_padded = torch.zeros(len(tokens) * width, dtype=torch.int64)
    to_padded[to_packed] = torch.arange(count)
    return Ragged(
        tokens=torch.tensor([token for row in tokens for token in row], device=device),
        positions=(start[row_of] + offset).to(device),
        slots=None if slots is None else torch.tensor(slots, device=device),
        starts=start.to(device),
        counts=counts.to(device),
        to_padded=to_padded.to(device),
        to_packed=to_packed.to(device),
        last=(begins + counts - 1).to(device),
        width=width,
        columns=int((start + counts).max()),
        fresh=not any(starts),
    )


class Decoder:
    """Forward passes of one model over one cache.

    Args:
        weights: the model, possibly refreshed between calls.
        cache: keys and values of all rows; its dtype and device are the decoder's.
        max_len: longest position + 1.
    """

    def __init__(self, weights: Weights, cache: KVCache, max_len: int) -> None:
        self.weights, self.cache, self.shape = weights, cache, weights.shape
        device, half = cache.data.device, torch.arange(0, self.shape.head_dim, 2, dtype=torch.float32)
        angles = torch.arange(max_len)[:, None] / self.shape.rope_theta ** (half / self.shape.head_dim)
        self._turns = torch.polar(torch.ones_like(angles), angles)[:, None].to(device)
        self._columns = torch.arange(max_len, device=device)

    def step(self, tokens: Tensor, positions: Tensor, columns: int) -> Tensor:
        """One token for each of the first rows.

        Args:
            tokens, positions: [n] int64, for rows 0 to n - 1 of the cache.
            columns: max(positions) + 1.

        Returns:
            Hidden state after the final norm, [n, hidden].
        """
        s, count = self.shape, len(tokens)
        places = self.cache.places(self._columns_like(count), positions)
        rotation = self._turns.index_select(0, positions)
        hidden_columns = self._columns[:columns] > positions[:, None]
        bias = self._bias(hidden_columns).repeat_interleave(s.kv_heads, 0)[:, None]
        x = self.weights.embed.index_select(0, tokens)
        for index, layer in enumerate(self.weights.layers):
            qkv = self._project(layer, x, rotation)
            self.cache.write(index, places, qkv[:, s.heads :])
            keys, values = self.cache.dense(index, count, columns)
            query = qkv[:, : s.heads].reshape(count * s.kv_heads, s.group, s.head_dim)
            mixed = _attend(query, keys, values, bias)
            x = self._finish(layer, x, mixed.view(count, -1))
        return self._final(x)

    def prefill(self, new: Ragged, *, every_position: bool = False) -> Tensor:
        """Feed new tokens of several rows and write them to the cache (if the rows have one).

        Returns:
            Hidden states after the final norm: of each row's last token [rows, hidden], or of every packed token
            [n, hidden].
        """
        places = None
        if new.slots is not None:
            places = self.cache.places(torch.repeat_interleave(new.slots, new.counts), new.positions)
        rotation = self._turns.index_select(0, new.positions)
        x = self.weights.embed.index_select(0, new.tokens)
        bias = self._prefill_bias(new, last_only=False)
        final = len(self.weights.layers) - 1
        for index, layer in enumerate(self.weights.layers):
            last_only = index == final and not every_position
            qkv = self._project(layer, x, rotation)
            if places is not None:
                self.cache.write(index, places, qkv[:, self.shape.heads :])
            if last_only:
                x, bias = x.index_select(0, new.last), self._prefill_bias(new, last_only=True)
            x = self._finish(layer, x, self._attend_ragged(index, new, qkv, bias, last_only))
        return self._final(x)

    def logits(self, hidden: Tensor) -> Tensor:
        """Float32 logits [n, vocab] of final hidden states."""
        return torch.mm(hidden, self.weights.head.t()).float()

    def _columns_like(self, count: int) -> Tensor:
        return torch.arange(count, device=self._columns.device)

    def _bias(self, blocked: Tensor) -> Tensor:
        bias = torch.zeros(blocked.shape, dtype=self.cache.data.dtype, device=blocked.device)
        return bias.masked_fill_(blocked, float("-inf"))

    def _prefill_bias(self, new: Ragged, *, last_only: bool) -> Tensor:
        """[rows, 1, 1, width or 1, columns]; padding sees what a token at its place would see."""
        if last_only:
            at = (new.starts + new.counts - 1)[:, None]
        else:
            at = new.starts[:, None] + self._columns[: new.width]
        return self._bias(self._columns[: new.columns] > at[:, :, None])[:, None, None]

    def _project(self, layer: LayerWeights, x: Tensor, rotation: Tensor) -> Tensor:
        """Queries, keys and values [n, heads + 2 * kv_heads, head_dim], queries and keys normed, scaled, rotated."""
        s = self.shape
        qkv = torch.mm(_normed(x, s.eps), layer.qkv.t()).view(len(x), s.heads + 2 * s.kv_heads, s.head_dim)
        exact = qkv[:, : s.heads + s.kv_heads].float()
        if s.qk_norm:
            exact *= torch.rsqrt(exact.square().mean(-1, keepdim=True).add_(s.eps))
        exact *= layer.qk_scale
        torch.view_as_complex(exact.view(len(x), -1, s.head_dim // 2, 2)).mul_(rotation)
        if exact.dtype != qkv.dtype:
            qkv[:, : s.heads + s.kv_heads] = exact
        return qkv

    def _attend_ragged(self, index: int, new: Ragged, qkv: Tensor, bias: Tensor, last_only: bool) -> Tensor:
        """Attention of packed new tokens over their rows' columns, [n or rows, heads * head_dim]."""
        s, rows = self.shape, len(new.counts)
        width = 1 if last_only else new.width
        query = qkv[:, : s.heads].index_select(0, new.last if last_only else new.to_padded)
        query = query.view(rows, width, s.kv_heads, s.group, s.head_dim).permute(0, 2, 3, 1, 4)
        query = query.reshape(rows * s.kv_heads, s.group * width, s.head_dim)
        if new.fresh or new.slots is None:
            both = qkv[:, s.heads :].index_select(0, new.to_padded).view(rows, new.width, 2, s.kv_heads, s.head_dim)
            both = both.permute(2, 0, 3, 1, 4).flatten(1, 2)
            keys, values = both[0], both[1]
        else:
            keys, values = self.cache.gather(index, new.slots, new.columns)
        full = bias.expand(rows, s.kv_heads, s.group, width, new.columns).reshape(len(query), -1, new.columns)
        mixed = _attend(query, keys, values, full).view(rows, s.heads, width, s.head_dim).transpose(1, 2)
        mixed = mixed.reshape(rows * width, s.heads * s.head_dim)
        return mixed if last_only else mixed.index_select(0, new.to_packed)

    def _finish(self, layer: LayerWeights, x: Tensor, mixed: Tensor) -> Tensor:
        """Output projection, residual, and the MLP block."""
        x = x + torch.mm(mixed, layer.out.t())
        gate_up = torch.mm(_normed(x, self.shape.eps), layer.gate_up.t())
        gate, up = gate_up[:, : self.shape.ffn], gate_up[:, self.shape.ffn :]
        return x.add_(torch.mm(silu(gate).mul_(up), layer.down.t()))

    def _final(self, x: Tensor) -> Tensor:
        return _normed(x, self.shape.eps).mul_(self.weights.final_norm)


def _normed(x: Tensor, eps: float) -> Tensor:
    """RMSNorm without its weight, computed in float32."""
    exact = x.float()
    return (exact * torch.rsqrt(exact.square().mean(-1, keepdim=True).add_(eps))).to(x.dtype)


def _attend(query: Tensor, keys: Tensor, values: Tensor, bias: Tensor) -> Tensor:
    """softmax(query keys^T + bias) values over [n, queries, head_dim] and [n, columns, head_dim]."""
    scores = torch.bmm(query, keys.transpose(1, 2)).add_(bias)
    return torch.bmm(torch.softmax(scores, -1, dtype=torch.float32).to(values.dtype), values)
