"""The torch back-end from a recipe: one process, one device."""

from __future__ import annotations

from pathlib import Path

from journeyman.train.backends.spec import BackendSpec
from journeyman.train.backends.torch import TorchTrainer
from journeyman.train.model import load_model
from journeyman.train.optimizer import OptimizerSpec


def open_trainer(spec: BackendSpec, model: Path, optimizer: OptimizerSpec) -> TorchTrainer:
    """As ``table.make_trainer``."""
    return TorchTrainer(
        load_model(model),
        optimizer,
        train_threads=spec.train_threads,
        tokens_per_micro_batch=spec.tokens_per_micro_batch,
    )
