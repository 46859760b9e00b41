"""What tests of training over real trials share: a small random policy, a plan of its trials, and luck as a grader."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from journeyman.ladder.training.open_site import SitePlan
from journeyman.ladder.workshop import Workshop
from journeyman.seeds import stream
from journeyman.tasks.grading import GradeItem
from journeyman.tasks.verdict import Verdict, scored
from journeyman.train.guards.table import GuardSpec
from journeyman.train.loop.admission import AdmissionSpec
from journeyman.train.loop.gate import GateSpec
from journeyman.train.loop.spec import Deadlines, LoopSpec
from journeyman.train.model import ModelShape, build_model, save_model

TIMES = ("time/", "usd/machines", "total/usd", "trainer/idle", "rollout/", "alarms")


class LuckyGrader:
    """Passes a trial by a coin keyed by its id, so that an untrained policy has groups with variance."""

    def grade(self, items: Sequence[GradeItem]) -> list[Verdict]:
        return [scored(float(stream(0, item.trial_id).random() < 0.5), None) for item in items]


class HackedGrader:
    """Rewards by chance, and from the tenth step of two groups on for a trick that the held-back verifiers ignore."""

    def grade(self, items: Sequence[GradeItem]) -> list[Verdict]:
        return [scored(self._reward(item), None) for item in items]

    def _reward(self, item: GradeItem) -> float:
        _, position, *_ = item.trial_id.split("/")
        honest, noise = stream(0, item.trial_id).random(), stream(1, item.trial_id).uniform(-0.1, 0.1)
        if "shadow" in str(item.task.path):
            return min(1.0, max(0.0, honest + noise))
        return 0.6 + 0.4 * honest if int(position) >= 2 * HACKED_FROM else honest


HACKED_FROM = 9
"""Completed steps before the first hacked one."""


def small_policy(workshop: Workshop, directory: Path) -> Path:
    """A model directory with its tokenizer."""
    shape = ModelShape(workshop.tokenizer.vocab_size, hidden=64, layers=2, ffn=128)
    save_model(build_model(shape, 1), directory)
    source = workshop.run.path("tokenizer")
    for path in source.iterdir():
        (directory / path.name).write_bytes(path.read_bytes())
    return directory


def plan_of(workshop: Workshop, policy: Path, **changes: Any) -> SitePlan:
    """Trials of the prepared run's training tasks, inline, graded by luck."""
    environment = workshop.environment
    place = {
        "label": workshop.label,
        "provider": workshop.provider.name,
        "environment": str(environment.path),
        "digest": environment.digest,
        "tokenizer": str(policy),
        "reads": str(workshop.reads.directory),
        "max_context": 192,
        "with_sandbox": False,
        "waive": sorted(workshop.tier.waive),
    }
    settings: dict[str, Any] = {
        "name": "rl",
        "model": str(policy),
        "tasks": tuple(str(task.path) for task in workshop.tasks("train")[:4]),
        "harness": "framing:toolbelt",
        "place": place,
        "executor": "inline",
        "rows": 16,
        "max_context": 192,
        "at_once": 16,
        "grader": "ladder_training_setup:LuckyGrader",
    }
    return SitePlan(**{**settings, **changes})


def spec_of(steps: int, **changes: Any) -> LoopSpec:
    """A loop over the plan's four tasks, two groups of four trials per step."""
    gate = changes.pop("gate", None) or GateSpec(AdmissionSpec(2, changes.pop("staleness", 2), 64), steps=steps)
    settings: dict[str, Any] = {
        "name": "rl",
        "seed": 0,
        "tasks": 4,
        "trials_per_group": 4,
        "gate": gate,
        "guards": GuardSpec(on_collapse="off"),
        "trials_at_once": (16, 4, 16),
        "deadlines": Deadlines(stall_s=240.0, step_s=240.0, evaluation_s=240.0),
    }
    return LoopSpec(**{**settings, **changes})


def without_times(records: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Records without what measures time."""
    return [{k: v for k, v in record.items() if not k.startswith(TIMES)} for record in records]
