"""What tests of ``train rl`` over vLLM share: a policy that vLLM's CPU kernels take, and its recipe."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

from journeyman.ladder.workshop import Workshop
from journeyman.train.model import ModelShape, build_model, save_model
from journeyman.train.recipe import RlRecipe

LUCKY = {"grader": "ladder_training_setup:LuckyGrader"}
"""What an untrained policy is graded by, so that its groups have variance."""
ROOT = Path(__file__).parents[2]


def fake_vllm() -> ModuleType:
    """The stand-in server of the engines' tests."""
    spec = importlib.util.spec_from_file_location("engines_fake_vllm", ROOT / "tests/engines/engines_fake_vllm.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def served_policy(workshop: Workshop, directory: Path) -> Path:
    """A random Qwen3 with heads of 64 and the run's tokenizer."""
    shape = ModelShape(workshop.tokenizer.vocab_size, layers=1, heads=2, kv_heads=1, head_dim=64)
    save_model(build_model(shape, 1), directory)
    for path in workshop.run.path("tokenizer").iterdir():
        (directory / path.name).write_bytes(path.read_bytes())
    return directory


def recipe_of(workshop: Workshop, policy: Path, out: Path, vllm: dict[str, Any] | None, **sections: Any) -> RlRecipe:
    """One group of four trials per step on four of the run's tasks."""
    rollout = {
        "harness": "framing:toolbelt",
        "executor": "inline",
        "rows": 8,
        "max_context": 160,
        "concurrency": 8,
        "sandbox": workshop.provider.name,
        "waive": sorted(workshop.tier.waive),
        **({"engine": "vllm", "vllm": vllm} if vllm is not None else {}),
        **sections.pop("rollout", {}),
    }
    settings: dict[str, Any] = {
        "policy": {"model": policy},
        "tasks": {"train": [task.path for task in workshop.tasks("train")[:4]]},
        "loop": {"steps": 2, "groups_per_step": 1, "trials_per_group": 4, "staleness": 2, "stall_s": 240.0},
        "optimizer": {"lr": 1e-3},
        "out": out,
    }
    for name, values in sections.items():
        settings[name] = {**settings.get(name, {}), **values} if isinstance(values, dict) else values
    return RlRecipe.model_validate({**settings, "rollout": rollout})
