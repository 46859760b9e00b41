"""The whole ladder in small, uninterrupted and killed again and again: both end in the same report.

Gates are set so that they hold at any score: what is tested is the machinery, on a policy that has really learned a
little. The killed run shares the uninterrupted one's base training (tests/train kills that one) to save its minute.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from journeyman.ladder.report.timeless import without_time
from journeyman.ladder.report.write import read_report

pytestmark = pytest.mark.thorough

RECIPE = """
[worlds]
train_worlds = 8
dev_worlds = 5
test_worlds = 6
dev_tasks_per_world = 2
max_train_worlds = 16

[sft]
stop_loss = 0.15
decay_steps = 100
max_final_loss = 1.0
min_greedy = 0.0
heldout_traces = 40

[warm_start]
min_dry_run = 0.0

[rl]
tasks_per_step = 8
trials_per_task = 4
overfit_steps = 2
train_steps = 3

[ablation]
steps = 1
samples = 1

[evaluation]
samples = 1

[gates]
min_overfit_gain = -1.0
min_final_reward = 0.0
min_dev_gain = -1.0
min_test_gain = -1.0
"""
SHARED_STAGES = ("tasks", "tokenizer", "fresh", "base-sft", "oracles")
SHARED_PARTS = ("environment", "tasks", "worlds", "cache", "tokenizer", "base-sft", "recipe.json")
KILLS_S = (3.0, 5.0, 8.0, 11.0)
"""Seconds after its start was recorded at which each process is killed."""


def start(out: Path, recipe: Path) -> subprocess.Popen[bytes]:
    command = [
        sys.executable,
        "-m",
        "journeyman.cli.main",
        "quickstart",
        "--out",
        str(out),
        "--seed",
        "11",
        "@",
        str(recipe),
    ]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)


def finish(process: subprocess.Popen[bytes]) -> None:
    _, errors = process.communicate(timeout=600)
    assert process.returncode == 0, errors.decode()[-3000:]


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recipe") / "small.toml"
    path.write_text(RECIPE)
    return path


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, recipe: Path) -> Path:
    """A run that nobody disturbed."""
    out = tmp_path_factory.mktemp("whole") / "run"
    finish(start(out, recipe))
    return out


def test_the_small_ladder_passes_all_seven_steps(whole: Path) -> None:
    report = read_report(whole / "report.json")
    assert report.status == "passed"
    assert [step.name for step in report.steps] == [
        "environment",
        "tokens",
        "system",
        "overfit",
        "ablate",
        "train",
        "transfer",
    ]
    assert {(row.role, row.harness) for row in report.models} == {
        (role, harness)
        for role in ("fresh", "clean_base", "warm_start", "trained")
        for harness in ("toolbelt", "react")
    }
    assert report.errors is not None
    assert sum(row.n_trials for row in report.errors.rows) == report.errors.n_trials


def test_the_test_split_is_opened_by_step_7_alone_and_each_opening_is_counted(whole: Path) -> None:
    report = read_report(whole / "report.json")
    assert [opening.purpose for opening in report.openings] == ["transfer to held-out worlds"] * 10
    for folder in ("dry-run", "overfit", "ablation", "train"):
        for trials in (whole / folder).rglob("trials.jsonl"):
            assert {json.loads(line)["split"] for line in trials.read_text().splitlines()} == {"train"}


def test_every_sampled_token_of_the_run_is_stored_with_its_logprob(whole: Path) -> None:
    replay = read_report(whole / "report.json").replay
    assert replay is not None
    tokens = [token for turn in replay.turns for token in turn.tokens]
    assert all((t.source == "sampled") == (t.mask == 1) == (t.logprob is not None) for t in tokens)
    assert {t.version for t in tokens if t.source == "sampled"} == {3}


def test_a_run_killed_at_any_moment_ends_in_the_same_report(whole: Path, recipe: Path, tmp_path: Path) -> None:
    out = tmp_path / "killed"
    (out / "state").mkdir(parents=True)
    for part in SHARED_PARTS:
        source = whole / part
        if source.is_dir():
            shutil.copytree(source, out / part, symlinks=True)
        else:
            shutil.copyfile(source, out / part)
    for role in ("fresh", "clean_base"):
        shutil.copytree(whole / "models" / role, out / "models" / role)
    for stage in SHARED_STAGES:
        shutil.copyfile(whole / "state" / f"{stage}.json", out / "state" / f"{stage}.json")
    n_killed = 0
    for delay in KILLS_S:
        n_before = len(list((out / "state").glob("session-*.json")))
        process = start(out, recipe)
        while process.poll() is None and len(list((out / "state").glob("session-*.json"))) == n_before:
            time.sleep(0.1)  # on a busy machine a start takes long; what is killed has begun
        time.sleep(delay)
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
            n_killed += 1
        process.communicate()
    finish(start(out, recipe))
    assert n_killed >= 3
    assert facts(out) == facts(whole)
    assert read_report(out / "report.json").run.n_interruptions == n_killed
    assert not [line for line in processes() if str(out) in line]


def facts(out: Path) -> dict[str, Any]:
    return without_time(read_report(out / "report.json"))


def processes() -> list[str]:
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue
    return lines
