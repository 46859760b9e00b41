"""The RL loop on a real engine and trainer: resumable to the bit, stopped by a wrong push, masked trials left alone."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from journeyman.engines.embedded import EmbeddedEngine
from journeyman.harness import Harness
from journeyman.ladder.rl import RlJob, requests_of, rows_of, train
from journeyman.ladder.workshop import Workshop
from journeyman.seeds import stream
from journeyman.tasks.grading import GradeItem
from journeyman.tasks.verdict import Verdict, scored
from journeyman.tokens.framing import FRAMINGS
from journeyman.train.backends.torch import TorchTrainer
from journeyman.train.model import ModelShape, build_model, load_model, save_model
from journeyman.trials.inline import InlineExecutor, final_attempts
from journeyman.trials.outcome import outcome_of
from journeyman.trials.record import Trial, TrialRequest

TIMES = {"rollout_s", "wall_s"}


class LuckyGrader:
    """Passes a trial by a coin keyed by its id, so that an untrained policy has groups with variance."""

    def grade(self, items: Sequence[GradeItem]) -> list[Verdict]:
        return [scored(float(stream(0, item.trial_id).random() < 0.5), None) for item in items]


class LuckyRollouts:
    """Real trials on a real engine, graded by luck."""

    def __init__(self, workshop: Workshop, engine: Any) -> None:
        self.engine, self.seed = engine, 3
        self._executor = InlineExecutor(
            engine, workshop.tokenizer, workshop.tools_of_task, max_context=320, seed=self.seed
        )
        self.steps_before_power_cut: int | None = None

    def run(self, requests: Sequence[TrialRequest]) -> list[Trial]:
        if self.steps_before_power_cut is not None:
            if self.steps_before_power_cut == 0:
                raise KeyboardInterrupt
            self.steps_before_power_cut -= 1
        return self._executor.run(requests, LuckyGrader())


class LossyEngine(EmbeddedEngine):
    """An engine whose push loses part of one tensor from the second version on."""

    def update_weights(self, state: Mapping[str, Any], version: int) -> None:
        damaged = dict(state)
        if version > 1:
            damaged["model.norm.weight"] = state["model.norm.weight"].clone()
            damaged["model.norm.weight"][0] *= 1.2
        super().update_weights(damaged, version)


@pytest.fixture(scope="module")
def start(prepared: Workshop, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model")
    save_model(build_model(ModelShape(prepared.tokenizer.vocab_size), 1), path)
    return path


def job_of(workshop: Workshop, start: Path, **changes: Any) -> RlJob:
    tasks = tuple(workshop.tasks("train")[:3])
    settings: dict[str, Any] = {
        "name": "rl",
        "start": start,
        "tasks": tasks,
        "steps": 3,
        "tasks_per_step": 2,
        "trials_per_task": 4,
        "aggregation": "prompt",
        "loss": "dppo_tv",
        "advantage": "grpo",
        "max_gap": 1e-4,
        "harness": Harness("toolbelt", FRAMINGS["toolbelt"], max_new_tokens=6),
    }
    return RlJob(**{**settings, **changes})


def parts(workshop: Workshop, start: Path, engine: type[EmbeddedEngine] = EmbeddedEngine) -> tuple[Any, Any]:
    made = engine.from_directory(start, rows=8, max_len=320)
    return LuckyRollouts(workshop, made), TorchTrainer(load_model(start))


def without_time(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{k: v for k, v in record.items() if k not in TIMES} for record in records]


def test_a_killed_run_continues_to_the_same_bits(prepared: Workshop, start: Path, tmp_path: Path) -> None:
    job = job_of(prepared, start)
    whole = train(job, tmp_path / "whole", *parts(prepared, start))
    rollouts, trainer = parts(prepared, start)
    rollouts.steps_before_power_cut = 2
    with pytest.raises(KeyboardInterrupt):
        train(job, tmp_path / "cut", rollouts, trainer)
    # a power cut between the trials and the record of step 2: the record is gone, the trials stay as evidence
    (tmp_path / "cut" / "rl" / "step-0001" / "step.json").unlink()
    again = train(job, tmp_path / "cut", *parts(prepared, start))
    assert without_time(again) == without_time(whole)
    assert [r["step"] for r in whole] == [1, 2, 3]
    assert (tmp_path / "cut" / "rl" / "discarded-1-step-0001" / "trials.jsonl").is_file()
    last = whole[-1]["checkpoint"]
    for name in ("model.safetensors", "optimizer.safetensors"):
        files = [(tmp_path / run / "rl" / "checkpoints" / last / name).read_bytes() for run in ("whole", "cut")]
        assert files[0] == files[1]


def test_engine_and_trainer_agree_on_every_step(prepared: Workshop, start: Path, tmp_path: Path) -> None:
    records = train(job_of(prepared, start), tmp_path, *parts(prepared, start))
    assert all(0 < record["gap_mean"] < 1e-5 for record in records)
    assert all(record["trained_tokens"] > 0 and record["dropped_share"] == 0 for record in records)


def test_a_push_that_loses_one_weight_stops_the_run(prepared: Workshop, start: Path, tmp_path: Path) -> None:
    job = job_of(prepared, start, steps=5)
    records = train(job, tmp_path, *parts(prepared, start, LossyEngine))
    assert [record["gap_mean"] < 1e-4 for record in records] == [True, True, False]


def test_every_epoch_visits_every_task_once_and_no_noise_is_used_twice(prepared: Workshop, start: Path) -> None:
    tasks = tuple(prepared.tasks("train"))
    job = job_of(prepared, start, tasks=tasks, tasks_per_step=5, steps=3)
    requests = [request for step in range(3) for request in requests_of(job, step, seed=1)]
    assert sorted(r.task.id for r in requests[::4]) == sorted(task.id for task in tasks)
    assert len({r.trial_id for r in requests}) == len(requests)


def test_a_broken_trial_is_left_out_alone_and_a_group_without_variance_teaches_nothing(
    prepared: Workshop, start: Path
) -> None:
    job = job_of(prepared, start)
    rollouts, _ = parts(prepared, start)
    trials = final_attempts(rollouts.run(requests_of(job, 0, seed=1)))
    for trial, reward in zip(trials, [1.0, 0.0, 0.0, None, 1.0, 1.0, 1.0, 1.0], strict=True):
        trial.verdict = None if reward is None else scored(reward, None)
        error = OSError("the sandbox is gone") if reward is None else None
        trial.outcome = outcome_of(trial.verdict, "error" if error else "answered", error)
    rows, n_live = rows_of(trials, job, 0, seed=1)
    assert (len(rows), n_live) == (3, 1)
    assert np.isclose(sum(row.advantage for row in rows), 0)
    assert rows[0].advantage > 0 > rows[1].advantage


def test_shuffled_rewards_keep_the_rewards_and_lose_whose_they_are(prepared: Workshop, start: Path) -> None:
    rollouts, _ = parts(prepared, start)
    trials = final_attempts(rollouts.run(requests_of(job_of(prepared, start), 0, seed=1)))
    plain, _ = rows_of(trials, job_of(prepared, start), 0, seed=1)
    shuffled, _ = rows_of(trials, job_of(prepared, start, shuffled_rewards=True), 0, seed=1)
    assert [row.advantage for row in plain] != [row.advantage for row in shuffled]


def test_the_fresh_model_directory_is_untouched_by_training(prepared: Workshop, start: Path, tmp_path: Path) -> None:
    before = {path.name: path.read_bytes() for path in start.iterdir()}
    copy = tmp_path / "start"
    shutil.copytree(start, copy)
    train(job_of(prepared, copy, steps=1), tmp_path, *parts(prepared, copy))
    assert {path.name: path.read_bytes() for path in copy.iterdir()} == before
