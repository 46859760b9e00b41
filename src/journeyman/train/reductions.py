"""Reductions as per-token weights, fixed once per optimizer step over what is really trained.

``L = sum(weights * token_loss)``: after this only sums are taken, so no split into micro-batches or ranks can change
the result. Denominators count mask tokens before any trust region drops some, over the whole step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from journeyman.errors import InputError, nearest

if TYPE_CHECKING:
    from torch import Tensor

REDUCTIONS = ("drgrpo", "prompt", "sequence", "token")
"""Names ``token_weights`` knows."""


def token_weights(
    kind: str,
    *,
    mask: Tensor,
    sequence_of: Tensor,
    prompt_of: Tensor,
    max_length: int | None = None,
    count_empty: bool = False,
) -> Tensor:
    """Weight of each token in the loss of one optimizer step.

    Args:
        kind: "token" (1 / all tokens), "sequence" (1 / (N T_i)), "prompt" (1 / (P T_p): every prompt weighs the same)
            or "drgrpo" (1 / (N max_length)).
        mask: bool or 0/1 [tokens]; True where a sampled token is trained on.
        sequence_of: int64 [tokens], index into ``prompt_of``.
        prompt_of: int64 [sequences], the prompt of each sequence; the values carry no meaning.
        max_length: tokens, for "drgrpo" only: a constant of the recipe, never the batch's longest row.
        count_empty: let N and P also count sequences and prompts without a trainable token (they then shrink the step).

    Returns:
        float64 [tokens], dimensionless, 0 where ``mask`` is False; for the first three kinds it sums to 1, or to 0 if
        nothing is trainable.

    Raises:
        InputError: unknown kind, unequal shapes, ``max_length`` missing or not positive for "drgrpo".

    Source: training.md section 5.

    Example:
        Sequences of 4, 2 and 3 trainable tokens, prompts [0, 0, 1], "prompt": weights 1/12, 1/12 and 1/6.
    """
    import torch

    if kind not in REDUCTIONS:
        match = nearest(kind, REDUCTIONS)
        hint = f"did you mean {match}?" if match else None
        raise InputError("reduction", f"unknown name {kind!r}", allowed=", ".join(REDUCTIONS), hint=hint)
    if mask.shape != sequence_of.shape:
        raise InputError(
            "sequence_of", f"has shape {tuple(sequence_of.shape)}", allowed=f"{tuple(mask.shape)}, as mask"
        )
    if kind == "drgrpo" and not (max_length and max_length > 0):
        raise InputError(
            "max_length", f"got {max_length!r}, but drgrpo divides by it", allowed="a positive number of tokens"
        )
    on = mask.bool()
    trained = on.to(torch.float64)
    num_sequences = len(prompt_of)
    tokens_of_sequence = torch.zeros(num_sequences, dtype=torch.float64).index_add(0, sequence_of, trained)
    rows = float(num_sequences if count_empty else (tokens_of_sequence > 0).sum())
    if kind == "token":
        return trained / trained.sum().clamp(min=1)
    if kind == "sequence":
        return trained / (max(rows, 1.0) * tokens_of_sequence.clamp(min=1)[sequence_of])
    if kind == "drgrpo":
        assert max_length is not None
        return trained / (max(rows, 1.0) * max_length)
    prompts, prompt_index = torch.unique(prompt_of, return_inverse=True)
    tokens_of_prompt = torch.zeros(len(prompts), dtype=torch.float64).index_add(0, prompt_index, tokens_of_sequence)
    groups = float(len(prompts) if count_empty else (tokens_of_prompt > 0).sum())
    return trained / (max(groups, 1.0) * tokens_of_prompt.clamp(min=1)[prompt_index[sequence_of]])
