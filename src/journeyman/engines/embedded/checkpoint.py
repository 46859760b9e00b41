"""Read a Hugging Face model directory: configuration and safetensors, in one file or several."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from journeyman.errors import InputError

INDEX = "model.safetensors.index.json"
"""Names the file of every tensor where there are several."""


def read_directory(
    path: Path, *, expected: Mapping[str, object] | None = None
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The configuration and the whole state dict of a model directory.

    Args:
        expected: fields of ``config.json`` and the values that they must have.

    Raises:
        InputError: ``config.json`` or the weights are missing or cannot be read, or a field has another value than the
            expected one; names file, field, value found and value expected.
    """
    config_path = path / "config.json"
    try:
        config = json.loads(config_path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(str(config_path), f"cannot be read: {error}", hint="give a model directory") from error
    for field, value in (expected or {}).items():
        if config.get(field) != value:
            problem = f"found {config.get(field)!r}: a checkpoint of another model shape"
            raise InputError(f"{config_path}:{field}", problem, allowed=str(value))
    return config, read_state(path)


def read_state(path: Path) -> dict[str, Tensor]:
    """Every tensor of a directory of safetensors: the files that its index names, or else all there are.

    Raises:
        InputError: no file, a file that the index names and that is missing, or one that cannot be read.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    files = _files(path)
    state: dict[str, Tensor] = {}
    for file in files:
        try:
            state.update(load_file(file))
        except (OSError, SafetensorError) as error:
            raise InputError(str(file), f"cannot be read: {error}") from error
    return state


def _files(path: Path) -> list[Path]:
    index = path / INDEX
    if index.is_file():
        try:
            names = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
        except (OSError, ValueError, KeyError, AttributeError) as error:
            raise InputError(str(index), f"cannot be read: {error}", hint="save the model again") from error
        return sorted(path / name for name in names)
    files = sorted(path.glob("*.safetensors"))
    if not files:
        raise InputError(str(path), "holds no *.safetensors", hint="save the model with save_pretrained")
    return files
