"""The Trainer verbs on one device, one process.

Dense Qwen3 and Llama in float32 go through the forward of ``decoder.py``, which computes equal prefixes once. All else
(mixtures, adapters, other families, a GPU) goes through the model's own forward (``stock.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from journeyman.train.backends.batch import NOTHING, add, asked_ids, loss_of, spread
from journeyman.train.backends.decoder import check_supported, token_logprobs
from journeyman.train.backends.states import PlainStates, States
from journeyman.train.layout import layout_of
from journeyman.train.losses import PolicyLoss
from journeyman.train.model import CausalLM
from journeyman.train.optimizer import OptimizerSpec, PolicyOptimizer
from journeyman.train.packing import grouped_batches
from journeyman.train.protocol import ForwardMetrics, TrainRow, WeightReceiver

TOKENS_PER_MICRO_BATCH = 4096
"""Default budget of a micro-batch. On CPU the fastest is what a core's cache holds (measured: 2k to 6k); no result
depends on it."""

RL_OPTIMIZER = OptimizerSpec(lr=3e-4)
"""Of the RL stage: AdamW, fresh, no schedule."""

Forward = Callable[[Sequence[TrainRow], bool], Tensor]
"""The logprobs of all trained tokens of some rows, [trained tokens], differentiable; when asked for the rows' likeliest
tokens too, [trained tokens, 1 + k]."""
Export = Callable[[dict[str, Tensor]], dict[str, Tensor]]
"""From a model's own state dict to the one that engines read."""


class TorchTrainer:
    """A policy and its optimizer on this machine.

    Args:
        model: trained in place; float32 Qwen3 or Llama unless ``forward`` is given.
        optimizer: rates.
        train_threads: torch threads inside each verb; None leaves torch's setting alone. Across numbers of threads
            results agree to the last few bits, not to the bit.
        tokens_per_micro_batch: budget of one forward and backward.
        steps: optimizer steps done before, for the names of checkpoints.
        forward: computes logprobs; None takes the forward of ``decoder.py``.
        export: what ``push_weights`` makes of the state dict; None hands it over as it is.
        states: writes and reads checkpoints; None takes the format of ``checkpoint.py``.

    Attributes:
        tokens_forwarded: tokens of all rows that went through a forward so far, with or without gradient.
    """

    def __init__(
        self,
        model: CausalLM,
        optimizer: OptimizerSpec = RL_OPTIMIZER,
        *,
        train_threads: int | None = None,
        tokens_per_micro_batch: int = TOKENS_PER_MICRO_BATCH,
        steps: int = 0,
        forward: Forward | None = None,
        export: Export | None = None,
        states: States | None = None,
    ) -> None:
        if forward is None:
            check_supported(model)
        self.model, self.steps = model, steps
        self.tokens_forwarded = 0
        self._optimizer = PolicyOptimizer(model, optimizer)
        self._threads, self._cap = train_threads, tokens_per_micro_batch
        self._forward, self._export = forward or self._decoder_forward, export
        self._states = states or PlainStates()

    def forward_backward(
        self, rows: Sequence[TrainRow], weights: Sequence[NDArray[np.float64]], loss: PolicyLoss
    ) -> ForwardMetrics:
        """As ``Trainer.forward_backward``. One forward per token, whatever the loss needs."""
        total = NOTHING
        with threads(self._threads):
            for part in self._micro_batches(rows):
                chosen = [rows[i] for i in part]
                logprobs = self._logprobs(chosen, topk="topk_logp_new" in loss.needs)
                value, metrics = loss_of(chosen, [weights[i] for i in part], loss, logprobs)
                value.backward()  # type: ignore[no-untyped-call]
                total = add(total, metrics)
        return total

    def forward_logprobs(self, rows: Sequence[TrainRow]) -> list[NDArray[np.float32]]:
        """As ``Trainer.forward_logprobs``."""
        results = [np.zeros(0, dtype=np.float32)] * len(rows)
        with threads(self._threads), torch.no_grad():
            for part in self._micro_batches(rows):
                chosen = [rows[i] for i in part]
                for i, values in zip(part, spread(chosen, self._logprobs(chosen).cpu().numpy()), strict=True):
                    results[i] = values
        return results

    def optim_step(self) -> float:
        """As ``Trainer.optim_step``."""
        with threads(self._threads):
            norm = self._optimizer.step()
        self.steps += 1
        return norm

    def save_state(self, root: Path, extra: dict[str, Any] | None = None) -> Path:
        """As ``Trainer.save_state``; the directory is named by the steps done."""
        return self._states.save(root, self.steps, self.model, self._optimizer, extra or {})

    def load_state(self, path: Path) -> dict[str, Any]:
        """As ``Trainer.load_state``."""
        self.steps, extra = self._states.load(path, self.model, self._optimizer)
        return extra

    def push_weights(self, engine: WeightReceiver, version: int) -> None:
        """As ``Trainer.push_weights``: copies, so that the next step cannot change what the engine serves."""
        state = {name: tensor.detach() for name, tensor in self.model.state_dict().items()}
        if self._export is not None:
            state = self._export(state)
        engine.update_weights({name: tensor.cpu().clone() for name, tensor in state.items()}, version)

    def close(self) -> None:
        """As ``Trainer.close``: there is nothing but memory here, which goes with the trainer."""

    def _logprobs(self, rows: Sequence[TrainRow], *, topk: bool = False) -> Tensor:
        """[trained tokens], or [trained tokens, 1 + k] with the rows' likeliest tokens."""
        self.tokens_forwarded += sum(len(row.ids) for row in rows)
        return self._forward(rows, topk)

    def _decoder_forward(self, rows: Sequence[TrainRow], topk: bool) -> Tensor:
        layout = layout_of([row.ids for row in rows], [row.mask for row in rows], share_prefixes=True)
        return token_logprobs(self.model, layout, asked_ids(rows) if topk else None)

    def _micro_batches(self, rows: Sequence[TrainRow]) -> list[list[int]]:
        return grouped_batches([len(row.ids) for row in rows], [row.prompt for row in rows], self._cap)


@contextmanager
def threads(count: int | None) -> Iterator[None]:
    """Run the body with ``count`` torch threads, then go back to as many as before; None changes nothing."""
    if count is None or count == torch.get_num_threads():
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
