"""What a recipe says about rollouts: the engine that samples, where trials run, and what watches their verdicts.

Plain data: reading it imports neither torch nor an engine.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from journeyman.config import Knobs


class VllmSection(Knobs):
    """vLLM servers as the engine: running ones, or one that is started here."""

    urls: tuple[str, ...] = Field((), description="addresses of running servers of one model; none: one is started")
    python: Path | None = Field(None, description="interpreter of the environment that holds vLLM, to start a server")
    evaluation_urls: tuple[str, ...] = Field((), description="servers of their own for evaluation beside training")
    dtype: Literal["float32", "bfloat16"] = Field("float32", description="of the servers' weights")
    prefix: Literal["fresh", "keep"] = Field("fresh", description="keys and values of older weights: never reused, or")
    push_dir: Path | None = Field(
        None, description="folder that every server sees; none: a temporary one, for one host"
    )
    prove: bool = Field(True, description="check each push by the logprobs of a fixed prompt under the pushed weights")
    kv_gib: int = Field(1, ge=1, description="GiB of keys and values of a server that is started on a CPU")
    start_s: float = Field(600.0, gt=0, description="until a server that is started answers")
    push_s: float = Field(300.0, gt=0, description="one push")
    arguments: tuple[str, ...] = Field((), description="further words for a server that is started")

    @model_validator(mode="after")
    def _one_way(self) -> VllmSection:
        if self.urls and self.python is not None:
            raise ValueError("urls and python are both set: servers either run already or are started here")
        for url in (*self.urls, *self.evaluation_urls):
            if not url.startswith(("http://", "https://")):
                raise ValueError(f"{url!r} is no address; allowed: http://HOST:PORT")
        return self


class RaySection(Knobs):
    """Trials as tasks of a Ray cluster."""

    address: str | None = Field(None, description="of a running cluster; none: RAY_ADDRESS, or one on this host")
    cpus: float = Field(0.1, gt=0, description="cores a trial asks for; it mostly waits for the model")
    memory_mb: int = Field(0, ge=0, description="MB a trial asks for; 0 for none")
    resources: dict[str, float] = Field({}, description="custom resources of nodes, such as sandbox = 1")


class RolloutSection(Knobs):
    """How trials run."""

    harness: str = Field("toolbelt", description="key of the harnesses, or framing:NAME of the quickstart's")
    engine: Literal["embedded", "vllm"] = Field("embedded", description="who samples: rollout.vllm says which servers")
    vllm: VllmSection = VllmSection()
    executor: Literal["inline", "process", "ray"] = Field(
        "process",
        description="inline: trusted tasks whose tools are pure; process: each trial in a process of its own; ray: the "
        "same, placed by a Ray cluster",
    )
    ray: RaySection = RaySection()
    engine_process: bool = Field(True, description="the engine and its trials in a process of their own")
    threads: int = Field(1, ge=1, description="torch threads of the engine")
    rows: int = Field(64, ge=1, description="trials decoded together")
    max_context: int = Field(640, ge=16, description="tokens")
    concurrency: int = Field(256, ge=1, description="trials at once at most; steered below it from KV use")
    start_concurrency: int | None = Field(None, ge=1, description="none: what fits the engine's rows")
    partial: Literal["continue", "reissue"] = Field(
        "continue", description="turns under way when weights arrive: go on in place, or abort and issue again"
    )
    temperature: float = Field(1.0, gt=0, description="1 makes rollout logprobs the policy's own")
    attempts: int = Field(2, ge=1, description="per trial, when the error table says retry")
    supervisors: int = Field(1, ge=1, description="small processes that fork trials, for executor process")
    agent_s: float = Field(3600.0, gt=0, description="working time of a trial whose task declares none")
    model_s: float = Field(600.0, gt=0, description="one model call, queueing included")
    sandbox: Literal["bwrap", "oci", "none"] = "bwrap"
    waive: tuple[str, ...] = Field((), description="sandbox limits that may stay unenforced")

    @model_validator(mode="after")
    def _engine_is_named(self) -> RolloutSection:
        if self.engine == "vllm" and not self.vllm.urls and self.vllm.python is None:
            raise ValueError("engine is vllm, but neither vllm.urls nor vllm.python is set")
        return self


class ShadowSection(Knobs):
    """A second verifier that the policy is never rewarded by: gains that only the first one sees are a hack."""

    tasks: tuple[Path, ...] = Field(
        (), description="directories of tasks named as those trained on, with the verifiers that are held back"
    )
    share: float = Field(1.0, gt=0, le=1, description="of the trials that the second verifier grades too")


class PricesSection(Knobs):
    """What sampling and machines cost, beside ``metrics.usd_per_hour``. All are added to the dollars of a step."""

    per_million_sampled: float = Field(0.0, ge=0, description="dollars per million sampled tokens")
    per_million_prefilled: float = Field(0.0, ge=0, description="dollars per million context tokens computed")
    per_cpu_second: float = Field(0.0, ge=0, description="dollars per second of a core, of trainer, engine and trials")
    per_gpu_second: float = Field(0.0, ge=0, description="dollars per second of a GPU; counted by wall time")
    gpus: int = Field(0, ge=0, description="GPUs that the run holds")
