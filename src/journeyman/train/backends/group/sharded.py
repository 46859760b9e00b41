"""A checkpoint that every rank writes a part of, and any number of ranks reads: torch's distributed checkpoint.

The parts are safetensors files; each says where its slices lie in the whole. Nothing is pickled.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageReader, HuggingFaceStorageWriter
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import save

WEIGHTS, OPTIMIZER = "weights", "optimizer"
"""Folders of a checkpoint's parts."""
_STEP = "step"


class ShardedState:
    """Weights and moments of one rank, as distributed tensors.

    Args:
        weights: name -> parameter.
        moments: per moment, name -> tensor cut as the parameter is.
        step_count: optimizer steps taken; ``load`` sets it.
    """

    def __init__(self, weights: Mapping[str, Any], moments: Mapping[str, Mapping[str, Any]], step_count: int) -> None:
        self._weights = {name: p.data for name, p in weights.items()}
        self._moments = {f"{moment}/{name}": t for moment, named in moments.items() for name, t in named.items()}
        self.step_count = step_count

    def save(self, folder: Path) -> None:
        """Write this rank's parts; all ranks call it."""
        step = {_STEP: torch.tensor([float(self.step_count)], dtype=torch.float64)}
        for part, state in ((WEIGHTS, self._weights), (OPTIMIZER, self._moments | step)):
            writer = HuggingFaceStorageWriter(str(folder / part), save_distributed=True)
            save(dict(state), storage_writer=writer)
        dist.barrier()

    def load(self, folder: Path) -> None:
        """Read into the tensors in place; all ranks call it."""
        step: dict[str, Tensor] = {_STEP: torch.zeros(1, dtype=torch.float64)}
        for part, state in ((WEIGHTS, self._weights), (OPTIMIZER, self._moments | step)):
            load(dict(state), storage_reader=HuggingFaceStorageReader(str(folder / part)))
        self.step_count = int(step[_STEP].item())
        dist.barrier()
