"""What a run needs of a cluster."""

from __future__ import annotations

import shlex

from pydantic import Field, field_validator

from journeyman.config import Knobs

PORT = 29_610
"""Where the front of a trainer group listens; the next one is torchrun's meeting place."""


class PoolSpec(Knobs):
    """Machines of one kind."""

    nodes: int = Field(1, ge=0)
    gpus: int = Field(8, ge=0, description="per node")
    cpus: int = Field(64, ge=1, description="per node")
    memory_gb: int = Field(512, ge=1, description="per node")


class EngineSpec(PoolSpec):
    """Machines that serve the policy; none means that the run opens its engines itself."""

    nodes: int = Field(0, ge=0)
    command: str = Field("", description="what serves the policy on each of them, e.g. vllm serve ...; runs beside")
    port: int = Field(8000, ge=1, le=65535, description="where it listens; its health is asked at /health")


class SlurmSpec(Knobs):
    """Words only Slurm needs."""

    partition: str = ""
    account: str = ""
    extra: tuple[str, ...] = Field((), description="further #SBATCH options, e.g. --exclusive")


class KubernetesSpec(Knobs):
    """Words only Kubernetes needs."""

    image: str = Field("journeyman:latest", description="with journeyman and its extras installed")
    namespace: str = "default"
    claim: str = Field("journeyman", description="PersistentVolumeClaim, ReadWriteMany, with recipe, models and runs")
    mount: str = Field("/data", description="where it appears")
    gpu_resource: str = "nvidia.com/gpu"
    priority_class: str = ""
    node_selector: dict[str, str] = Field(default_factory=dict)


class LaunchSpec(Knobs):
    """A run on a cluster."""

    name: str = Field("journeyman", pattern=r"^[a-z][-a-z0-9]{0,38}[a-z0-9]$", description="of the job")
    command: str = Field(
        "journeyman train rl recipe.toml", description="what runs; started again, it continues where it stopped"
    )
    workdir: str = Field(".", description="directory it runs in, on storage that all nodes see")
    activate: str = Field("", description="shell line before it, e.g. . .venv/bin/activate")
    trainer: PoolSpec = PoolSpec()
    engine: EngineSpec = EngineSpec()
    hours: float = Field(24.0, gt=0, description="wall-clock limit of one start")
    drain_s: int = Field(300, ge=30, description="between SIGTERM and the end: one step and a checkpoint must fit")
    restarts: int = Field(20, ge=0, description="how often it is started again")
    env: dict[str, str] = Field(default_factory=dict, description="environment of all processes; no secrets")
    secrets: tuple[str, ...] = Field((), description="names of variables that are passed on, never printed")
    slurm: SlurmSpec = SlurmSpec()
    k8s: KubernetesSpec = KubernetesSpec()

    @field_validator("command")
    @classmethod
    def _is_a_command(cls, value: str) -> str:
        if not shlex.split(value):
            raise ValueError("an empty command")
        return value

    @property
    def attaches(self) -> bool:
        """Whether the trainer's ranks are the cluster's to start: on more than one node."""
        return self.trainer.nodes > 1

    @property
    def rank_words(self) -> str:
        """What each trainer node runs, as shell words; HEAD and JOB_ID are set by the text around it."""
        return (
            f"torchrun --nnodes={self.trainer.nodes} --nproc-per-node={max(self.trainer.gpus, 1)} "
            f'--rdzv-backend=c10d --rdzv-endpoint="$HEAD:{PORT + 1}" --rdzv-id="$JOB_ID" '
            "-m journeyman.train.backends.group.rank"
        )

    @property
    def run_words(self) -> str:
        """The run's own command, each word quoted."""
        return shlex.join(shlex.split(self.command))
