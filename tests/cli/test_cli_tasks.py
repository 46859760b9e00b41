"""Task directories and worlds are built and checked from the command line."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """Two splits of small worlds, as `journeyman worlds build` writes them."""
    from journeyman.cli.main import main

    out = tmp_path_factory.mktemp("built")
    for split in ("train", "dev"):
        words = ["worlds", "build", "--seed", "12345", "--split", split, "--worlds", "2", "--tasks-per-world", "2"]
        assert main([*words, "--out", str(out), "--quiet"]) == 0
    return out


@pytest.fixture
def copy(built, tmp_path) -> Path:
    return Path(shutil.copytree(built, tmp_path / "copy"))


def test_build_says_where_the_tasks_lie(run, tmp_path):
    done = run("worlds", "build", "--worlds", "1", "--tasks-per-world", "1", "--out", str(tmp_path / "w"))
    assert done.code == 0
    assert done.out.splitlines()[-1] == f"1 tasks: {tmp_path / 'w' / 'tasks' / 'train'}"
    assert "building 1 worlds" in done.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--split", "tran"], "split"),
        (["--worlds", "-1"], "-1"),
        (["--worlds", "many"], "many"),
    ],
)
def test_impossible_arguments_end_with_2_and_write_nothing(run, tmp_path, words, message):
    done = run("worlds", "build", *words, "--out", str(tmp_path / "w"))
    assert done.code == 2
    assert message in done.err
    assert not (tmp_path / "w").exists()


def test_a_place_that_cannot_be_written_ends_with_2(run, tmp_path):
    (tmp_path / "file").write_text("")
    done = run("worlds", "build", "--worlds", "1", "--out", str(tmp_path / "file" / "below"))
    assert done.code == 2
    assert str(tmp_path / "file" / "below") in done.err


def test_built_tasks_pass_both_checks_also_against_a_rebuild(run, built):
    tasks = run("tasks", "check", str(built / "tasks" / "train"), "--json")
    assert json.loads(tasks.out) == {"tasks": 4, "problems": {}, "warnings": {}}
    worlds = run("worlds", "check", str(built), "--seed", "12345", "--json")
    assert json.loads(worlds.out) == {
        "tasks": 8,
        "splits": ["dev", "train"],
        "rebuilt": True,
        "proven": False,
        "findings": [],
    }
    assert (tasks.code, worlds.code) == (0, 0)


def test_another_seed_does_not_make_these_worlds(run, built):
    done = run("worlds", "check", str(built), "--seed", "12346")
    assert done.code == 2
    assert "differs from what seed 12346 makes" in done.err


def test_a_changed_world_file_is_found_without_the_seed(run, copy):
    path = next((copy / "tasks" / "dev").glob("*/environment/world/*.csv"))
    path.write_bytes(path.read_bytes() + b"x")
    done = run("worlds", "check", str(copy))
    assert done.code == 2
    assert path.parents[2].name in done.err


def test_a_task_in_the_folder_of_another_split_is_found(run, copy):
    task = next((copy / "tasks" / "dev").iterdir())
    task.rename(copy / "tasks" / "train" / task.name)
    done = run("worlds", "check", str(copy))
    assert done.code == 2
    assert "dev" in done.err


def test_every_broken_task_is_listed_and_the_whole_ones_counted(run, copy):
    first, second, *_ = sorted((copy / "tasks" / "train").iterdir())
    (first / "tests" / "test.sh").unlink()
    (second / "task.toml").write_text("= broken")
    done = run("tasks", "check", str(copy / "tasks" / "train"))
    assert done.code == 2
    assert "no verifier" in done.err
    assert second.name in done.err
    assert done.out.startswith("4 tasks, 2 with problems")


@pytest.mark.parametrize("verb", ["tasks", "worlds"])
def test_a_directory_without_tasks_is_a_usage_error(run, tmp_path, verb):
    assert run(verb, "check", str(tmp_path / "absent")).code == 2
    (tmp_path / "tasks").mkdir()
    assert run(verb, "check", str(tmp_path)).code == 2


WAIVED = ["--waive", "memory", "--waive", "pids", "--waive", "disk"]


def test_oracles_and_controls_are_executed_on_request(run, built):
    done = run("worlds", "check", str(built), "--prove", *WAIVED, "--json")
    if done.code == 3:
        pytest.skip(done.err)
    assert json.loads(done.out)["findings"] == []
    assert json.loads(done.out)["proven"] is True
    assert "8 oracles score 1" in done.err
    assert done.code == 0


def test_an_oracle_that_fails_and_a_control_that_passes_are_named(run, copy):
    first, second, *_ = sorted((copy / "tasks" / "dev").iterdir())
    (first / "solution" / "solve.sh").write_text("exit 1\n")
    answer = json.loads((second / "tests" / "truth.json").read_text())["answer"]
    controls = json.loads((second / "tests" / "controls.json").read_text())
    controls[0]["answer"] = answer
    (second / "tests" / "controls.json").write_text(json.dumps(controls))
    done = run("worlds", "check", str(copy), "--prove", *WAIVED)
    if done.code == 3:
        pytest.skip(done.err)
    assert done.code == 2
    assert f"oracle/{first.name}: its oracle does not score 1" in done.err
    assert f"control/{controls[0]['name']}/{second.name}: a negative control passes" in done.err
    assert done.out.startswith("8 tasks, 2 findings")


def test_a_machine_without_a_sandbox_refuses_to_prove(built, tmp_path):
    command = [sys.executable, "-m", "journeyman.cli.main", "worlds", "check", str(built), "--prove"]
    environment = {**os.environ, "JOURNEYMAN_BWRAP": str(tmp_path / "absent")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 3
    assert "no bubblewrap" in done.stderr
