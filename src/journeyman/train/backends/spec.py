"""What a recipe says about the trainer's back-end. Plain data: reading it imports neither torch nor a back-end."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from journeyman.config import Knobs


class LoraSpec(Knobs):
    """A low-rank adapter that is trained in place of the full weights (peft).

    No dropout: the engine samples without it, so a trainer that drops would disagree with it.
    """

    rank: int = Field(16, ge=1, description="of each pair of matrices")
    alpha: float = Field(32.0, gt=0, description="the product is scaled by alpha / rank")
    targets: tuple[str, ...] = Field(
        ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"),
        min_length=1,
        description="last parts of the names of the matrices that get an adapter",
    )
    seed: int = Field(0, ge=0, description="of the adapter's first matrices; the second ones start at 0")


class LayoutSpec(Knobs):
    """How a model lies over processes. Counts of processes, except where said."""

    ranks: int = Field(1, ge=1, description="processes, one device each")
    tp: int = Field(1, ge=1, description="tensor parallel: each matrix cut over this many")
    pp: int = Field(1, ge=1, description="pipeline parallel: layers cut over this many")
    ep: int = Field(1, ge=1, description="expert parallel: experts of a mixture cut over this many")
    cp: int = Field(1, ge=1, description="context parallel: each sequence cut over this many")
    offload: bool = Field(False, description="optimizer state lives in CPU memory")
    nodes: int = Field(1, ge=1, description="machines; more than one needs start = ray or attach")
    start: Literal["torchrun", "ray", "attach"] = Field(
        "torchrun", description="who starts the processes: torchrun here, Ray over its nodes, or a cluster's own job"
    )

    @property
    def dp(self) -> int:
        """Data parallel width: what is left of the ranks."""
        return self.ranks // (self.tp * self.pp * self.cp)


class ServiceSpec(Knobs):
    """A Tinker-compatible service."""

    url: str = Field("", description="base URL, without /api/v1; empty takes TINKER_BASE_URL")
    base_model: str = Field("", description="the service's name of the model; empty takes the model directory's name")
    api_key_env: str = Field("TINKER_API_KEY", description="environment variable that holds the key")


class BackendSpec(Knobs):
    """Which trainer, and how it runs. Every back-end refuses by name what it cannot do (``table.check_spec``)."""

    name: str = Field("torch", description="entry of BACKENDS")
    train_threads: int | None = Field(None, ge=1, description="torch threads inside each verb; none: leave as they are")
    tokens_per_micro_batch: int = Field(4096, ge=1, description="budget of one forward and backward, per rank")
    dtype: Literal["float32", "float64", "bfloat16"] = Field("float32", description="of the weights in the forward")
    device: Literal["cpu", "cuda"] = "cpu"
    stock_forward: bool = Field(
        False, description="the model's own forward of transformers, also where the faster one would do"
    )
    checkpoint_layers: bool = Field(False, description="compute each layer's activations again in the backward pass")
    replay_routing: bool = Field(
        False, description="a mixture's experts as the engine recorded them, not as recomputed"
    )
    lora: LoraSpec | None = None
    layout: LayoutSpec = LayoutSpec()
    service: ServiceSpec = ServiceSpec()
    transfer: Literal["memory", "disk"] = Field("memory", description="how weights leave the trainer's own processes")
    python: Path | None = Field(None, description="interpreter of the trainer's processes; none: this one")
    deadline_s: float = Field(1800.0, gt=0, description="for each verb of a back-end outside this process")
