"""Hugging Face directories in and out: any causal language model, in one safetensors file or many, tokenizer along.

Names in memory are those of the model class; names on disk and towards engines are those of the checkpoint. The two
differ for mixtures (experts are one tensor in memory, one each on disk).
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from journeyman import durable
from journeyman.errors import InputError
from journeyman.train.model import CONFIG_FILE, WEIGHTS_FILE, CausalLM, config_text, weights_bytes

if TYPE_CHECKING:
    from torch import Tensor

INDEX_FILE = "model.safetensors.index.json"
SHARD_BYTES = 4 * 2**30
"""Largest file of weights; a single larger tensor gets a file of its own."""
COMPANIONS = (
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "tokenizer.model",
    "special_tokens_map.json",
    "added_tokens.json",
    "chat_template.jinja",
    "vocab.json",
    "merges.txt",
)
"""Files beside the weights that a served model needs; those that are there are copied as they are."""


def read_policy(path: Path, dtype: str = "float32", device: str = "cpu") -> CausalLM:
    """The model of a directory, ready to train: no dropout, no cache, float tensors in ``dtype``.

    Raises:
        InputError: no such directory, a model type that transformers does not know as a causal language model, or
            weights that are missing or do not fit; names the directory and the reason.
    """
    import torch
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging

    logging.disable_progress_bar()
    if not (path / CONFIG_FILE).is_file():
        raise InputError(str(path), f"holds no {CONFIG_FILE}", allowed="a Hugging Face model directory")
    try:
        model, report = AutoModelForCausalLM.from_pretrained(
            path, dtype=getattr(torch, dtype), local_files_only=True, output_loading_info=True
        )
    except (OSError, ValueError, RuntimeError, KeyError) as error:
        raise InputError(str(path), f"cannot be opened: {error}", hint="save it with save_pretrained") from error
    lacking = sorted(report["missing_keys"])
    if lacking:
        raise InputError(f"{path}:{lacking[0]}", f"tensor missing, and {len(lacking) - 1} more", hint="save it again")
    model.config.use_cache = False
    model.eval()  # dropout off; a policy is trained as it is sampled
    return model.to(device)


def disk_state(model: CausalLM, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """A state dict under the names of the checkpoint, each tied tensor once.

    Args:
        state: name -> tensor as ``model.state_dict()`` names them, adapters merged.
    """
    from transformers.core_model_loading import revert_weight_conversion

    tied = {name for name in getattr(model, "all_tied_weights_keys", None) or {} if name in state}
    kept = {name: tensor for name, tensor in state.items() if name not in tied}
    return dict(revert_weight_conversion(model, kept))


def write_policy(
    model: CausalLM,
    state: Mapping[str, Tensor],
    path: Path,
    *,
    companions_of: Path | None = None,
    shard_bytes: int = SHARD_BYTES,
) -> Path:
    """Write a directory that transformers and the engines load; durable, and whole or absent.

    Args:
        state: name -> tensor as for ``disk_state``.
        companions_of: directory whose tokenizer files go along.
        shard_bytes: largest file of weights.

    Raises:
        StorageError: it cannot be written.
    """
    staging = path.with_name(f".{path.name}.tmp")
    shutil.rmtree(staging, ignore_errors=True)
    write_weights(disk_state(model, state), staging, shard_bytes)
    durable.write_text(staging / CONFIG_FILE, config_text(model))
    copy_companions(companions_of, staging)
    durable.publish_directory(staging, path)
    return path


def write_weights(state: Mapping[str, Tensor], path: Path, shard_bytes: int = SHARD_BYTES) -> None:
    """Write tensors as one safetensors file, or as several and their index where they exceed ``shard_bytes``."""
    shards: list[dict[str, Tensor]] = [{}]
    size = 0
    for name, tensor in state.items():
        if shards[-1] and size + tensor.nbytes > shard_bytes:
            shards.append({})
            size = 0
        shards[-1][name] = tensor
        size += tensor.nbytes
    if len(shards) == 1:
        durable.write_bytes(path / WEIGHTS_FILE, weights_bytes(_separate(shards[0])))
        return
    files: dict[str, str] = {}
    for number, shard in enumerate(shards, start=1):
        file = f"model-{number:05d}-of-{len(shards):05d}.safetensors"
        durable.write_bytes(path / file, weights_bytes(_separate(shard)))
        files |= dict.fromkeys(shard, file)
    total = sum(tensor.nbytes for tensor in state.values())
    durable.write_json(path / INDEX_FILE, {"metadata": {"total_size": total}, "weight_map": files})


def _separate(shard: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """CPU tensors that share no memory: the file format refuses shared ones."""
    ready: dict[str, Tensor] = {}
    seen: set[int] = set()
    for name, tensor in shard.items():
        value = tensor.detach().cpu().contiguous()
        if value.untyped_storage().data_ptr() in seen:
            value = value.clone()
        seen.add(value.untyped_storage().data_ptr())
        ready[name] = value
    return ready


def copy_companions(source: Path | None, path: Path) -> None:
    """Copy the files of ``COMPANIONS`` that ``source`` holds."""
    for name in COMPANIONS if source is not None else ():
        if source is not None and (source / name).is_file():
            durable.write_bytes(path / name, (source / name).read_bytes())


def model_type_of(path: Path) -> str:
    """``model_type`` of a directory's configuration; "" where there is none that can be read."""
    try:
        config: Any = json.loads((path / CONFIG_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ""
    return str(config.get("model_type", "")) if isinstance(config, dict) else ""
