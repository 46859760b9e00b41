"""The decoder's arithmetic: prefill of ragged new tokens and one-token steps over dense rows.

Both follow ``transformers`` modeling_qwen3 (pre-norm blocks, per-head QK norm, rotary embedding, grouped-query
attention, SwiGLU) with the layout of ``Weights``. Attention multiplies each group of query heads with its un-repeated
key-value head. Column t of the cache is visible to a token at position p iff t <= p: what lies beyond is never read.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import silu

from journeyman.engines.embedded.cache import KVCache
from journeyman.engines.embedded.ragged import Ragged, padded
from journeyman.engines.embedded.shape import DecoderShape
from journeyman.engines.embedded.weights import LayerWeights, Weights


class Decoder:
    """Forward passes of one model over one cache.

    Args:
        weights: the model, possibly refreshed between calls.
        cache: keys and values of all rows; its dtype and device are the decoder's.
        max_len: longest position + 1.
    """

    def __init__(self, weights: Weights, cache: KVCache, max_len: int) -> None:
        self.weights, self.cache, self.shape = weights, cache, weights.shape
        s, device = self.shape, cache.data.device
        angles = _angles(s, max_len)
        self._turns = torch.polar(torch.ones_like(angles), angles)[:, None].to(device)
        self._columns = torch.arange(max_len, device=device)
        self._eps = torch.full((1,), s.eps, device=device)
        normed_heads = s.heads + s.kv_heads
        self._head_eps = self._eps.expand(normed_heads).contiguous()
        self._head_mean = torch.kron(torch.eye(normed_heads), torch.full((s.head_dim, 1), 1 / s.head_dim)).to(device)

    def step(self, tokens: Tensor, positions: Tensor, columns: int) -> Tensor:
        """One token for each of the first rows.

        Args:
            tokens, positions: [n] int64, for rows 0 to n - 1 of the cache.
            columns: max(positions) + 1.

        Returns:
            Hidden state after the final norm, [n, hidden].
        """
        s, count = self.shape, len(tokens)
        places = self.cache.places(torch.arange(count, device=tokens.device), positions)
        rotation = self._turns.index_select(0, positions)
        bias = self._bias(self._columns[:columns] > positions[:, None, None, None])
        x = self.weights.embed.index_select(0, tokens)
        for index, layer in enumerate(self.weights.layers):
            qkv = self._project(layer, x, rotation)
            self.cache.write(index, places, qkv[:, s.heads :])
            keys, values = self.cache.dense(index, count, columns)
            query = qkv[:, : s.heads].reshape(count * s.kv_heads, s.group, s.head_dim)
            x = self._finish(layer, x, self._attend(query, keys, values, bias).view(count, -1))
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
        bias = self._causal_bias(new)
        final = len(self.weights.layers) - 1
        for index, layer in enumerate(self.weights.layers):
            qkv = self._project(layer, x, rotation)
            if places is not None:
                self.cache.write(index, places, qkv[:, self.shape.heads :])
            keys, values = self._row_keys_values(index, new, qkv)
            if index == final and not every_position:
                x, mixed = x.index_select(0, new.last), self._attend_last(new, qkv, keys, values)
            else:
                mixed = self._attend_all(new, qkv, keys, values, bias)
            x = self._finish(layer, x, mixed)
        return self._final(x)

    def logits(self, hidden: Tensor) -> Tensor:
        """Float32 logits [n, vocab] of final hidden states."""
        return self.weights.head_product(hidden).float()

    def _bias(self, blocked: Tensor) -> Tensor:
        bias = torch.zeros(blocked.shape, dtype=self.cache.data.dtype, device=blocked.device)
        return bias.masked_fill_(blocked, float("-inf"))

    def _causal_bias(self, new: Ragged) -> Tensor:
        """[rows or 1, 1, width, columns]; padding sees what a token at its place would see."""
        starts = new.starts[:1] if new.fresh else new.starts
        at = starts[:, None, None, None] + self._columns[: new.width, None]
        return self._bias(self._columns[: new.columns] > at)

    def _project(self, layer: LayerWeights, x: Tensor, rotation: Tensor) -> Tensor:
        """Queries, keys and values [n, heads + 2 * kv_heads, head_dim], queries and keys normed, scaled, rotated."""
        s, count = self.shape, len(x)
        normed_heads = s.heads + s.kv_heads
        flat = _product(self._normed(x), layer.qkv, layer.qkv_bias)
        qkv = flat.view(count, normed_heads + s.kv_heads, s.head_dim)
        turned, exact = qkv[:, :normed_heads], flat[:, : normed_heads * s.head_dim].float()
        heads = exact.view(count, normed_heads, s.head_dim)
        if s.qk_norm:
            heads.mul_(torch.addmm(self._head_eps, exact * exact, self._head_mean).rsqrt_()[:, :, None])
        heads.mul_(layer.qk_scale)
        torch.view_as_complex(heads.view(count, normed_heads, s.head_dim // 2, 2)).mul_(rotation)
        if heads.dtype != turned.dtype:
            turned.copy_(heads)
        return qkv

    def _row_keys_values(self, index: int, new: Ragged, qkv: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values of the rows' whole contexts, [rows * kv_heads, columns, head_dim]."""
        if not new.fresh:
            assert new.slots is not None
            return self.cache.gather(index, new.slots, new.columns)
        s = self.shape
        both = padded(new, qkv[:, s.heads :].view(-1, 2, s.kv_heads, s.head_dim)).permute(2, 0, 3, 1, 4).flatten(1, 2)
        return both[0], both[1]

    def _attend_all(self, new: Ragged, qkv: Tensor, keys: Tensor, values: Tensor, bias: Tensor) -> Tensor:
        """Attention of every packed new token over its row, [n, heads * head_dim]."""
        s, rows = self.shape, len(new.counts)
        query = padded(new, qkv[:, : s.heads]).transpose(1, 2)
        query = query.reshape(rows * s.kv_heads, s.group * new.width, s.head_dim)
        mixed = self._attend(query, keys, values, bias).view(rows, s.heads, new.width, s.head_dim)
        mixed = mixed.transpose(1, 2).reshape(rows * new.width, s.heads * s.head_dim)
        return mixed if new.even else mixed.index_select(0, new.to_packed)

    def _attend_last(self, new: Ragged, qkv: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """Attention of each row's last token over its row, [rows, heads * head_dim]."""
        s, rows = self.shape, len(new.counts)
        query = qkv[:, : s.heads].index_select(0, new.last).view(rows * s.kv_heads, s.group, s.head_dim)
        bias = self._bias(self._columns[: new.columns] >= (new.starts + new.counts)[:, None, None, None])
        return self._attend(query, keys, values, bias).view(rows, -1)

    def _attend(self, query: Tensor, keys: Tensor, values: Tensor, bias: Tensor) -> Tensor:
        """softmax(query keys^T + bias) values.

        Args:
            query: [rows * kv_heads, group * width, head_dim].
            keys, values: [rows * kv_heads, columns, head_dim].
            bias: broadcasts over [rows, heads, width, columns].
        """
        scores = torch.bmm(query, keys.transpose(1, 2))
        scores.view(-1, self.shape.heads, *bias.shape[2:]).add_(bias)
        return torch.bmm(torch.softmax(scores, -1, dtype=torch.float32).to(values.dtype), values)

    def _finish(self, layer: LayerWeights, x: Tensor, mixed: Tensor) -> Tensor:
        """Output projection, residual, and the MLP block."""
        x = x + _product(mixed, layer.out, layer.out_bias)
        gate_up = torch.mm(self._normed(x), layer.gate_up)
        gate, up = gate_up[:, : self.shape.ffn], gate_up[:, self.shape.ffn :]
        return x.add_(torch.mm(silu(gate).mul_(up), layer.down))

    def _final(self, x: Tensor) -> Tensor:
        return self._normed(x).mul_(self.weights.final_norm)

    def _normed(self, x: Tensor) -> Tensor:
        """RMSNorm without its weight, computed in float32."""
        exact = x.float()
        length = torch.linalg.vector_norm(exact, 2, -1, True)
        inverse = torch.addcmul(self._eps, length, length, value=1 / x.shape[-1]).rsqrt_()
        return (exact * inverse).to(x.dtype)


def _product(x: Tensor, matrix: Tensor, bias: Tensor | None) -> Tensor:
    return torch.mm(x, matrix) if bias is None else torch.addmm(bias, x, matrix)


def _angles(shape: DecoderShape, max_len: int) -> Tensor:
    """Angle of every pair of a head at every position, float32 [max_len, head_dim / 2]."""
    positions = torch.arange(max_len)[:, None]
    if shape.rope.kind != "default":
        return positions * shape.rope.frequencies(shape.head_dim)
    half = torch.arange(0, shape.head_dim, 2, dtype=torch.float32)
    return positions / shape.rope.theta ** (half / shape.head_dim)  # rounds as in results that are on record
