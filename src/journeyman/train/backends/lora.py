"""Low-rank adapters through peft: put into a model, trained alone, merged for an engine, written as peft reads them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from journeyman import durable
from journeyman.errors import EnvironmentMissing, InputError
from journeyman.train.backends.spec import LoraSpec
from journeyman.train.model import CausalLM, weights_bytes

if TYPE_CHECKING:
    from torch import Tensor

ADAPTER_CONFIG, ADAPTER_WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
_NAME, _BASE = ".default", ".base_layer"
_PEFT_PREFIX = "base_model.model."


def inject(model: CausalLM, spec: LoraSpec) -> None:
    """Add an adapter to a model in place; only the adapter has gradients afterwards, and its product is 0 at first.

    Equal seeds give equal matrices, whatever torch's own generator stands at.

    Raises:
        EnvironmentMissing: peft is not installed. InputError: a target that the model lacks.
    """
    import torch

    try:
        from peft import LoraConfig, inject_adapter_in_model
    except ImportError as error:
        raise EnvironmentMissing("backend.lora needs peft: pip install peft") from error
    ends = {name.rpartition(".")[2] for name, _ in model.named_modules()}
    lacking = [target for target in spec.targets if target not in ends]
    if lacking:
        known = sorted(end for end in ends if end.endswith("_proj"))
        raise InputError("backend.lora.targets", f"the model has no {', '.join(lacking)}", allowed=", ".join(known))
    config = LoraConfig(r=spec.rank, lora_alpha=spec.alpha, target_modules=list(spec.targets), lora_dropout=0.0)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(spec.seed)
        inject_adapter_in_model(config, model)


def is_adapter(name: str) -> bool:
    """Whether a parameter's name is one of an adapter's."""
    return ".lora_A." in name or ".lora_B." in name


def merged(state: Mapping[str, Tensor], spec: LoraSpec) -> dict[str, Tensor]:
    """The weights of the model as if it had been trained in full: W + (alpha / rank) B A, under the plain names.

    Args:
        state: name -> tensor of the model with its adapter.
    """
    scale = spec.alpha / spec.rank
    plain: dict[str, Tensor] = {}
    for name, tensor in state.items():
        if is_adapter(name):
            continue
        stem = name.removesuffix(".weight")
        if not stem.endswith(_BASE):
            plain[name] = tensor
            continue
        stem = stem.removesuffix(_BASE)
        a, b = (state[f"{stem}.lora_{letter}{_NAME}.weight"] for letter in "AB")
        plain[f"{stem}.weight"] = tensor + scale * (b.float() @ a.float()).to(tensor.dtype)
    return plain


def adapter_state(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The adapter's tensors under the names of a peft checkpoint."""
    return {_PEFT_PREFIX + name.replace(_NAME, ""): tensor for name, tensor in state.items() if is_adapter(name)}


def save_adapter(state: Mapping[str, Tensor], spec: LoraSpec, path: Path, base: str = "") -> Path:
    """Write an adapter directory that peft and the engines load.

    Args:
        state: name -> tensor of the model with its adapter.
        base: name or path of the model below it, for whoever loads it later.

    Raises:
        StorageError: it cannot be written.
    """
    config: dict[str, Any] = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": base,
        "r": spec.rank,
        "lora_alpha": spec.alpha,
        "lora_dropout": 0.0,
        "target_modules": sorted(spec.targets),
        "bias": "none",
        "inference_mode": True,
    }
    durable.write_bytes(path / ADAPTER_WEIGHTS, weights_bytes(adapter_state(state)))
    durable.write_text(path / ADAPTER_CONFIG, json.dumps(config, indent=1) + "\n")
    return path
