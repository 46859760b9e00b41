"""The trainers by name, and the one way to make one: what a back-end lacks is refused before anything starts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import cast

from journeyman.errors import InputError, nearest
from journeyman.train.backends.spec import BackendSpec
from journeyman.train.optimizer import OptimizerSpec
from journeyman.train.protocol import Trainer

CAPABILITIES: dict[str, str] = {
    "full_param": "trains all weights",
    "lora": "trains a low-rank adapter",
    "muon": "Muon on the matrices (optimizer.muon_lr)",
    "loss:any": "every loss of LOSSES, with one forward per token",
    "topk": "the logprobs of the rollout's likeliest tokens, for losses that compare them",
    "routing_replay": "a mixture's experts as recorded at sampling (replay_routing)",
    "mixture": "mixtures of experts",
    "ranks": "more than one process (layout.ranks)",
    "model_parallel": "tensor, pipeline, expert and context parallel layouts",
    "offload": "optimizer state in CPU memory (layout.offload)",
    "local_weights": "push_weights hands the weights to an engine of ours",
    "local_state": "save_state writes the whole state below a directory of ours",
}
"""Every word that a back-end may claim, and what it means."""


@dataclass(frozen=True)
class Backend:
    """One entry of the table.

    Attributes:
        opener: ``module:function`` with the signature of ``make_trainer``; imported when it is used.
        supports: words of ``CAPABILITIES``.
        about: one line for documents.
    """

    opener: str
    supports: frozenset[str]
    about: str


_OWN = frozenset({"full_param", "lora", "loss:any", "mixture", "local_weights", "local_state"})

BACKENDS: dict[str, Backend] = {
    "torch": Backend(
        "journeyman.train.backends.local:open_trainer",
        _OWN | {"muon", "routing_replay", "topk"},
        "one process, one device",
    ),
    "fsdp2": Backend(
        "journeyman.train.backends.group.trainer:open_trainer",
        _OWN | {"ranks", "routing_replay", "topk", "offload"},
        "weights, gradients and optimizer cut over processes (torch fully_shard, torchrun)",
    ),
    "megatron": Backend(
        "journeyman.train.backends.group.trainer:open_trainer",
        frozenset(
            {"full_param", "loss:any", "mixture", "local_weights", "local_state", "ranks", "model_parallel", "offload"}
        ),
        "megatron-core: TP, PP, EP, CP and optimizer offload",
    ),
    "tinker": Backend(
        "journeyman.train.backends.tinker.trainer:open_trainer",
        frozenset({"lora", "loss:any"}),
        "a Tinker-compatible service over HTTP",
    ),
}
"""Name -> back-end. The one place to add one."""


def make_trainer(spec: BackendSpec, model: Path, optimizer: OptimizerSpec) -> Trainer:
    """Open the trainer a recipe names.

    Args:
        spec: which back-end and how it runs.
        model: Hugging Face directory (config, safetensors) the training starts from.
        optimizer: rates.

    Raises:
        InputError: an unknown name, a capability the back-end lacks (named), or a model it cannot read.
        EnvironmentMissing: a library or a service is not there.
        SystemFault: its processes or its service did not come up in time.
    """
    check_spec(spec, optimizer)
    module, _, function = backend_of(spec.name).opener.partition(":")
    return cast(Trainer, getattr(import_module(module), function)(spec, model, optimizer))


def backend_of(name: str) -> Backend:
    """The entry of a name. Raises InputError with the nearest one."""
    if name not in BACKENDS:
        near = nearest(name, BACKENDS)
        hint = f"did you mean {near}?" if near else None
        raise InputError("backend.name", f"got {name!r}", allowed=", ".join(BACKENDS), hint=hint)
    return BACKENDS[name]


def check_spec(spec: BackendSpec, optimizer: OptimizerSpec | None = None, *, also: Iterable[str] = ()) -> None:
    """Refuse a recipe that needs what its back-end lacks; nothing is imported or started.

    Args:
        optimizer: its rates, or None where they are not known yet.
        also: further words of ``CAPABILITIES`` that the caller needs.

    Raises:
        InputError: names the capability, what asked for it, and the back-ends that have it.
    """
    backend = backend_of(spec.name)
    for capability, asked_by in [*_needs(spec, optimizer), *((word, "the recipe") for word in also)]:
        if capability not in CAPABILITIES:
            raise InputError("capability", f"got {capability!r}", allowed=", ".join(CAPABILITIES))
        if capability not in backend.supports:
            having = ", ".join(name for name, other in BACKENDS.items() if capability in other.supports)
            problem = f"{spec.name!r} lacks {capability} ({CAPABILITIES[capability]}), which {asked_by} needs"
            raise InputError("backend.name", problem, allowed=having)
    layout = spec.layout
    model_parallel = layout.tp * layout.pp * layout.cp
    if layout.ranks % model_parallel:
        problem = f"{layout.ranks} ranks cannot hold tp x pp x cp = {model_parallel}"
        raise InputError("backend.layout.ranks", problem, allowed=f"a multiple of {model_parallel}")
    if (layout.ranks // layout.pp) % layout.ep:
        problem = f"{layout.ep} does not divide tp x cp x dp = {layout.ranks // layout.pp}"
        raise InputError("backend.layout.ep", problem, allowed=f"a divisor of {layout.ranks // layout.pp}")
    if spec.lora is not None and optimizer is not None and optimizer.muon_lr is not None:
        raise InputError("optimizer.muon_lr", "is set with backend.lora", allowed="AdamW alone for an adapter")


def _needs(spec: BackendSpec, optimizer: OptimizerSpec | None) -> list[tuple[str, str]]:
    layout = spec.layout
    wishes = [
        ("lora", "backend.lora", spec.lora is not None),
        ("full_param", "a recipe without backend.lora", spec.lora is None),
        ("routing_replay", "backend.replay_routing", spec.replay_routing),
        ("ranks", "backend.layout.ranks", layout.ranks > 1),
        ("model_parallel", "backend.layout", max(layout.tp, layout.pp, layout.ep, layout.cp) > 1),
        ("offload", "backend.layout.offload", layout.offload),
        ("muon", "optimizer.muon_lr", optimizer is not None and optimizer.muon_lr is not None),
    ]
    return [(capability, asked_by) for capability, asked_by, wished in wishes if wished]
