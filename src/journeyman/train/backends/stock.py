"""Any causal language model of transformers as one module that answers with the logprobs of trained tokens.

Rows lie end to end where only attention mixes tokens (``rows.py``). Elsewhere they are padded on the right: in a causal
model what stands behind a token does not reach it, so no mask is needed. The head is applied to the states that predict
a trained token only, in chunks whose logits are made again in the backward pass, so that logits of the whole batch
never exist.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from journeyman.errors import InputError
from journeyman.train.backends.batch import asked_ids, trained
from journeyman.train.backends.routing import RoutingReplay
from journeyman.train.backends.rows import packs
from journeyman.train.model import CausalLM
from journeyman.train.protocol import TrainRow

HEAD_TOKENS = 4096
"""Predicting states per chunk of the head: at a vocabulary of 152K, 4096 x 152K float32 logits are 2.5 GB."""


@dataclass(frozen=True)
class Padded:
    """Rows as a model reads them.

    Attributes:
        ids: int64 [rows, longest]; [1, tokens] when they lie end to end.
        at: int64 [trained tokens]: flat place of the state that predicts each trained token.
        targets: int64 [trained tokens], or [trained tokens, 1 + k] with the rollout's likeliest tokens.
        experts: int64 [layers, rows x longest, experts per token], or None.
        num_tokens: of all rows, padding not counted.
        positions, lengths: int64 [1, tokens] and the rows' tokens, when they lie end to end; None when padded.
    """

    ids: Tensor
    at: Tensor
    targets: Tensor
    experts: Tensor | None
    num_tokens: int
    positions: Tensor | None = None
    lengths: tuple[int, ...] | None = None

    def to(self, device: torch.device) -> Padded:
        """The same on a device."""
        moved = {
            name: column.to(device)
            for name in ("ids", "at", "targets", "experts", "positions")
            if (column := getattr(self, name)) is not None
        }
        return replace(self, **moved)


def padded(rows: Sequence[TrainRow], *, with_experts: bool = False, topk: bool = False) -> Padded:
    """Lay rows out for ``StockPolicy``, padded.

    Args:
        with_experts: take ``routed_experts``, which every row must have.
        topk: ask for ``topk_ids`` too, which every row must have.

    Raises:
        InputError: a row lacks them.
    """
    if with_experts:
        _check_experts(rows)
    longest = max(len(row.ids) for row in rows)
    ids = np.zeros((len(rows), longest), dtype=np.int64)
    at = []
    for i, row in enumerate(rows):
        ids[i, : len(row.ids)] = row.ids
        places = np.flatnonzero(row.mask)
        at.append(i * longest + places - 1)
    experts = _experts(rows, longest) if with_experts else None
    count = sum(len(row.ids) for row in rows)
    targets = asked_ids(rows) if topk else trained(rows, [row.ids for row in rows]).long()
    return Padded(torch.from_numpy(ids), torch.from_numpy(np.concatenate(at)), targets, experts, count)


def end_to_end(rows: Sequence[TrainRow], *, with_experts: bool = False, topk: bool = False) -> Padded:
    """Lay rows out for a ``StockPolicy`` that packs, without padding. Arguments and errors as ``padded``."""
    if with_experts:
        _check_experts(rows)
    lengths = [len(row.ids) for row in rows]
    starts = np.cumsum([0, *lengths[:-1]])
    at = np.concatenate([start + np.flatnonzero(row.mask) - 1 for start, row in zip(starts, rows, strict=True)])
    experts = None
    if with_experts:
        flat = np.concatenate([np.asarray(row.routed_experts, np.int64) for row in rows])
        experts = torch.from_numpy(np.ascontiguousarray(flat.swapaxes(0, 1)))
    return Padded(
        ids=torch.from_numpy(np.concatenate([row.ids for row in rows]).astype(np.int64))[None],
        at=torch.from_numpy(at),
        targets=asked_ids(rows) if topk else trained(rows, [row.ids for row in rows]).long(),
        experts=experts,
        num_tokens=sum(lengths),
        positions=torch.cat([torch.arange(length) for length in lengths])[None],
        lengths=tuple(lengths),
    )


def _check_experts(rows: Sequence[TrainRow]) -> None:
    if any(row.routed_experts is None for row in rows):
        hint = "sample with routed_experts, or train without replay_routing"
        raise InputError("rows.routed_experts", "missing in some rows", hint=hint)


def _experts(rows: Sequence[TrainRow], longest: int) -> Tensor:
    first = rows[0].routed_experts
    assert first is not None
    table = np.zeros((first.shape[1], len(rows), longest, first.shape[2]), dtype=np.int64)
    table[..., :] = np.arange(first.shape[2])  # padding: distinct experts, as everywhere
    for i, row in enumerate(rows):
        assert row.routed_experts is not None
        table[:, i, : len(row.routed_experts)] = np.asarray(row.routed_experts, np.int64).swapaxes(0, 1)
    return torch.from_numpy(table.reshape(table.shape[0], -1, table.shape[3]))


class StockPolicy(nn.Module):
    """A model and its chunked head. ``forward`` is the whole pass, so that wrappers of modules see all parameters.

    Args:
        model: a causal language model of transformers, adapters included.
        checkpoint_layers: compute each layer's activations again in the backward pass.
        replay: routers that take recorded experts, or None.
        pack: rows lie end to end where the model allows it (``rows.packs``).
    """

    def __init__(
        self,
        model: CausalLM,
        *,
        checkpoint_layers: bool = False,
        replay: RoutingReplay | None = None,
        pack: bool = False,
    ) -> None:
        super().__init__()
        self.model = model
        self._replay = replay
        self.packs = pack and packs(model)
        if checkpoint_layers:
            for layer in layers_of(model):
                layer.forward = functools.partial(checkpoint, layer.forward, use_reentrant=False)

    def replays(self, rows: Sequence[TrainRow]) -> bool:
        """Whether recorded experts are used for these rows: always for a gradient; a forward alone, such as one that
        measures what replaying is worth, goes as computed when no row has any."""
        has_some = any(row.routed_experts is not None for row in rows)
        return self._replay is not None and (torch.is_grad_enabled() or has_some)

    def laid(self, rows: Sequence[TrainRow], *, topk: bool = False) -> Padded:
        """Rows as this policy reads them."""
        lay = end_to_end if self.packs else padded
        return lay(rows, with_experts=self.replays(rows), topk=topk)

    def forward(
        self,
        ids: Tensor,
        at: Tensor,
        targets: Tensor,
        experts: Tensor | None = None,
        positions: Tensor | None = None,
        lengths: tuple[int, ...] | None = None,
    ) -> Tensor:
        """float32 or float64, shaped as ``targets``: their logprobs. Arguments as in ``Padded``."""
        if self._replay is not None:
            self._replay.use(experts)
        where = {} if lengths is None else {"position_ids": positions, "row_lengths": lengths}
        states = self.model.base_model(input_ids=ids, use_cache=False, **where).last_hidden_state
        chosen = states.reshape(-1, states.shape[-1])[at]
        return target_logprobs(self.model.get_output_embeddings(), chosen, targets)


def target_logprobs(head: nn.Module, states: Tensor, targets: Tensor, chunk: int = HEAD_TOKENS) -> Tensor:
    """Logprobs of ids under ``head(states)``, logits in the head's dtype, their log-sum in float32 or better.

    Unlike ``head.py`` it calls the head as a module, so that sharded weights and autocast are its own business; at most
    ``chunk`` rows of logits exist at a time.

    Args:
        states: float [n, hidden].
        targets: int64 [n] or [n, k].
    """
    if len(states) <= chunk:
        return _chunk_logprobs(head, states, targets)
    parts: list[Tensor] = [
        checkpoint(_chunk_logprobs, head, states[at : at + chunk], targets[at : at + chunk], use_reentrant=False)
        for at in range(0, len(states), chunk)
    ]
    return torch.cat(parts)


def _chunk_logprobs(head: nn.Module, states: Tensor, targets: Tensor) -> Tensor:
    logits = head(states)
    wide = logits if logits.dtype == torch.float64 else logits.float()
    columns = targets[:, None] if targets.ndim == 1 else targets
    logprobs: Tensor = wide.gather(1, columns) - wide.logsumexp(1, keepdim=True)
    return logprobs.view(targets.shape)


def layers_of(model: Any) -> nn.ModuleList:
    """The layers of a model: its first list of modules as long as ``num_hidden_layers``."""
    wanted = model.config.get_text_config().num_hidden_layers
    for module in model.modules():
        if isinstance(module, nn.ModuleList) and len(module) == wanted:
            return module
    raise TypeError(f"{type(model).__name__} has no list of {wanted} layers")
