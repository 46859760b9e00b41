"""The small policy: a stock tied ``Qwen3ForCausalLM`` with an initialisation that learns to copy, plain Qwen3 on disk.

Pretrained policies are Llama-shaped and load and save the same way. What is written loads through ``transformers``
(``from_pretrained``) and through every engine that reads these models; there is no private model class. torch and
transformers are imported when a model is first built or read.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from journeyman import durable
from journeyman.errors import InputError
from journeyman.seeds import key64

if TYPE_CHECKING:
    from torch import Tensor

CausalLM: TypeAlias = Any
"""A ``transformers`` model with ``config``, ``model`` (embed_tokens, layers, norm, rotary_emb) and ``lm_head``."""

ROPE_THETA = 1e4
"""Base of the rotary angles; contexts are hundreds of tokens long."""

CONFIG_FILE, WEIGHTS_FILE = "config.json", "model.safetensors"


@dataclass(frozen=True)
class ModelShape:
    """What must agree between a checkpoint and the run that loads it. Counts, except where said.

    Attributes:
        model_type: key of ``MODEL_CLASSES``.
    """

    vocab_size: int
    hidden: int = 128
    layers: int = 3
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 32
    ffn: int = 256
    positions: int = 1024
    model_type: str = "qwen3"

    def config_fields(self) -> dict[str, int]:
        """The same numbers under the names ``config.json`` gives them."""
        return {name: getattr(self, field) for field, name in _CONFIG_NAMES.items()}


MODEL_CLASSES = {"qwen3": ("Qwen3Config", "Qwen3ForCausalLM"), "llama": ("LlamaConfig", "LlamaForCausalLM")}
"""Names in ``transformers`` of the configuration and model of each model type."""

_CONFIG_NAMES = {
    "vocab_size": "vocab_size",
    "hidden": "hidden_size",
    "layers": "num_hidden_layers",
    "heads": "num_attention_heads",
    "kv_heads": "num_key_value_heads",
    "head_dim": "head_dim",
    "ffn": "intermediate_size",
    "positions": "max_position_embeddings",
}


def build_model(shape: ModelShape, seed: int) -> CausalLM:
    """A fresh float32 model; equal seeds give equal bytes on every machine.

    Initialisation: the sqrt(hidden)-scaled embedding rewritten inside a stock tied model. Embedding
    N(0, (0.02 sqrt(d))^2); final norm 1 / sqrt(d); q, k, v, gate, up N(0, (0.8 / sqrt(fan_in))^2); o, down
    N(0, (0.04 / sqrt(2 layers))^2); other norms 1. Transformers' own initialisation learns to copy in one of two seeds,
    this one in five of five (quickstart.md 0.1, 4.2). Train it with the learning-rate groups of ``optimizer.py``.
    """
    import torch

    model = _empty_model({**shape.config_fields(), **_FIXED_CONFIG})
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            std = _std(name, tuple(parameter.shape), shape)
            if std is None:
                parameter.fill_(1 / math.sqrt(shape.hidden) if name == "model.norm.weight" else 1.0)
            else:
                draws = np.random.default_rng(key64(seed, "model", name)).standard_normal(tuple(parameter.shape))
                parameter.copy_(torch.from_numpy((draws * std).astype(np.float32)))
    return model


def _std(name: str, size: tuple[int, ...], shape: ModelShape) -> float | None:
    if len(size) == 1:
        return None
    if name == "model.embed_tokens.weight":
        return 0.02 * math.sqrt(shape.hidden)
    if name.endswith(("o_proj.weight", "down_proj.weight")):
        return 0.04 / math.sqrt(2 * shape.layers)
    return 0.8 / math.sqrt(size[1])


_FIXED_CONFIG: dict[str, Any] = {
    "tie_word_embeddings": True,
    "attention_bias": False,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-6,
    "rope_parameters": {"rope_type": "default", "rope_theta": ROPE_THETA},
}


def load_libraries(model_type: str = "qwen3") -> None:
    """Import what building and reading a model needs: seconds, worth spending while something else waits."""
    import torch  # noqa: F401
    import transformers
    from safetensors.torch import load  # noqa: F401
    from transformers.initialization import no_init_weights  # noqa: F401

    for name in MODEL_CLASSES[model_type]:
        getattr(transformers, name)


def _empty_model(config: Mapping[str, Any], model_type: str = "qwen3") -> CausalLM:
    import transformers
    from transformers.initialization import no_init_weights

    config_class, model_class = (getattr(transformers, name) for name in MODEL_CLASSES[model_type])
    with no_init_weights():  # every parameter is filled by the caller
        model = model_class(config_class(**config)).float()
    model.tie_weights()
    model.config.dtype = "float32"
    return model


def llama_model(shape: ModelShape, weights: Mapping[str, Tensor], *, rope_theta: float, eps: float) -> CausalLM:
    """A tied float32 Llama of ``shape`` that holds ``weights``, named as in ``model.safetensors``.

    Args:
        rope_theta: base of the rotary angles.
        eps: of every norm.

    Raises:
        InputError: a tensor is missing, left over or of another shape.
    """
    rope = {"rope_type": "default", "rope_theta": rope_theta}
    fields = {**shape.config_fields(), **_FIXED_CONFIG, "rms_norm_eps": eps, "rope_parameters": rope}
    model = _empty_model(fields, "llama")
    fill_model(model, weights, Path("weights"))
    return model


def rate_scale(model: CausalLM) -> float:
    """The factor of the initialisation of ``build_model``, sqrt(hidden); 1 for a pretrained model, which lacks it.

    Its mark is the final norm, which starts at 1 / sqrt(hidden) and moves slowly: elsewhere it is 1 or more.
    """
    if model.config.model_type != "qwen3":
        return 1.0
    root = math.sqrt(model.config.hidden_size)
    return root if float(model.model.norm.weight.detach().abs().mean()) < 4 / root else 1.0


def named_weights(model: CausalLM) -> dict[str, Tensor]:
    """Every parameter once, under its name in ``model.safetensors``: a tied head is left to the embedding."""
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def save_model(model: CausalLM, path: Path) -> None:
    """Write ``config.json`` and ``model.safetensors`` into the directory ``path``, as ``save_pretrained`` would.

    Raises:
        StorageError: the place is not writable or the disk is full.
    """
    durable.write_bytes(path / WEIGHTS_FILE, weights_bytes(named_weights(model)))
    durable.write_text(path / CONFIG_FILE, config_text(model))


def config_text(model: CausalLM) -> str:
    """The model's ``config.json``."""
    model.config.architectures = [type(model).__name__]
    return str(model.config.to_json_string(use_diff=False))


def weights_bytes(weights: Mapping[str, Tensor]) -> bytes:
    """A safetensors file of the tensors."""
    from safetensors.torch import save

    return bytes(save({name: tensor.contiguous() for name, tensor in weights.items()}, metadata={"format": "pt"}))


def load_model(path: Path, expected: ModelShape | None = None) -> CausalLM:
    """The model stored in the directory ``path``, in float32.

    Raises:
        InputError: a file is missing or unreadable, or holds another shape than ``expected`` or than its own config
            says; names the file, the field or tensor, the value found and the value expected.
    """
    config = read_config(path)
    if expected is not None:
        check_shape(path, expected, config)
    file = path / WEIGHTS_FILE
    try:
        data = file.read_bytes()
    except OSError as error:
        raise InputError(str(file), f"cannot be read: {error.strerror}", hint="name a checkpoint directory") from error
    fields = {name: config[name] for name in (*_CONFIG_NAMES.values(), *_FIXED_CONFIG) if name in config}
    model = _empty_model(fields, config["model_type"])
    fill_model(model, read_tensors(data, file), file)
    return model


def shape_of(model: CausalLM) -> ModelShape:
    """The shape of a model, from its config."""
    counts = {field: getattr(model.config, name) for field, name in _CONFIG_NAMES.items()}
    return ModelShape(**counts, model_type=model.config.model_type)


def read_config(path: Path) -> dict[str, Any]:
    """The ``config.json`` of a checkpoint directory. Raises InputError naming the file or the model type."""
    file = path / CONFIG_FILE
    try:
        config = json.loads(file.read_text())
    except OSError as error:
        raise InputError(str(file), f"cannot be read: {error.strerror}", hint="name a checkpoint directory") from error
    except ValueError as error:
        raise InputError(str(file), f"is not JSON: {error}") from error
    if not isinstance(config, dict) or config.get("model_type") not in MODEL_CLASSES:
        found = config.get("model_type") if isinstance(config, dict) else type(config).__name__
        raise InputError(f"{file}:model_type", f"found {found!r}", allowed=", ".join(map(repr, MODEL_CLASSES)))
    return config


def check_shape(path: Path, expected: ModelShape, config: Mapping[str, Any] | None = None) -> None:
    """Refuse a checkpoint of another shape.

    Raises:
        InputError: names ``config.json``, the first field that differs, its value and the expected one.
    """
    config = read_config(path) if config is None else config
    for field, value in {"model_type": expected.model_type, **expected.config_fields()}.items():
        if config.get(field) != value:
            problem = f"found {config.get(field)!r}: a checkpoint of another model shape"
            hint = "expected " + ", ".join(f"{k}={v}" for k, v in asdict(expected).items())
            raise InputError(f"{path / CONFIG_FILE}:{field}", problem, allowed=str(value), hint=hint)


def read_tensors(data: bytes, file: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file. Raises InputError naming the file."""
    from safetensors import SafetensorError
    from safetensors.torch import load

    try:
        return dict(load(data))
    except (SafetensorError, ValueError) as error:
        raise InputError(str(file), f"is not a whole safetensors file: {error}") from error


def fill_model(model: CausalLM, tensors: Mapping[str, Tensor], file: Path) -> None:
    """Copy tensors into a model's parameters; all are checked before the first is copied.

    Raises:
        InputError: a tensor is missing, left over or of another shape; names the file and the tensor.
    """
    import torch

    parameters = dict(model.named_parameters())
    left_over = sorted(set(tensors) - set(parameters) - {"lm_head.weight"})
    if left_over:
        raise InputError(f"{file}:{left_over[0]}", "tensor unknown to the model shape")
    for name, parameter in parameters.items():
        if name not in tensors:
            raise InputError(f"{file}:{name}", "tensor missing", allowed=f"shape {tuple(parameter.shape)}")
        if tensors[name].shape != parameter.shape:
            found, wanted = tuple(tensors[name].shape), tuple(parameter.shape)
            raise InputError(f"{file}:{name}", f"found shape {found}: another model shape", allowed=str(wanted))
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(tensors[name])
