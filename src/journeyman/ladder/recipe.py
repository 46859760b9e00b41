"""The quickstart's recipe: every knob of the miniature ladder, with unit and default.

Defaults are the validated setting of docs/quickstart.md; a profile (``profiles.py``) has defaults of its own. A TOML
file or a flag may change any of them; what was used is stored beside the run with its digest.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, model_validator

from journeyman.ladder.profiles import PROFILES


class Section(BaseModel):
    """A table of the recipe: immutable, unknown keys refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class WorldsSection(Section):
    """How many worlds and tasks each split holds."""

    sft_worlds: int = Field(150, ge=3, description="worlds that demonstrations are drawn from; never in a score")
    sft_heldout_worlds: int = Field(20, ge=1, description="of these, worlds kept for the held-out loss")
    train_worlds: int = Field(24, ge=2)
    dev_worlds: int = Field(20, ge=2)
    test_worlds: int = Field(50, ge=2)
    train_tasks_per_world: int = Field(4, ge=1)
    dev_tasks_per_world: int = Field(3, ge=1)
    test_tasks_per_world: int = Field(2, ge=1)
    max_train_worlds: int = Field(
        48, ge=2, description="the pool grows to this when too few tasks have reward variance"
    )


class ModelSection(Section):
    """Shape of the policy: trained from nothing (Qwen3 architecture), or that of the profile's pretrained model."""

    hidden: int = Field(128, ge=16)
    layers: int = Field(3, ge=1)
    heads: int = Field(4, ge=1)
    kv_heads: int = Field(2, ge=1)
    head_dim: int = Field(32, ge=8)
    ffn: int = Field(256, ge=16)
    positions: int = Field(1024, ge=128)
    tokenizer_size: int = Field(2048, ge=300, description="asked of the BPE trainer; the corpus saturates earlier")


class SftSection(Section):
    """Base SFT on clean demonstrations, stopped by held-out loss."""

    batch_size: int = Field(6, ge=1)
    muon_lr: float | None = Field(0.006, gt=0, description="none: AdamW alone")
    adamw_lr: float = Field(3e-3, gt=0)
    warmup_steps: int = Field(20, ge=0)
    check_every: int = Field(50, ge=1)
    stop_loss: float = Field(0.03, gt=0, description="two consecutive held-out losses below this start the decay")
    decay_steps: int = Field(200, ge=1)
    max_steps: int = Field(1200, ge=1)
    restart_by: int = Field(800, ge=1, description="criterion not reached by this step: one restart with another seed")
    heldout_traces: int = Field(100, ge=1)
    min_greedy: float = Field(0.9, ge=0, le=1, description="gate: greedy mean reward of the clean base on dev")
    max_final_loss: float = Field(0.005, gt=0, description="gate: held-out loss after the decay")


class WarmStartSection(Section):
    """Warm start on an imperfect demonstrator: right format, wrong workflow in a share of the demonstrations."""

    good_share: float = Field(0.45, ge=0, le=1)
    good_share_step: float = Field(0.1, gt=0, description="raised by this when the dry run reads below min_dry_run")
    max_tries: int = Field(3, ge=1)
    worlds: int = Field(40, ge=1)
    steps: int = Field(36, ge=2)
    batch_size: int = Field(12, ge=1)
    lr: float = Field(1e-3, gt=0)
    min_dry_run: float = Field(0.10, ge=0, le=1)


class RlSection(Section):
    """Synchronous group-relative RL."""

    tasks_per_step: int = Field(32, ge=2)
    trials_per_task: int = Field(8, ge=2)
    overfit_steps: int = Field(5, ge=1)
    train_steps: int = Field(14, ge=1)
    lr: float = Field(3e-4, gt=0)
    loss: Literal["dppo_tv", "dppo_kl", "glm5", "ppo", "cispo", "reinforce"] = "dppo_tv"
    aggregation: Literal["prompt", "sequence", "token", "drgrpo"] = "prompt"
    advantage: Literal["grpo", "grpo_nostd", "rloo", "maxrl"] = "grpo"
    temperature: float = Field(1.0, gt=0)
    micro_batch_tokens: int = Field(4096, ge=512, description="budget of one forward and backward")
    threads: int = Field(1, ge=1, description="CPU threads of the update")
    keep_checkpoints: bool = Field(True, description="after a stage is complete; each is three times the model")


class AblationSection(Section):
    """Step 5: arms x seeds from one start."""

    aggregations: tuple[Literal["prompt", "sequence", "token", "drgrpo"], ...] = ("prompt", "token")
    seeds: int = Field(2, ge=2)
    steps: int = Field(3, ge=1)
    samples: int = Field(2, ge=1, description="dev samples per task and arm")
    processes: int = Field(2, ge=1)


class EvaluationSection(Section):
    """Step 7 and the development measurements."""

    samples: int = Field(2, ge=1, description="sampled trials per task")
    confidence: float = Field(0.95, gt=0.5, lt=1)


class GatesSection(Section):
    """Thresholds of the seven gates."""

    max_system_error_rate: float = Field(0.01, ge=0, le=1)
    max_logprob_gap: float = Field(1e-4, gt=0, description="mean abs logprob gap, fp32")
    max_logprob_gap_q99: float = Field(1e-3, gt=0, description="99 % quantile of the abs logprob gap, fp32")
    min_overfit_gain: float = Field(0.0, description="low end of the interval of the gain in mean reward, step 4")
    min_final_reward: float = Field(0.7, ge=0, le=1, description="mean train reward of the last three steps")
    min_dev_gain: float = Field(0.0, description="low end of the interval of the gain in dev pass@1, step 6")
    min_test_gain: float = Field(0.0, description="low end of the interval of the gain in test pass@1, step 7")


class SandboxSection(Section):
    """Where untrusted actions run."""

    provider: Literal["auto", "bwrap", "oci", "none"] = "auto"
    memory_mb: int = Field(512, ge=64)
    pids: int = Field(64, ge=8)
    deadline_s: float = Field(60.0, gt=0)
    waive: tuple[str, ...] = Field((), description="limits that may be missing, e.g. memory")


class EngineSection(Section):
    """The rollout engine."""

    rows: int = Field(256, ge=1, description="trials decoded together")
    max_context: int = Field(640, ge=128, description="tokens")
    max_new_tokens: int = Field(44, ge=4, description="per turn")
    kv_memory_mb: int = Field(512, ge=16, description="bound of the KV cache")


S = TypeVar("S", bound=Section)


def _section(of: type[S]) -> Any:
    """A section whose defaults depend on the profile: a factory that asks for the values before it, so that
    ``journeyman.config`` leaves what nobody wrote to ``QuickstartRecipe``."""
    return Field(default_factory=lambda before: of())


class QuickstartRecipe(Section):
    """Everything that decides what ``journeyman quickstart`` does; the seed is part of it."""

    out: Path = Path("runs/quickstart")
    seed: int = Field(0, ge=0)
    profile: Literal["tiny", "smollm2"] = "tiny"
    worlds: WorldsSection = _section(WorldsSection)
    model: ModelSection = _section(ModelSection)
    sft: SftSection = _section(SftSection)
    warm_start: WarmStartSection = _section(WarmStartSection)
    rl: RlSection = _section(RlSection)
    ablation: AblationSection = _section(AblationSection)
    evaluation: EvaluationSection = _section(EvaluationSection)
    gates: GatesSection = _section(GatesSection)
    sandbox: SandboxSection = _section(SandboxSection)
    engine: EngineSection = _section(EngineSection)

    @model_validator(mode="before")
    @classmethod
    def _defaults_of_the_profile(cls, given: Any) -> Any:
        """Lay what was given over the defaults of the profile, section by section."""
        if not isinstance(given, Mapping):
            return given
        profile = PROFILES.get(str(given.get("profile", "tiny")))
        filled = dict(given)
        for name in cls.model_fields.keys() - {"out", "seed", "profile"}:
            section = filled.get(name, {})
            if isinstance(section, Mapping):
                filled[name] = {**(profile.defaults.get(name, {}) if profile else {}), **section}
        return filled

    @model_validator(mode="after")
    def _consistent(self) -> QuickstartRecipe:
        profile = PROFILES[self.profile]
        if profile.pretrained and self.model != ModelSection(**profile.defaults["model"]):
            raise ValueError(f"model.*: the profile {self.profile} has a pretrained model, whose shape is given")
        if self.worlds.sft_heldout_worlds >= self.worlds.sft_worlds:
            raise ValueError("worlds.sft_heldout_worlds must be smaller than worlds.sft_worlds")
        if self.worlds.max_train_worlds < self.worlds.train_worlds:
            raise ValueError("worlds.max_train_worlds must be at least worlds.train_worlds")
        pool = self.worlds.train_worlds * self.worlds.train_tasks_per_world
        if self.rl.tasks_per_step > pool:
            raise ValueError(f"rl.tasks_per_step is {self.rl.tasks_per_step}, but the train pool holds {pool} tasks")
        if self.warm_start.worlds > self.worlds.sft_worlds - self.worlds.sft_heldout_worlds:
            raise ValueError("warm_start.worlds must not exceed the sft worlds that are not held out")
        return self
