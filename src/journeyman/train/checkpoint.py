"""Durable checkpoints: a directory that is whole or absent, named by its step, verified by digest before it is used.

``<root>/step-00000050/`` holds ``config.json`` and ``model.safetensors`` (so it loads as a plain model),
``optimizer.safetensors`` and ``state.json`` (step, digests, what the caller added). No pickle.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from journeyman import durable
from journeyman.digest import sha256
from journeyman.errors import InputError
from journeyman.train.model import (
    CONFIG_FILE,
    WEIGHTS_FILE,
    CausalLM,
    check_shape,
    config_text,
    fill_model,
    named_weights,
    read_config,
    read_tensors,
    shape_of,
    weights_bytes,
)

if TYPE_CHECKING:
    from torch import Tensor

    from journeyman.train.optimizer import PolicyOptimizer

OPTIMIZER_FILE, STATE_FILE = "optimizer.safetensors", "state.json"
PREFIX = "step-"


@dataclass(frozen=True)
class Checkpoint:
    """A verified checkpoint in memory.

    Attributes:
        path: its directory.
        step: optimizer steps completed.
        config: the model's ``config.json``.
        weights, moments: tensors by name.
        extra: what the caller stored, JSON.
    """

    path: Path
    step: int
    config: dict[str, Any]
    weights: dict[str, Tensor]
    moments: dict[str, Tensor]
    extra: dict[str, Any]

    def restore(self, model: CausalLM, optimizer: PolicyOptimizer) -> None:
        """Put weights and moments back.

        Raises:
            InputError: the checkpoint is of another model shape or optimizer; names file, field, value, expected value.
        """
        check_shape(self.path, shape_of(model), self.config)
        fill_model(model, self.weights, self.path / WEIGHTS_FILE)
        optimizer.load(self.moments, str(self.path / OPTIMIZER_FILE))


def save_checkpoint(
    root: Path,
    step: int,
    model: CausalLM,
    optimizer: PolicyOptimizer,
    extra: Mapping[str, Any],
    *,
    keep: int = 2,
) -> Path:
    """Write ``<root>/step-<step>`` durably, then drop all but the newest ``keep``.

    Returns when the checkpoint survives ``kill -9`` and power loss. An existing one of the same step is replaced.

    Raises:
        StorageError: the disk is full or the place is not writable; older checkpoints are untouched.
    """
    final = root / f"{PREFIX}{step:08d}"
    staging = root / f".{final.name}.{os.getpid()}.tmp"
    shutil.rmtree(staging, ignore_errors=True)
    digests: dict[str, str] = {}
    try:
        for name, data in _files(model, optimizer):
            durable.write_bytes(staging / name, data)
            digests[name] = sha256(data)
            del data  # before the next file is made
        durable.write_json(staging / STATE_FILE, {"step": step, "sha256": digests, "extra": dict(extra)})
        durable.publish_directory(staging, final)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    for old in _all(root)[:-keep]:
        shutil.rmtree(old, ignore_errors=True)
    return final


def _files(model: CausalLM, optimizer: PolicyOptimizer) -> Iterator[tuple[str, bytes]]:
    """The files of a checkpoint one after the other, so that no two of them need memory at the same time."""
    yield WEIGHTS_FILE, weights_bytes(named_weights(model))
    yield OPTIMIZER_FILE, weights_bytes(optimizer.state())
    yield CONFIG_FILE, config_text(model).encode()


def latest(root: Path) -> Path | None:
    """The checkpoint of the highest step below ``root``, or None. What a killed writer left behind is not one."""
    found = _all(root)
    return found[-1] if found else None


def _all(root: Path) -> list[Path]:
    return sorted(p for p in root.glob(f"{PREFIX}*") if p.is_dir()) if root.is_dir() else []


def load_checkpoint(path: Path) -> Checkpoint:
    """Read and verify a checkpoint directory.

    Raises:
        InputError: a file is missing, not readable, or not the one that was written; names the file.
    """
    try:
        state = json.loads(_read(path / STATE_FILE))
        step, digests, extra = int(state["step"]), dict(state["sha256"]), dict(state["extra"])
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(str(path / STATE_FILE), f"is damaged: {error!r}", hint=_DAMAGED) from error
    data = {name: _read(path / name) for name in (WEIGHTS_FILE, OPTIMIZER_FILE, CONFIG_FILE)}
    for name, content in data.items():
        if sha256(content) != digests.get(name):
            problem = f"is damaged: its sha256 is {sha256(content)[:12]}..., {STATE_FILE} says {digests.get(name)!r}"
            raise InputError(str(path / name), problem, hint=_DAMAGED)
    weights = read_tensors(data[WEIGHTS_FILE], path / WEIGHTS_FILE)
    moments = read_tensors(data[OPTIMIZER_FILE], path / OPTIMIZER_FILE)
    return Checkpoint(path, step, read_config(path), weights, moments, extra)


_DAMAGED = "remove this checkpoint's directory to continue from the one before it"


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise InputError(str(file), f"cannot be read: {error.strerror}", hint=_DAMAGED) from error
