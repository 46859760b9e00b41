"""Tasks and trajectories of other programs are imported, and solutions proved, from the command line."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest


@pytest.fixture
def apex(tmp_path: Path) -> Path:
    root = tmp_path / "apex"
    (root / "world_files_zipped").mkdir(parents=True)
    with zipfile.ZipFile(root / "world_files_zipped" / "w.zip", "w") as archive:
        archive.writestr("filesystem/a.txt", "a")
    rubric = [{"verifier_id": "v", "criteria": "says a"}]
    task = {"task_id": "t", "world_id": "w", "prompt": "Say.", "domain": "law", "rubric": rubric}
    (root / "tasks_and_rubrics.json").write_text(json.dumps([task]))
    (root / "world_descriptions.json").write_text(json.dumps([{"world_id": "w"}]))
    return root


def test_an_import_says_where_the_tasks_lie_and_what_was_odd(run, apex: Path, tmp_path: Path):
    with zipfile.ZipFile(apex / "world_files_zipped" / "w.zip", "a") as archive:
        archive.writestr("notes.txt", "x")
    done = run("tasks", "import", "apex", str(apex), "--out", str(tmp_path / "out"))
    assert done.code == 0
    assert done.out.splitlines()[-1] == f"1 tasks, graded by a judge: {tmp_path / 'out'}"
    assert "notes.txt" in done.err
    assert run("tasks", "check", str(tmp_path / "out")).code == 0


def test_an_import_as_json_names_the_tasks(run, apex: Path, tmp_path: Path):
    done = run("tasks", "import", "apex", str(apex), "--out", str(tmp_path / "out"), "--json")
    assert json.loads(done.out) == {"tasks": [str(tmp_path / "out" / "t")], "warnings": []}


@pytest.mark.parametrize("kind", ["apex", "archipelago"])
def test_what_is_no_source_ends_with_2_and_writes_nothing(run, tmp_path: Path, kind: str):
    done = run("tasks", "import", kind, str(tmp_path / "absent"), "--out", str(tmp_path / "out"))
    assert done.code == 2
    assert "absent" in done.err
    assert not (tmp_path / "out").exists()


def test_trajectories_become_trials_and_a_wrong_family_is_named(run, tmp_path: Path):
    steps = [{"step_id": 1, "source": "user", "message": "add"}, {"step_id": 2, "source": "agent", "message": "2"}]
    value = {"schema_version": "ATIF-v1.8", "agent": {"name": "x", "version": "1"}, "steps": steps}
    (tmp_path / "a.json").write_text(json.dumps(value))
    words = ["tasks", "import", "atif", str(tmp_path / "a.json"), "--out", str(tmp_path / "run")]
    wrong = run(*words, "--model", str(tmp_path), "--family", "qwen33")
    assert wrong.code == 2
    assert "Did you mean qwen3?" in wrong.err
    done = run(*words)
    assert (done.code, done.out.splitlines()[-1]) == (0, f"1 trials: {tmp_path / 'run'}")


def test_a_solution_is_proved_or_its_verdict_is_told(run, tmp_path: Path):
    task = tmp_path / "hello"
    for name, text in {
        "task.toml": '[environment]\nworkdir = "/app"\n',
        "instruction.md": "write hello.txt\n",
        "solution/solve.sh": "echo hello > hello.txt\n",
        "tests/test.sh": "test -s hello.txt && echo 1 > /logs/verifier/reward.txt\n",
    }.items():
        (task / name).parent.mkdir(parents=True, exist_ok=True)
        (task / name).write_text(text)
    limits = [word for limit in ("memory", "pids", "disk", "cpus") for word in ("--waive", limit)]
    done = run("tasks", "prove", str(task), *limits)
    if done.code == 3:
        pytest.skip(done.err)
    assert (done.code, done.out.splitlines()[-1]) == (0, f"1 of 1 solutions score 1: {task}")
    (task / "solution" / "solve.sh").write_text("true\n")
    broken = run("tasks", "prove", str(task), *limits)
    assert broken.code == 1
    assert "RewardFileMissing" in broken.err
