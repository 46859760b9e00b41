"""A LoRA adapter as ``peft`` saves it: products of two thin matrices that are added to some of a model's matrices."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from journeyman.engines.errors import EngineError
from journeyman.errors import InputError

_NAME = re.compile(r"^base_model\.model\.(?P<module>.+?)\.lora_(?P<side>[AB])(?:\.\w+)?\.weight$")
_UNSUPPORTED = ("use_dora", "layer_replication", "modules_to_save", "megatron_config", "alora_invocation_tokens")


@dataclass(frozen=True)
class Adapter:
    """Low-rank additions by the name of the matrix they are added to.

    Attributes:
        pairs: (A [rank, in], B [out, rank], factor) for each name; the addition is ``factor * B @ A``.
    """

    pairs: Mapping[str, tuple[Tensor, Tensor, float]]

    def delta(self, name: str) -> Tensor | None:
        """What is added to a matrix, float32 [out, in]; None when nothing is."""
        if name not in self.pairs:
            return None
        a, b, factor = self.pairs[name]
        return (b.float() @ a.float()) * factor

    def check(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        """Raise EngineError unless every addition fits the matrix of that name and is finite."""
        for name, (a, b, _) in self.pairs.items():
            if name not in shapes or not name.endswith("_proj.weight"):
                raise EngineError(f"the adapter changes {name}, which is no matrix of this model's layers")
            if (b.shape[0], a.shape[1]) != shapes[name] or a.shape[0] != b.shape[1]:
                found = f"{tuple(b.shape)} x {tuple(a.shape)}"
                raise EngineError(f"the adapter has {found} for {name}, whose shape is {shapes[name]}")
            if not (a.isfinite().all() and b.isfinite().all()):
                raise EngineError(f"the adapter has values for {name} that are not finite")


def read_adapter(path: Path) -> Adapter:
    """The adapter in a directory with ``adapter_config.json`` and ``adapter_model.safetensors``.

    Raises:
        InputError: a file is missing or broken, or the adapter is of a kind that is not merged here.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    config_path, weights_path = path / "adapter_config.json", path / "adapter_model.safetensors"
    try:
        config: dict[str, Any] = json.loads(config_path.read_text(encoding="utf-8"))
        state = load_file(weights_path)
    except (OSError, ValueError, SafetensorError) as error:
        raise InputError(str(path), f"holds no adapter that can be read: {error}", hint="save it with peft") from error
    if config.get("peft_type", "LORA") != "LORA":
        raise InputError(f"{config_path}:peft_type", f"{config['peft_type']!r} is not merged here", allowed="LORA")
    for field in _UNSUPPORTED:
        if config.get(field):
            raise InputError(f"{config_path}:{field}", f"{config[field]!r} is not merged here", allowed="nothing")
    sides: dict[str, dict[str, Tensor]] = {}
    for key, tensor in state.items():
        match = _NAME.match(key)
        if match is None:
            raise InputError(f"{weights_path}:{key}", "is no part of a LoRA adapter of linear layers")
        sides.setdefault(match["module"], {})[match["side"]] = tensor
    pairs = {}
    for module, both in sides.items():
        if len(both) != 2:
            raise InputError(f"{weights_path}:{module}", "has only one of its two matrices")
        pairs[f"{module}.weight"] = (both["A"], both["B"], _factor(config, module, both["A"].shape[0]))
    return Adapter(pairs)


def _factor(config: Mapping[str, Any], module: str, rank: int) -> float:
    """alpha / rank, or alpha / sqrt(rank) (``use_rslora``), with the module's own alpha where one is given."""
    alpha = float(config.get("lora_alpha", rank))
    for pattern, value in (config.get("alpha_pattern") or {}).items():
        if re.match(rf"(.*\.)?({pattern})$", module):
            alpha = float(value)
    return alpha / math.sqrt(rank) if config.get("use_rslora") else alpha / rank
