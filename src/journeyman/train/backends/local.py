"""The torch back-end from a recipe: one process, one device, and the faster forward wherever it computes the same."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

import torch
from torch import Tensor

from journeyman.errors import EnvironmentMissing, InputError
from journeyman.train.backends.hub import disk_state, read_policy
from journeyman.train.backends.lora import inject, merged
from journeyman.train.backends.routing import RoutingReplay
from journeyman.train.backends.spec import BackendSpec
from journeyman.train.backends.states import HubStates
from journeyman.train.backends.stock import StockPolicy
from journeyman.train.backends.torch import Forward, TorchTrainer
from journeyman.train.model import MODEL_CLASSES, CausalLM, load_model, read_config
from journeyman.train.optimizer import OptimizerSpec
from journeyman.train.protocol import TrainRow


def open_trainer(spec: BackendSpec, model: Path, optimizer: OptimizerSpec) -> TorchTrainer:
    """As ``table.make_trainer``."""
    if is_plain(spec, model):
        return TorchTrainer(
            load_model(model),
            optimizer,
            train_threads=spec.train_threads,
            tokens_per_micro_batch=spec.tokens_per_micro_batch,
        )
    if spec.device == "cuda" and not torch.cuda.is_available():
        raise EnvironmentMissing("backend.device is cuda, and torch sees no CUDA device here")
    policy = open_policy(spec, model, "float64" if spec.dtype == "float64" else "float32")
    return TorchTrainer(
        policy.model,
        optimizer,
        train_threads=spec.train_threads,
        tokens_per_micro_batch=spec.tokens_per_micro_batch,
        forward=forward_of(policy, spec),
        export=lambda state: engine_state(policy.model, state, spec),
        states=HubStates(model, spec.lora),
    )


def is_plain(spec: BackendSpec, model: Path) -> bool:
    """Whether the forward of ``decoder.py`` serves this recipe: a dense Qwen3 or Llama in float32 on CPU, in full.

    Raises:
        InputError: the directory holds no configuration.
    """
    if spec.stock_forward or spec.lora or spec.replay_routing or spec.device != "cpu" or spec.dtype != "float32":
        return False
    try:
        config = read_config(model)
    except InputError:
        return False
    plain = {"attention_bias": False, "hidden_act": "silu", "mlp_bias": False}
    known = all(config.get(name, wanted) == wanted for name, wanted in plain.items())
    known = known and config.get("tie_word_embeddings") is True  # where it is not written, families differ
    rope = config.get("rope_parameters") or {}
    plain_rope = rope.get("rope_type") == "default" and "rope_theta" in rope and not config.get("use_sliding_window")
    whole = (model / "model.safetensors").is_file()
    return config["model_type"] in MODEL_CLASSES and known and plain_rope and whole


def open_policy(spec: BackendSpec, model: Path, dtype: str) -> StockPolicy:
    """The model of a directory with what the recipe adds to it: adapter, replayed routing, recomputed layers."""
    opened = read_policy(model, dtype, spec.device)
    if spec.lora is not None:
        inject(opened, spec.lora)
    replay = RoutingReplay(opened) if spec.replay_routing else None
    return StockPolicy(opened, checkpoint_layers=spec.checkpoint_layers, replay=replay, pack=True)


def forward_of(policy: StockPolicy, spec: BackendSpec) -> Forward:
    """The logprobs of rows through a module; its parameters' dtype, or autocast to bfloat16."""
    device = torch.device(spec.device)

    def forward(rows: Sequence[TrainRow], topk: bool) -> Tensor:
        half = torch.autocast(device.type, torch.bfloat16) if spec.dtype == "bfloat16" else nullcontext()
        batch = policy.laid(rows, topk=topk).to(device)
        with half:
            logprobs: Tensor = policy(batch.ids, batch.at, batch.targets, batch.experts, batch.positions, batch.lengths)
        return logprobs

    return forward


def engine_state(model: CausalLM, state: dict[str, Tensor], spec: BackendSpec) -> dict[str, Tensor]:
    """What an engine loads: the adapter merged, names as on disk."""
    plain = merged(state, spec.lora) if spec.lora is not None else state
    return disk_state(model, plain)
