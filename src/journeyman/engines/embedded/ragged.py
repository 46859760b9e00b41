"""New tokens of several rows without padding: packed for the matrix products, padded for attention only."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


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
        even: all rows have as many new tokens, so that packed is padded.
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
    even: bool


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
        even=count == width * len(tokens),
    )


def padded(new: Ragged, packed: Tensor) -> Tensor:
    """Packed [n, ...] as [rows, width, ...]; what lies in the padding is arbitrary."""
    rows = packed if new.even else packed.index_select(0, new.to_padded)
    return rows.view(len(new.counts), new.width, *packed.shape[1:])
