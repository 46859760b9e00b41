"""Supervised training from a recipe: which demonstrations are learned, in which order, and what comes out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ladder_training_setup import small_policy

from journeyman.config import load
from journeyman.errors import InputError
from journeyman.ladder.training.home import TrainingHome, differences
from journeyman.ladder.training.sft import batch_of, read_demonstrations, run_sft
from journeyman.train.model import load_model
from journeyman.train.recipe import DataSection, SftRecipe


def samples(path: Path, count: int = 12) -> Path:
    rows = [
        {"token_ids": [5, 6, 7 + n % 3, 8, 9][: 4 + n % 2], "mask": [0, 0, 1, 1, 1][: 4 + n % 2], "env_name": f"t{n}"}
        for n in range(count)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_demonstrations_are_held_out_by_task_and_long_ones_are_counted(tmp_path):
    file = samples(tmp_path / "a.jsonl", 40)
    data = read_demonstrations(DataSection(samples=(file,), held_out_share=0.3, max_tokens=4), seed=0)
    assert data.too_long == 20 and len(data.train) + len(data.held_out) == 20 and data.held_out
    assert read_demonstrations(DataSection(samples=(file,), held_out_share=0.0), 0).held_out == ()
    batches = [batch_of(data.train, step, 4, 0) for step in range(3)]
    assert batches == [batch_of(data.train, step, 4, 0) for step in range(3)]


def test_a_line_that_is_no_sample_is_named(tmp_path):
    file = samples(tmp_path / "a.jsonl", 2)
    file.write_text(file.read_text() + '{"token_ids": [1], "mask": [0, 1]}\n')
    with pytest.raises(InputError, match=r"a\.jsonl:3.*do not fit"):
        read_demonstrations(DataSection(samples=(file,)), 0)


def test_a_recipe_trains_lowers_the_loss_and_leaves_a_model_that_loads(prepared, tmp_path):
    policy = small_policy(prepared, tmp_path / "policy")
    words = [
        f"--policy.model={policy}",
        f"--data.samples={samples(tmp_path / 'a.jsonl')}",
        "--data.held-out-share=0",
        "--sft.steps=12",
        "--sft.batch-size=4",
        "--sft.warmup=0",
        "--optimizer.lr=0.003",
        f"--out={tmp_path / 'run'}",
    ]
    report = run_sft(load(SftRecipe, words, {}).model, lambda line: None)
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert len(lines) == 12 and report["loss"] < lines[0]["sft/loss"] / 2
    load_model(tmp_path / "run" / "policy")
    assert run_sft(load(SftRecipe, words, {}).model, lambda line: None)["loss"] == report["loss"]


def test_a_directory_of_another_recipe_is_refused_but_for_what_may_change(tmp_path):
    def recipe(**more: str) -> SftRecipe:
        base = {"policy.model": "m", "data.runs": "r", **more}
        return load(SftRecipe, [f"--{key}={value}" for key, value in base.items()], {}).model

    with TrainingHome(tmp_path / "run", recipe()), pytest.raises(InputError, match="another process is training here"):
        TrainingHome(tmp_path / "run", recipe())
    with pytest.raises(InputError, match=r"differs in sft\.steps"):
        TrainingHome(tmp_path / "run", recipe(**{"sft.steps": "7"}))
    with TrainingHome(tmp_path / "run", recipe(**{"sft.steps": "7"}), ("sft.steps",)) as home:
        assert home.label.startswith("train-")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("x")
    with pytest.raises(InputError, match="holds no training"):
        TrainingHome(tmp_path / "other", recipe())
    assert differences({"a": {"b": 1}, "c": 2}, {"a": {"b": 2}, "c": 2}) == ["a.b"]
