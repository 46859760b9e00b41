"""Building a split: whole directories, deterministic names and bytes, nothing half-written, splits kept apart."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from journeyman.digest import directory_sha256
from journeyman.errors import GateFailed, InputError, StorageError
from journeyman.tasks.task import load_task
from journeyman.worlds.mini import gates
from journeyman.worlds.mini.build import build_tasks
from journeyman.worlds.mini.checks import answer as check
from journeyman.worlds.mini.gates import Subject
from journeyman.worlds.mini.templates import TEMPLATES
from journeyman.worlds.mini.world import make_world
from journeyman.worlds.splits import refuse_mixed, refuse_shared_content, split_of

SEED = 20260105


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four train worlds of five tasks and two test worlds of two."""
    out = tmp_path_factory.mktemp("built")
    build_tasks(SEED, "train", 4, 5, out)
    build_tasks(SEED, "test", 2, 2, out)
    return out


def task_paths(out: Path, split: str = "train") -> list[Path]:
    return sorted((out / "tasks" / split).iterdir())


def test_tasks_are_spread_over_the_families_and_load_without_a_warning(out: Path) -> None:
    tasks = [load_task(path) for path in task_paths(out)]
    assert Counter(task.family for task in tasks) == dict.fromkeys(TEMPLATES, 4)
    assert [task.warnings for task in tasks] == [()] * 20
    assert {task.deliverables for task in tasks} == {("answer.json",)}
    assert [task.id for task in tasks[:2]] == ["train-0000-00-look", "train-0000-01-sum2"]
    assert sorted(path.name for path in out.iterdir()) == ["tasks", "worlds"]


def test_a_task_shows_its_world_and_its_digest_is_the_files(out: Path) -> None:
    for path in task_paths(out):
        task = load_task(path)
        world = make_world(SEED, "train", int(task.world_id[-4:]))
        assert {name: (task.world / name).read_bytes() for name in task.files} == world.files
        assert task.world_digest == world.digest == directory_sha256(out / "worlds" / world.id)
        assert task.instruction == task.instruction.strip()


def test_world_files_are_linked_not_copied(out: Path) -> None:
    task = load_task(task_paths(out)[0])
    for name in task.files:
        assert os.path.samefile(task.world / name, out / "worlds" / task.world_id / name)  # noqa: PTH121


def test_neither_seed_nor_canary_nor_answer_lies_where_the_agent_looks(out: Path) -> None:
    for path in task_paths(out):
        truth = json.loads((path / "tests" / "truth.json").read_text())
        visible = [path / "instruction.md", *(p for p in (path / "environment").rglob("*") if p.is_file())]
        content = b"\n".join(p.read_bytes() for p in visible)
        assert truth["canary"].encode() not in content
        assert str(SEED).encode() not in content
        assert truth["answer"].encode() not in (path / "instruction.md").read_bytes()
        assert b"journeyman" not in content
        for hidden in ("tests", "solution", "task.toml"):
            assert str(SEED).encode() not in b"".join(
                p.read_bytes() for p in [path / hidden, *(path / hidden).rglob("*")] if p.is_file()
            )


def test_the_same_seed_builds_the_same_bytes(out: Path, tmp_path: Path) -> None:
    program = (
        "from pathlib import Path; from journeyman.worlds.mini.build import build_tasks\n"
        f"build_tasks({SEED}, 'train', 4, 5, Path('again'))"
    )
    environment = {"PYTHONHASHSEED": "77", "TZ": "Asia/Tokyo", "PATH": "/usr/bin:/bin"}
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=environment, check=True, timeout=60)
    assert directory_sha256(tmp_path / "again/tasks/train") == directory_sha256(out / "tasks/train")


def test_a_split_grows_without_changing_what_it_has(out: Path, tmp_path: Path) -> None:
    build_tasks(SEED, "train", 2, 5, tmp_path)
    build_tasks(SEED, "train", 2, 5, tmp_path, first_index=2)
    assert directory_sha256(tmp_path / "tasks/train") == directory_sha256(out / "tasks/train")


def test_building_again_replaces_what_was_damaged(tmp_path: Path) -> None:
    paths = build_tasks(SEED, "dev", 1, 2, tmp_path)
    before = directory_sha256(tmp_path / "tasks")
    (paths[0] / "instruction.md").write_text("damaged")
    (paths[1] / "tests" / "extra").write_text("left over")
    build_tasks(SEED, "dev", 1, 2, tmp_path)
    assert directory_sha256(tmp_path / "tasks") == before


def test_every_control_on_disk_fails_under_the_check_on_disk(out: Path) -> None:
    for path in task_paths(out):
        truth = json.loads((path / "tests" / "truth.json").read_text())
        controls = json.loads((path / "tests" / "controls.json").read_text())
        assert len(controls) >= 4
        assert (path / "tests" / "check.py").read_bytes() == Path(check.__file__).read_bytes()
        for control in controls:
            found = check.grade({"answer.json": json.dumps({"answer": control["answer"]}).encode()}, truth)
            assert found["reward"] <= 0.5
            assert not found["passed"]


def test_many_tasks_of_one_world_never_ask_twice(tmp_path: Path) -> None:
    paths = build_tasks(SEED, "sft", 1, 60, tmp_path)
    assert len({(path / "instruction.md").read_text() for path in paths}) == 60


@pytest.mark.parametrize(("split", "worlds", "tasks"), [("validation", 1, 1), ("train", 0, 1), ("train", 1, -2)])
def test_impossible_requests_write_nothing(tmp_path: Path, split: str, worlds: int, tasks: int) -> None:
    with pytest.raises(InputError):
        build_tasks(SEED, split, worlds, tasks, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_place_that_cannot_be_written_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StorageError, match="cannot be written: Not a directory"):
        build_tasks(SEED, "train", 1, 1, tmp_path / "file")


def test_a_disk_that_takes_no_more_leaves_nothing_half_written(out: Path, tmp_path: Path) -> None:
    program = f"""
import resource
from pathlib import Path
from journeyman.errors import StorageError
from journeyman.worlds.mini.build import build_tasks
build_tasks({SEED}, "train", 1, 2, Path("out"))
resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
try:
    build_tasks({SEED}, "train", 4, 5, Path("out"))
except StorageError as error:
    print(error)
"""
    argv = [sys.executable, "-c", program]
    printed = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60).stdout
    assert printed == "out: cannot be written: File too large\n"
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["tasks", "worlds"]
    for path in (tmp_path / "out/tasks/train").iterdir():
        assert directory_sha256(path / "tests") == directory_sha256(out / "tasks/train" / path.name / "tests")


def test_a_failed_gate_publishes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def strict(subject: Subject) -> list[str]:
        return ["never good enough"]

    monkeypatch.setitem(gates.GATES, "strict", strict)
    with pytest.raises(GateFailed, match=r"2 findings in 2 tasks.*\n  train-0000-00-look: strict: never good enough"):
        build_tasks(SEED, "train", 1, 2, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_task_of_another_split_cannot_enter_a_score(out: Path) -> None:
    train, test = ([load_task(path) for path in task_paths(out, split)] for split in ("train", "test"))
    refuse_mixed(train, "train")
    refuse_mixed(test, "test")
    with pytest.raises(InputError, match="train-0000-00-look: is a task of split 'train' in a score of 'test'"):
        refuse_mixed([*test, train[0]], "test")
    with pytest.raises(InputError, match="'exam' is unknown"):
        refuse_mixed(test, "exam")


def test_a_task_that_hides_its_split_is_found_by_its_world(out: Path, tmp_path: Path) -> None:
    (path,) = build_tasks(SEED, "dev", 1, 1, tmp_path)
    relabelled = (path / "task.toml").read_text().replace('split = "dev"', 'split = "test"')
    (path / "task.toml").write_text(relabelled)
    with pytest.raises(InputError, match="says 'test', but its world dev-0000 is of another split"):
        refuse_mixed([load_task(path)], "test")


def test_the_same_files_under_two_splits_are_found_by_their_digest(out: Path, tmp_path: Path) -> None:
    refuse_shared_content([load_task(path) for split in ("train", "test") for path in task_paths(out, split)])
    train = load_task(task_paths(out)[0])
    (path,) = build_tasks(SEED, "test", 1, 1, tmp_path)
    for name in load_task(path).files:
        (path / "environment/world" / name).unlink()
    for name in train.files:
        (path / "environment/world" / name).write_bytes((train.world / name).read_bytes())
    with pytest.raises(InputError, match="not those that world_digest"):
        refuse_shared_content([load_task(path)])
    config = (path / "task.toml").read_text()
    (path / "task.toml").write_text(config.replace(load_task(path).world_digest, train.world_digest))
    with pytest.raises(InputError, match="test-0000-00-look: has the same world files as train-0000-00-look"):
        refuse_shared_content([train, load_task(path)])


@pytest.mark.parametrize("world_id", ["train", "exam-0001", "train-x", "", "-1"])
def test_a_foreign_world_id_has_no_split(world_id: str) -> None:
    assert split_of("test-0001") == "test"
    with pytest.raises(InputError, match="is no world id"):
        split_of(world_id)
