"""A micro-batch as the flat list of tokens that must be computed: no padding, and equal prefixes once.

Rows of one Group share their prompt and often their first calls. A token's state depends on the ids before it only, so
tokens with the same prefix have the same state; each is computed once and used by all its rows. Only attention sees
rows: in blocks of nearly equal length, padded on the right. Pure numpy; ``backends/decoder.py`` runs it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from journeyman.errors import InputError

Ints = NDArray[np.int64]

MIN_FILL = 0.85
"""Rows shorter than this share of their block's longest start the next block: padding in attention stays below 15 %."""
MAX_ROWS = 8
"""Rows per block: what a core's cache holds of their attention probabilities."""


@dataclass(frozen=True)
class Layout:
    """Where each token of some rows is computed and used.

    Attributes:
        ids, positions: int64 [unique tokens], in the order of computation.
        blocks: per attention block, int64 [rows, length]: the unique token at each place; padding points anywhere.
        own: int64 [unique tokens]: the place, in all blocks laid end to end, of one attention output of each token.
        predictors: int64 [unique predictors]: the tokens whose state predicts a trained token.
        predictor_of: int64 [trained tokens], index into ``predictors``; rows in the order given, then positions.
        targets: int64 [trained tokens]: the ids to predict.
        num_tokens: tokens of all rows, shared ones counted in each.
    """

    ids: Ints
    positions: Ints
    blocks: tuple[Ints, ...]
    own: Ints
    predictors: Ints
    predictor_of: Ints
    targets: Ints
    num_tokens: int


def layout_of(
    ids: Sequence[NDArray[np.integer]], masks: Sequence[NDArray[np.generic]], *, share_prefixes: bool
) -> Layout:
    """Lay out rows for one forward pass.

    Args:
        ids: per row, integers [length], length >= 1.
        masks: per row, bool or 0/1 [length]: the tokens that are trained on or scored. The first token never is.
        share_prefixes: compute equal prefixes once; worth it where rows come from the same prompts.

    Raises:
        InputError: no rows, an empty row, a mask of another length, or a mask on the first token.
    """
    _check(ids, masks)
    lengths = np.array([len(row) for row in ids])
    valid = np.arange(lengths.max()) < lengths[:, None]
    table = np.zeros(valid.shape, dtype=np.int64)
    trained = np.zeros(valid.shape, dtype=bool)
    table[valid] = np.concatenate([np.asarray(row) for row in ids])
    trained[valid] = np.concatenate([np.asarray(mask, dtype=bool) for mask in masks])
    unique_at, first = _unique(table, valid, share_prefixes)
    blocks, own = _blocks(unique_at, valid, lengths, len(first))
    rows, places = np.nonzero(trained)
    predictors, predictor_of = np.unique(unique_at[rows, places - 1], return_inverse=True)
    return Layout(
        ids=table.ravel()[first],
        positions=first % valid.shape[1],
        blocks=blocks,
        own=own,
        predictors=predictors,
        predictor_of=predictor_of,
        targets=table[rows, places],
        num_tokens=int(lengths.sum()),
    )


def _unique(table: Ints, valid: NDArray[np.bool_], share: bool) -> tuple[Ints, Ints]:
    """Unique token index at each place [rows, length] (0 at padding), and the flat place of each one's first use."""
    order = np.lexsort(np.where(valid, table, -1).T[::-1]) if share else np.arange(len(table))
    sorted_table, sorted_valid = table[order], valid[order]
    new = sorted_valid.copy()
    if share:  # rows in lexicographic order: a token is new unless the row above agrees up to and including it
        both = sorted_valid[1:] & sorted_valid[:-1]
        new[1:] &= ~np.logical_and.accumulate((sorted_table[1:] == sorted_table[:-1]) & both, axis=1)
    numbered = np.where(new, np.cumsum(new).reshape(new.shape) - 1, -1)
    above = np.maximum.accumulate(numbered, axis=0)  # a shared token is the latest new one above it in its column
    unique_at = np.empty_like(above)
    unique_at[order] = np.where(sorted_valid, above, 0)
    first_row, first_place = np.nonzero(new)
    return unique_at, order[first_row] * table.shape[1] + first_place


def _blocks(
    unique_at: Ints, valid: NDArray[np.bool_], lengths: NDArray[np.int64], num_unique: int
) -> tuple[tuple[Ints, ...], Ints]:
    by_length = np.argsort(-lengths, kind="stable")
    blocks: list[Ints] = []
    own = np.zeros(num_unique, dtype=np.int64)
    start = base = 0
    while start < len(lengths):
        longest = int(lengths[by_length[start]])
        count = min(int(np.sum(lengths[by_length[start:]] >= MIN_FILL * longest)), MAX_ROWS)
        rows = by_length[start : start + count]
        block, inside = unique_at[rows, :longest], valid[rows, :longest]
        own[block[inside]] = base + np.flatnonzero(inside)
        blocks.append(np.ascontiguousarray(block))
        start, base = start + count, base + block.size
    return tuple(blocks), own


def _check(ids: Sequence[NDArray[np.integer]], masks: Sequence[NDArray[np.generic]]) -> None:
    if not ids or len(ids) != len(masks):
        raise InputError("rows", f"{len(ids)} rows of ids and {len(masks)} of masks", allowed="as many, at least one")
    for i, (row, mask) in enumerate(zip(ids, masks, strict=True)):
        if len(row) == 0 or len(row) != len(mask):
            raise InputError(
                f"rows[{i}]", f"{len(row)} ids and {len(mask)} mask values", allowed="as many, at least one"
            )
        if mask[0]:
            raise InputError(f"rows[{i}].mask[0]", "is set, but nothing stands before the first token to predict it")
