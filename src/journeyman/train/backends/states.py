"""What a checkpoint of one process looks like: a plain model directory with moments and state beside it.

``PlainStates`` is ``checkpoint.py``. ``HubStates`` serves every other model: the same directory for a model trained in
full (transformers loads it), or the adapter alone (peft loads it). Both are whole or absent, and verified by digest.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from journeyman import durable
from journeyman.digest import sha256_file
from journeyman.errors import InputError
from journeyman.train.backends.hub import copy_companions, disk_state, read_policy, write_weights
from journeyman.train.backends.lora import ADAPTER_WEIGHTS, adapter_state, is_adapter, save_adapter
from journeyman.train.backends.spec import LoraSpec
from journeyman.train.checkpoint import OPTIMIZER_FILE, PREFIX, STATE_FILE, load_checkpoint, save_checkpoint
from journeyman.train.model import CONFIG_FILE, CausalLM, config_text, read_tensors, weights_bytes

if TYPE_CHECKING:
    from torch import Tensor

    from journeyman.train.optimizer import PolicyOptimizer

KEEP = 2
"""Checkpoints that stay below one root."""
DAMAGED = "remove this checkpoint's directory to continue from the one before it"


class States(Protocol):
    """Writes and reads the checkpoints of one trainer."""

    def save(
        self, root: Path, step: int, model: CausalLM, optimizer: PolicyOptimizer, extra: Mapping[str, Any]
    ) -> Path:
        """Write ``<root>/step-<step>`` durably; returns it. Raises StorageError."""
        ...

    def load(self, path: Path, model: CausalLM, optimizer: PolicyOptimizer) -> tuple[int, dict[str, Any]]:
        """Put weights and moments back; returns the step and what the caller stored. Raises InputError."""
        ...


class PlainStates:
    """The format of ``checkpoint.py``: dense Qwen3 and Llama, float32."""

    def save(
        self, root: Path, step: int, model: CausalLM, optimizer: PolicyOptimizer, extra: Mapping[str, Any]
    ) -> Path:
        """As ``States.save``."""
        return save_checkpoint(root, step, model, optimizer, extra)

    def load(self, path: Path, model: CausalLM, optimizer: PolicyOptimizer) -> tuple[int, dict[str, Any]]:
        """As ``States.load``."""
        checkpoint = load_checkpoint(path)
        checkpoint.restore(model, optimizer)
        return checkpoint.step, checkpoint.extra


class HubStates:
    """Any model of transformers, trained in full or through an adapter.

    Args:
        source: the directory the training started from; its tokenizer goes along.
        lora: the adapter, or None.
    """

    def __init__(self, source: Path, lora: LoraSpec | None) -> None:
        self._source, self._lora = source, lora

    def save(
        self, root: Path, step: int, model: CausalLM, optimizer: PolicyOptimizer, extra: Mapping[str, Any]
    ) -> Path:
        """As ``States.save``."""

        def write(staging: Path) -> None:
            state = {name: tensor.detach() for name, tensor in model.state_dict().items()}
            if self._lora is None:
                write_weights(disk_state(model, state), staging)
                durable.write_text(staging / CONFIG_FILE, config_text(model))
            else:
                save_adapter(state, self._lora, staging, base=str(self._source))
            copy_companions(self._source, staging)
            durable.write_bytes(staging / OPTIMIZER_FILE, weights_bytes(optimizer.state()))

        return publish(root, step, write, extra)

    def load(self, path: Path, model: CausalLM, optimizer: PolicyOptimizer) -> tuple[int, dict[str, Any]]:
        """As ``States.load``."""
        step, extra = verified(path)
        if self._lora is None:
            stored = read_policy(path, dtype=str(model.dtype).removeprefix("torch.")).state_dict()
            fill(dict(model.state_dict()), dict(stored), path)
        else:
            file = path / ADAPTER_WEIGHTS
            if not file.is_file():
                raise InputError(str(path), f"holds no {ADAPTER_WEIGHTS}", allowed="a checkpoint of this adapter")
            own = adapter_state({n: p.detach() for n, p in model.named_parameters() if is_adapter(n)})
            fill(own, read_tensors(file.read_bytes(), file), path)
        file = path / OPTIMIZER_FILE
        optimizer.load(read_tensors(file.read_bytes(), file), str(file))
        return step, extra


def publish(root: Path, step: int, write: Any, extra: Mapping[str, Any], keep: int = KEEP) -> Path:
    """Let ``write(directory)`` fill a checkpoint, add its digests and state, and make it appear at once.

    Returns when the checkpoint survives ``kill -9``; all but the newest ``keep`` of the root are dropped then.

    Raises:
        StorageError: it cannot be written; older checkpoints are untouched.
    """
    final = root / f"{PREFIX}{step:08d}"
    staging = root / f".{final.name}.{os.getpid()}.tmp"
    shutil.rmtree(staging, ignore_errors=True)
    try:
        write(staging)
        seal(staging, step, extra)
        durable.publish_directory(staging, final)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    for old in sorted(p for p in root.glob(f"{PREFIX}*") if p.is_dir())[:-keep]:
        shutil.rmtree(old, ignore_errors=True)
    return final


def seal(staging: Path, step: int, extra: Mapping[str, Any]) -> None:
    """Write the state file with the digest of every file below ``staging``."""
    files = sorted(path for path in staging.rglob("*") if path.is_file())
    digests = {str(path.relative_to(staging)): sha256_file(path) for path in files}
    durable.write_json(staging / STATE_FILE, {"step": step, "sha256": digests, "extra": dict(extra)})


def verified(path: Path) -> tuple[int, dict[str, Any]]:
    """Step and ``extra`` of a checkpoint whose files are all as they were written.

    Raises:
        InputError: names the file that is missing, unreadable or changed.
    """
    file = path / STATE_FILE
    try:
        state = json.loads(file.read_text(encoding="utf-8"))
        step, digests, extra = int(state["step"]), dict(state["sha256"]), dict(state["extra"])
    except OSError as error:
        raise InputError(str(file), f"cannot be read: {error.strerror}", hint=DAMAGED) from error
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(str(file), f"is damaged: {error!r}", hint=DAMAGED) from error
    for name, digest in digests.items():
        if not (path / name).is_file() or sha256_file(path / name) != digest:
            raise InputError(str(path / name), "is missing or not what was written", hint=DAMAGED)
    return step, extra


def fill(own: Mapping[str, Tensor], stored: Mapping[str, Tensor], where: Path) -> None:
    """Copy tensors of equal names and shapes in place; all are checked first.

    Raises:
        InputError: one is missing, left over or of another shape.
    """
    import torch

    for name in sorted(own.keys() ^ stored.keys()):
        raise InputError(f"{where}:{name}", "is there on one side only: a checkpoint of another model")
    for name, tensor in own.items():
        if tensor.shape != stored[name].shape:
            found, wanted = tuple(stored[name].shape), tuple(tensor.shape)
            raise InputError(f"{where}:{name}", f"found shape {found}", allowed=str(wanted))
    with torch.no_grad():
        for name, tensor in own.items():
            tensor.copy_(stored[name])
