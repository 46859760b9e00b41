"""The recipes of ``journeyman train rl``, ``train sft`` and ``overfit``: every knob with unit, range and default.

Reading one imports neither torch nor an engine; what cannot work together is refused here, before anything starts.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from journeyman.config import Knobs
from journeyman.errors import InputError
from journeyman.train.advantages import ADVANTAGES
from journeyman.train.backends.spec import BackendSpec
from journeyman.train.backends.table import check_spec
from journeyman.train.guards.table import GuardSpec
from journeyman.train.losses.frame import PolicyLoss, resolve_loss
from journeyman.train.optimizer import OptimizerSpec
from journeyman.train.reductions import REDUCTIONS
from journeyman.train.rollouts import PricesSection, RolloutSection, ShadowSection
from journeyman.train.switches import Switches

VLLM_TOPK = 20
"""Likeliest tokens a vLLM server reports by default (``--max-logprobs``)."""


class PolicySection(Knobs):
    """What is trained."""

    model: Path = Field(description="Hugging Face directory the training starts from")
    tokenizer: Path | None = Field(None, description="directory of tokenizer.json; none: the model's")

    @property
    def tokenizer_directory(self) -> Path:
        """Where the tokenizer lies."""
        return self.tokenizer or self.model


class TasksSection(Knobs):
    """What is trained on. Each path is a task directory or holds task directories."""

    train: tuple[Path, ...] = Field(min_length=1)
    dev: tuple[Path, ...] = Field((), description="measured beside training; never trained on")


class LoopSection(Knobs):
    """The loop and its bounds."""

    mode: Literal["async", "sync"] = "async"
    steps: int = Field(100, ge=1, description="optimizer steps")
    groups_per_step: int = Field(16, ge=1, description="Groups (tasks) one step consumes")
    trials_per_group: int = Field(8, ge=2)
    staleness: int = Field(3, ge=0, description="steps a token may be behind the weights that train on it")
    bound: Literal["hold", "drop", "requeue", "accept"] = Field("hold", description="what happens at the bound")
    order: Literal["finished", "urgent", "balanced"] = Field("finished", description="which finished Groups go first")
    window: int | None = Field(None, ge=0, description="Groups that may overtake a running one under balanced")
    min_valid: int | None = Field(None, ge=2, description="valid trials a Group needs; none: half of them")
    refill_rounds: int = Field(0, ge=0, description="sync: how often Groups without variance are replaced in a step")
    checkpoint_every: int = Field(1, ge=1, description="steps")
    stall_s: float = Field(
        3600.0, gt=0, description="without a finished trial or step, then the run ends with an error"
    )
    step_s: float = Field(3600.0, gt=0, description="one optimizer step with its push")


class LossSection(Knobs):
    """What a step optimises."""

    name: str = "dppo_tv"
    correction: str = "none"
    params: dict[str, Any] = Field({}, description="knobs of the loss and of its correction")
    reduction: str = Field("prompt", description="of the token losses")
    max_length: int | None = Field(None, ge=1, description="tokens, the constant of drgrpo")
    advantage: str = "grpo"
    topk: int = Field(20, ge=1, description="likeliest tokens the engine reports, for losses that compare them")

    @model_validator(mode="after")
    def _names_are_known(self) -> LossSection:
        if self.reduction not in REDUCTIONS:
            raise ValueError(f"reduction {self.reduction!r}; allowed: {', '.join(REDUCTIONS)}")
        if self.reduction == "drgrpo" and self.max_length is None:
            raise ValueError("reduction drgrpo needs max_length, a constant number of tokens")
        if self.advantage not in ADVANTAGES:
            raise ValueError(f"advantage {self.advantage!r}; allowed: {', '.join(sorted(ADVANTAGES))}")
        self.resolved()
        return self

    @property
    def asked_topk(self) -> int:
        """Likeliest tokens that the engine must report at each sampled one; 0 where the loss looks at none."""
        return self.topk if "topk_logp_rollout" in self.resolved().needs else 0

    def resolved(self) -> PolicyLoss:
        """The checked loss. Raises ValueError with what is wrong."""
        try:
            return resolve_loss(self.name, correction=self.correction, params=self.params)
        except InputError as error:
            raise ValueError(str(error)) from error


class OptimizerSection(Knobs):
    """Rates."""

    lr: float = Field(3e-4, gt=0, description="AdamW's base rate")
    muon_lr: float | None = Field(None, gt=0, description="Muon on the matrices; none: AdamW alone")

    def spec(self) -> OptimizerSpec:
        """As the trainer takes it."""
        return OptimizerSpec(lr=self.lr, muon_lr=self.muon_lr)


class EvaluationSection(Knobs):
    """Measuring ``tasks.dev`` on frozen weights beside training."""

    every: int = Field(0, ge=0, description="steps; 0 never")
    samples: int = Field(4, ge=1, description="trials per task")
    k: int = Field(4, ge=1, description="of pass@k, at most samples")
    concurrency: int = Field(64, ge=1, description="trials at once")

    @model_validator(mode="after")
    def _k_fits(self) -> EvaluationSection:
        if self.k > self.samples:
            raise ValueError(f"k is {self.k}, but there are {self.samples} samples per task")
        return self


class KeepSection(Knobs):
    """Which checkpoints stay."""

    last: int = Field(2, ge=1, description="the newest so many")
    every: int = Field(0, ge=0, description="of each n-th step, for good; 0: none")
    best: bool = Field(True, description="by the evaluation, or by the train reward where there is none")


class MetricsSection(Knobs):
    """Where records go besides metrics.jsonl."""

    sinks: tuple[Literal["tensorboard", "trackio", "wandb"], ...] = ()
    usd_per_hour: float = Field(0.0, ge=0, description="what the machines of the run cost, for the dollars of a step")


class RlRecipe(Knobs):
    """``journeyman train rl``."""

    policy: PolicySection
    tasks: TasksSection
    rollout: RolloutSection = RolloutSection()
    loop: LoopSection = LoopSection()
    loss: LossSection = LossSection()
    switches: Switches = Switches()
    optimizer: OptimizerSection = OptimizerSection()
    backend: BackendSpec = BackendSpec()
    evaluation: EvaluationSection = EvaluationSection()
    guards: GuardSpec = GuardSpec()
    keep: KeepSection = KeepSection()
    metrics: MetricsSection = MetricsSection()
    shadow: ShadowSection = ShadowSection()
    prices: PricesSection = PricesSection()
    out: Path = Path("runs/rl")
    seed: int = Field(0, ge=0)

    @model_validator(mode="after")
    def _parts_fit(self) -> RlRecipe:
        loop = self.loop
        if loop.mode == "async" and not self.rollout.engine_process:
            raise ValueError("rollout.engine_process is false, but in async mode nobody may wait for the other")
        if loop.mode == "async":
            whole = (loop.staleness + 1) * loop.groups_per_step * loop.trials_per_group
            if self.rollout.concurrency < loop.trials_per_group:
                raise ValueError(f"rollout.concurrency holds no Group of {loop.trials_per_group} trials (of {whole})")
            if loop.staleness and not self._bounds_old_tokens():
                raise ValueError(
                    f"loss.name: {self.loss.name} does not look at the rollout's probabilities, but tokens may be "
                    f"{loop.staleness} steps old; use dppo_tv, dppo_kl, glm5, cispo with anchor = 'rollout', or a "
                    "correction"
                )
        if self.evaluation.every and not self.tasks.dev:
            raise ValueError("evaluation.every is set, but tasks.dev is empty")
        _check_engine(self.rollout, self.loss, self.backend)
        if self.evaluation.every and self.rollout.vllm.urls and not self.rollout.vllm.evaluation_urls:
            raise ValueError("evaluation.every is set, but rollout.vllm.evaluation_urls names no server for it")
        try:
            needs = ("local_weights", "local_state", *(("topk",) if self.loss.asked_topk else ()))
            check_spec(self.backend, self.optimizer.spec(), also=needs)
        except InputError as error:
            raise ValueError(str(error)) from error
        return self

    def _bounds_old_tokens(self) -> bool:
        loss = self.loss.resolved()
        return loss.correction != "none" or getattr(loss.knobs, "ratio_anchor", "none") == "rollout"


def _check_engine(rollout: RolloutSection, loss: LossSection, backend: BackendSpec) -> None:
    """Refuse what the engine cannot give to loss or trainer. Raises ValueError."""
    if backend.replay_routing and rollout.engine == "embedded":
        raise ValueError("backend.replay_routing: the embedded engine records no experts; rollout.engine = 'vllm' does")
    if not loss.asked_topk:
        return
    if rollout.engine == "vllm" and rollout.vllm.urls and loss.topk > VLLM_TOPK:
        raise ValueError(f"loss.topk: {loss.topk}; a vLLM server reports {VLLM_TOPK} unless started with more")


class OverfitSection(Knobs):
    """Which tasks, and how long."""

    tasks: int = Field(32, ge=2, description="chosen among those with reward variance")
    trials: int = Field(8, ge=2, description="of each task, in screening, baseline, every step and result")
    steps: int = Field(8, ge=1, description="each one an epoch over the chosen tasks")
    confidence: float = Field(0.95, gt=0.5, lt=1, description="of the interval of the gain")
    min_gain: float = Field(0.0, description="low end of that interval must exceed it")
    min_rise: float = Field(0.05, ge=0, description="of a group's mean reward, below which it is named as not risen")


class OverfitRecipe(Knobs):
    """``journeyman overfit``: the end-to-end unit test of a task set and a policy."""

    policy: PolicySection
    tasks: TasksSection
    overfit: OverfitSection = OverfitSection()
    rollout: RolloutSection = RolloutSection(executor="inline", engine_process=False)
    loss: LossSection = LossSection()
    optimizer: OptimizerSection = OptimizerSection()
    backend: BackendSpec = BackendSpec()
    guards: GuardSpec = GuardSpec()
    out: Path = Path("runs/overfit")
    seed: int = Field(0, ge=0)


class DataSection(Knobs):
    """Demonstrations."""

    runs: tuple[Path, ...] = Field((), description="run directories; their trials with a good enough reward")
    samples: tuple[Path, ...] = Field((), description="JSON lines with token_ids and mask")
    min_reward: float = Field(1.0, ge=0, le=1, description="of a run's trial")
    max_tokens: int = Field(32768, ge=2, description="longer ones are left out, and counted")
    held_out_share: float = Field(0.05, ge=0, lt=1, description="of the demonstrations, by task; never learned")

    @model_validator(mode="after")
    def _there_is_some(self) -> DataSection:
        if not self.runs and not self.samples:
            raise ValueError("neither runs nor samples are given")
        return self


class SftSection(Knobs):
    """How long and how fast."""

    steps: int = Field(200, ge=1)
    constant: int | None = Field(None, ge=0, description="steps at the full rate, then linear to 0; none: half")
    warmup: int = Field(10, ge=0, description="steps of linear warm-up, part of the constant ones")
    batch_size: int = Field(16, ge=1, description="demonstrations per step")
    check_every: int = Field(50, ge=0, description="steps between held-out checks")
    checkpoint_every: int = Field(50, ge=1, description="steps")


class SftRecipe(Knobs):
    """``journeyman train sft``."""

    policy: PolicySection
    data: DataSection
    sft: SftSection = SftSection()
    optimizer: OptimizerSection = OptimizerSection(lr=1e-4)
    metrics: MetricsSection = MetricsSection()
    out: Path = Path("runs/sft")
    seed: int = Field(0, ge=0)
