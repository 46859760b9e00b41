"""The verbs of one megatron-core rank. As ``rank.Work``."""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor

from journeyman.engines.embedded.checkpoint import read_directory
from journeyman.train.backends.batch import NOTHING, add, loss_of
from journeyman.train.backends.group.adam import MOMENTS, ShardAdam, clipped_norm
from journeyman.train.backends.group.fsdp2 import IDLE_ROW
from journeyman.train.backends.group.megatron.gradients import summed
from journeyman.train.backends.group.megatron.model import build, check_layout, fill, fill_from, named_parts, prepare
from journeyman.train.backends.group.megatron.names import Shape, is_expert, joined
from journeyman.train.backends.group.megatron.slices import Laid, Slices
from journeyman.train.backends.group.rank import Batch
from journeyman.train.backends.spec import BackendSpec
from journeyman.train.losses import PolicyLoss
from journeyman.train.optimizer import OptimizerSpec
from journeyman.train.protocol import ForwardMetrics
from journeyman.train.transfer.files import read_file, write_file

WEIGHTS, OPTIMIZER = "model.safetensors", "optimizer.safetensors"
POSITIONS = 262_144
"""Largest position; rotary angles are computed, not stored, so a large one costs nothing."""


class MegatronWork:
    """A part of the model, of its gradients and of its moments."""

    def __init__(self, spec: BackendSpec, model: Path, optimizer: OptimizerSpec) -> None:
        from megatron.core import parallel_state as state

        config, _ = read_directory(model)
        self._spec, self._source, self._shape = spec, model, Shape.of(config, str(model / "config.json"))
        check_layout(spec, self._shape)
        prepare(spec)
        self._model = build(spec, self._shape, POSITIONS)
        fill(self._model, model, self._shape, spec)
        self._model.eval()
        self._parts = named_parts(self._model, self._shape, spec)
        self.reports = (
            state.is_pipeline_last_stage()
            and state.get_tensor_model_parallel_rank() == 0
            and state.get_context_parallel_rank() == 0
        )
        self._slices = Slices(spec)
        self._adam = self._optimizer(optimizer)

    def forward_backward(self, batches: Sequence[Batch], loss: PolicyLoss) -> ForwardMetrics:
        total = NOTHING
        for metrics in self._run(batches, loss):
            total = add(total, metrics)
        return total

    def forward_logprobs(self, batches: Sequence[Batch]) -> NDArray[np.float32]:
        with torch.no_grad():
            parts = [np.asarray(part, np.float32) for part in self._run(batches, None)]
        return np.concatenate(parts) if parts else np.zeros(0, np.float32)

    def optim_step(self) -> float:
        gradients, square = summed(self._parts, self._shape)
        norm = clipped_norm(square, dist.all_reduce)
        try:
            self._adam.step(gradients, norm)
        finally:
            for part in self._parts.values():
                part.grad = None
        return norm

    def save(self, folder: Path) -> None:
        weights = self._collected(self._parts)
        moments: dict[str, Tensor] = {"step": torch.tensor([float(self._adam.step_count)])}
        for moment in MOMENTS:
            moments |= {f"{moment}/{name}": t for name, t in self._collected(self._moments[moment]).items()}
        if dist.get_rank() == 0:
            write_file(weights, folder / WEIGHTS)
            write_file(moments, folder / OPTIMIZER)
            shutil.copy(self._source / "config.json", folder / "config.json")
        dist.barrier()

    def load(self, folder: Path) -> None:
        fill_from(self._parts, read_file(folder / WEIGHTS), str(folder / WEIGHTS), self._shape, self._spec)
        moments = read_file(folder / OPTIMIZER)
        self._adam.step_count = int(moments.pop("step").item())
        for moment in MOMENTS:
            named = {n.removeprefix(f"{moment}/"): t for n, t in moments.items() if n.startswith(f"{moment}/")}
            fill_from(self._moments[moment], named, str(folder / OPTIMIZER), self._shape, self._spec)
        dist.barrier()

    def gather(self, path: Path) -> None:
        weights = self._collected(self._parts)
        dist.barrier()  # every rank is out of its collectives before anybody speaks to an engine
        if dist.get_rank() == 0:
            write_file(weights, path)

    def _optimizer(self, spec: OptimizerSpec) -> ShardAdam:
        where = torch.device("cpu") if self._spec.layout.offload else torch.device(self._spec.device)
        self._moments = {
            moment: {name: torch.zeros_like(p, dtype=torch.float32, device=where) for name, p in self._parts.items()}
            for moment in MOMENTS
        }
        shards = {name: p.data for name, p in self._parts.items()}
        tp, rows = self._spec.layout.tp, self._shape.padded_vocab(self._spec.layout.tp)
        from megatron.core import parallel_state

        first = self._shape.vocab - spec.new_rows - parallel_state.get_tensor_model_parallel_rank() * rows // tp
        heads = ["embedding.word_embeddings.weight"] + (["output_layer.weight"] if self._shape.tied else [])
        boosted = {name: (max(0, first), math.sqrt(self._shape.hidden)) for name in heads} if spec.new_rows else {}
        return ShardAdam(shards, self._moments, dict.fromkeys(shards, spec.lr), boosted)

    def _run(self, batches: Sequence[Batch], loss: PolicyLoss | None) -> list[Any]:
        """Results of the micro-batches with rows, on the last pipeline stage: figures, or logprobs without a loss."""
        if self._spec.layout.pp > 1:
            return self._pipelined(batches, loss)
        found = []
        for batch in batches:
            laid = self._slices.laid(batch[0] or [IDLE_ROW])
            value, result = self._evaluated(self._model(laid.ids, laid.positions, laid.mask), laid, batch, loss)
            if loss is not None:
                value.backward()
            found.append(result)
        return [result for result in found if result is not None]

    def _pipelined(self, batches: Sequence[Batch], loss: PolicyLoss | None) -> list[Any]:
        from megatron.core.pipeline_parallel import get_forward_backward_func

        def forward_step(pending: Iterator[Batch], model: Any) -> tuple[Any, Any]:
            batch = next(pending)
            laid = self._slices.laid(batch[0] or [IDLE_ROW])

            def evaluate(output: Tensor) -> tuple[Tensor, dict[str, Any]]:
                value, result = self._evaluated(output, laid, batch, loss)
                return value * len(batches) / self._spec.layout.cp, {"result": result}  # the schedule divides by both

            return model(laid.ids, laid.positions, laid.mask), evaluate

        longest = max(len(row.ids) for rows, _ in batches for row in (rows or [IDLE_ROW]))
        found = get_forward_backward_func()(
            forward_step_func=forward_step,
            data_iterator=iter(batches),
            model=[self._model],
            num_microbatches=len(batches),
            seq_length=longest,
            micro_batch_size=1,
            forward_only=loss is None,
        )
        return [entry["result"] for entry in found if entry["result"] is not None]

    def _evaluated(self, logits: Tensor, laid: Laid, batch: Batch, loss: PolicyLoss | None) -> tuple[Any, Any]:
        rows, weights = batch
        logprobs = self._slices.trained(self._next_logprobs(logits, laid.labels), laid)
        if not rows:
            return logprobs.sum() * 0.0, None
        if loss is None:
            return logprobs.sum() * 0.0, logprobs.detach().float().cpu().numpy()
        return loss_of(rows, weights, loss, logprobs)

    def _next_logprobs(self, logits: Tensor, labels: Tensor) -> Tensor:
        """[rows, places]: of each place's next token. Rows that pad the vocabulary to the ranks have no probability.

        Args:
            logits: [rows, places, this rank's vocabulary].
        """
        from megatron.core import parallel_state
        from megatron.core.tensor_parallel import vocab_parallel_cross_entropy

        first = parallel_state.get_tensor_model_parallel_rank() * logits.shape[-1]
        real = max(0, min(logits.shape[-1], self._shape.vocab - first))
        if real < logits.shape[-1]:
            padding = torch.arange(logits.shape[-1], device=logits.device) >= real
            logits = logits.masked_fill(padding, torch.finfo(logits.dtype).min)
        by_place = logits.transpose(0, 1).contiguous()  # it writes into what it is given
        losses: Tensor = vocab_parallel_cross_entropy(by_place, labels.transpose(0, 1).contiguous())
        return -losses.transpose(0, 1)

    def _collected(self, parts: dict[str, Any]) -> dict[str, Tensor]:
        """On rank 0, whole tensors under the checkpoint's names; all ranks take part in the same order."""
        from megatron.core import parallel_state as state

        own: dict[str, Tensor] = {}
        group, tp = state.get_tensor_model_parallel_group(), self._spec.layout.tp
        first = state.get_data_parallel_rank(with_context_parallel=True) == 0
        for name, part in parts.items():
            if name == "output_layer.weight" and self._shape.tied:
                continue  # the last stage's copy of the embedding
            here = part.detach().contiguous()
            if is_expert(name):
                if dist.get_rank(state.get_expert_data_parallel_group()) == 0:
                    own |= joined(name, [here.cpu()], self._shape)
                continue
            shards = [torch.empty_like(here) for _ in range(tp)]
            dist.all_gather(shards, here, group=group)
            if first and state.get_tensor_model_parallel_rank() == 0:
                own |= joined(name, [shard.cpu() for shard in shards], self._shape)
        everybody: list[Any] | None = [None] * dist.get_world_size() if dist.get_rank() == 0 else None
        dist.gather_object(own, everybody)
        return {name: tensor for part in everybody or [] for name, tensor in part.items()}
