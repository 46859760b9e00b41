"""One rank of FSDP2: every layer's weights, gradients and moments cut over all ranks (torch ``fully_shard``)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy, fully_shard
from torch.distributed.tensor import DTensor

from journeyman.train.backends.batch import NOTHING, add, loss_of
from journeyman.train.backends.group.adam import EMBEDDING, MOMENTS, ShardAdam, clipped_norm, rates_of
from journeyman.train.backends.group.rank import Batch
from journeyman.train.backends.group.sharded import ShardedState
from journeyman.train.backends.local import engine_state, open_policy
from journeyman.train.backends.spec import BackendSpec
from journeyman.train.backends.stock import end_to_end, layers_of, padded
from journeyman.train.losses import PolicyLoss
from journeyman.train.model import config_text, rate_scale
from journeyman.train.optimizer import OptimizerSpec
from journeyman.train.protocol import ForwardMetrics, TrainRow
from journeyman.train.transfer.files import write_file


class Fsdp2Work:
    """As ``rank.Work``.

    Weights are held in float32 (float64 where the recipe says so); with ``dtype = bfloat16`` the forward computes in
    it, gradients are summed in float32.
    """

    def __init__(self, spec: BackendSpec, model: Path, optimizer: OptimizerSpec) -> None:
        self.reports = True
        self._spec, self._source = spec, model
        self._device = torch.device(spec.device)
        held = "float64" if spec.dtype == "float64" else "float32"
        policy = open_policy(spec, model, held)
        scale = rate_scale(policy.model)
        mesh = init_device_mesh(spec.device, (dist.get_world_size(),))
        options: dict[str, Any] = {"mesh": mesh, "offload_policy": _offload(spec)}
        if spec.dtype == "bfloat16":
            options["mp_policy"] = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
        for layer in layers_of(policy.model):
            fully_shard(layer, **options)
        fully_shard(policy, **options)
        self._policy = policy
        self._optimizer = ShardedAdam(policy.model, optimizer, scale)

    def forward_backward(self, batches: Sequence[Batch], loss: PolicyLoss) -> ForwardMetrics:
        total = NOTHING
        for rows, weights in batches:
            logprobs = self._logprobs(rows, topk="topk_logp_new" in loss.needs)
            if rows:
                value, metrics = loss_of(rows, weights, loss, logprobs)
                total = add(total, metrics)
            else:
                value = logprobs.sum() * 0.0
            summed: Any = value * dist.get_world_size()  # FSDP takes the mean over ranks; a step is a sum
            summed.backward()
        return total

    def forward_logprobs(self, batches: Sequence[Batch]) -> NDArray[np.float32]:
        parts = []
        with torch.no_grad():
            for rows, _ in batches:
                logprobs = self._logprobs(rows)
                if rows:
                    parts.append(logprobs.float().cpu().numpy())
        return np.concatenate(parts) if parts else np.zeros(0, np.float32)

    def optim_step(self) -> float:
        return self._optimizer.step()

    def save(self, folder: Path) -> None:
        self._state().save(folder)
        if dist.get_rank() == 0:
            (folder / "config.json").write_text(config_text(self._policy.model), encoding="utf-8")

    def load(self, folder: Path) -> None:
        state = self._state()
        state.load(folder)
        self._optimizer.step_count = state.step_count

    def gather(self, path: Path) -> None:
        whole: dict[str, Tensor] = {}
        tied = getattr(self._policy.model, "all_tied_weights_keys", None) or {}
        for name, tensor in self._policy.model.state_dict().items():  # the same order on all ranks
            if name in tied:
                continue
            full = tensor.full_tensor() if isinstance(tensor, DTensor) else tensor
            if dist.get_rank() == 0:
                whole[name] = full.detach().cpu()
            del full
        dist.barrier()  # every rank is out of its collectives before anybody speaks to an engine
        if dist.get_rank() == 0:
            write_file(engine_state(self._policy.model, whole, self._spec), path)

    def _logprobs(self, rows: Sequence[TrainRow], *, topk: bool = False) -> Tensor:
        if rows:
            batch = self._policy.laid(rows, topk=topk).to(self._device)
        else:
            batch = (end_to_end if self._policy.packs else padded)([IDLE_ROW]).to(self._device)
        logprobs: Tensor = self._policy(
            batch.ids, batch.at, batch.targets, batch.experts, batch.positions, batch.lengths
        )
        return logprobs

    def _state(self) -> ShardedState:
        weights = {name: p for name, p in self._policy.model.named_parameters() if p.requires_grad}
        return ShardedState(weights, self._optimizer.moments, self._optimizer.step_count)


class ShardedAdam:
    """``ShardAdam`` on the local parts of distributed parameters.

    Attributes:
        moments: per moment and parameter, a tensor cut as the parameter is.
    """

    def __init__(self, model: Any, spec: OptimizerSpec, scale: float) -> None:
        self._parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
        embedding = model.get_input_embeddings().weight
        first = max(0, embedding.shape[0] - spec.new_rows - _first_row(embedding))
        boosted = {EMBEDDING: (first, math.sqrt(embedding.shape[1]))} if spec.new_rows else {}
        self.moments: dict[str, dict[str, Any]] = {
            moment: {name: torch.zeros_like(p) for name, p in self._parameters.items()} for moment in MOMENTS
        }
        shards = {name: _local(p.data) for name, p in self._parameters.items()}
        moments = {moment: {name: _local(t) for name, t in named.items()} for moment, named in self.moments.items()}
        self._adam = ShardAdam(shards, moments, rates_of(shards, spec, scale), boosted)

    @property
    def step_count(self) -> int:
        """Steps taken."""
        return self._adam.step_count

    @step_count.setter
    def step_count(self, value: int) -> None:
        self._adam.step_count = value

    def step(self) -> float:
        """As ``PolicyOptimizer.step``."""
        gradients = {name: _local(p.grad) for name, p in self._parameters.items() if p.grad is not None}
        square = torch.zeros((), dtype=torch.float64)
        for gradient in gradients.values():
            square += gradient.detach().double().pow(2).sum().cpu()
        norm = clipped_norm(square, dist.all_reduce)
        try:
            self._adam.step(gradients, norm)
        finally:
            for parameter in self._parameters.values():
                parameter.grad = None
        return norm


def _local(tensor: Tensor) -> Tensor:
    """This rank's shard; what is written into it is written into the whole."""
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def _first_row(parameter: Any) -> int:
    """The row of the whole matrix at which this rank's shard begins; shards are as ``torch.chunk`` cuts them."""
    if not isinstance(parameter, DTensor):
        return 0
    chunk = -(-parameter.shape[0] // dist.get_world_size())
    return min(chunk * dist.get_rank(), parameter.shape[0])


def _offload(spec: BackendSpec) -> OffloadPolicy:
    return CPUOffloadPolicy() if spec.layout.offload and spec.device == "cuda" else OffloadPolicy()


IDLE_ROW = TrainRow(np.zeros(2, np.int32), np.array([0, 1], np.uint8), np.zeros(2, np.float32), 0.0, 0)
"""What a rank without rows computes: it takes part in every collective, and its loss is times 0."""
