from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from task_directories import MakeTask, draft

from journeyman.errors import InputError
from journeyman.tasks.task import TaskDirectoryError, TaskDraft, load_task, write_task
from journeyman.tasks.task_toml import TaskToml
from journeyman.tasks.toml_text import line_of, to_toml


def _problems(directory: Path) -> dict[str, str]:
    with pytest.raises(TaskDirectoryError) as caught:
        load_task(directory)
    return {problem.path: f"{problem.source} {problem.message}" for problem in caught.value.problems}


def _with_toml(directory: Path, text: str) -> Path:
    write_task(draft(), directory)
    (directory / "task.toml").write_text(text)
    return directory


def test_a_written_task_loads_with_everything_the_policy_and_the_verifier_need(make_task: MakeTask):
    task = make_task("look-0001", timeout_s=7)
    assert (task.id, task.family, task.world_id, task.split) == ("look-0001", "look", "train-0001", "train")
    assert task.instruction == "report Acme Q1 from sales.csv\n"
    assert task.files == ("sales.csv",)
    assert task.deliverables == ("answer.json",)
    assert (task.verifier_timeout_s, task.agent_timeout_s, task.needs_exit_zero) == (7.0, None, True)
    assert task.metadata["journeyman"]["world_digest"] == task.world_digest == "0" * 64
    assert task.warnings == ()
    assert os.access(task.path / "tests" / "test.sh", os.X_OK)


def test_a_task_without_our_metadata_counts_as_imported(make_task: MakeTask):
    task = make_task("theirs", is_own=False)
    assert (task.family, task.split, task.world_id, task.deliverables) == ("imported", "imported", "theirs", ())
    assert not task.needs_exit_zero


def test_same_draft_same_bytes(tmp_path: Path):
    first, second = write_task(draft(), tmp_path / "a"), write_task(draft(), tmp_path / "b")
    names = [p.relative_to(first) for p in sorted(first.rglob("*")) if p.is_file()]
    assert [(first / n).read_bytes() for n in names] == [(second / n).read_bytes() for n in names]
    assert len(names) == 8


def test_all_problems_of_a_directory_are_reported_at_once(tmp_path: Path):
    directory = _with_toml(tmp_path / "bad", '[metadata.journeyman]\nfamily = "look"\n[verifier]\ntimeout_sec = -5\n')
    (directory / "instruction.md").unlink()
    (directory / "tests" / "test.sh").unlink()
    problems = _problems(directory)
    assert "this file is missing" in problems["instruction"]
    assert "no verifier" in problems["verifier"]
    assert problems["verifier.timeout_sec"].startswith("task.toml:4 got -5; ")
    assert "greater than 0" in problems["verifier.timeout_sec"]
    missing = {"world_id", "split", "world_digest", "deliverables"}
    assert {f"metadata.journeyman.{name}" for name in missing} < set(problems)


def test_a_task_without_verifier_is_an_input_error_that_names_the_directory(tmp_path: Path):
    directory = write_task(draft(), tmp_path / "unverified")
    (directory / "tests" / "test.sh").unlink()
    with pytest.raises(InputError, match="no verifier") as caught:
        load_task(directory)
    assert caught.value.exit_code == 2
    assert caught.value.where == str(directory)


def test_bad_toml_is_reported_with_its_line(tmp_path: Path):
    assert "line 2" in _problems(_with_toml(tmp_path / "t", 'schema_version = "1.4"\n[verifier\n'))["task.toml"]


@pytest.mark.parametrize(
    ("toml", "field", "words"),
    [
        ('schema_version = "2.0"', "schema_version", "got '2.0'; unknown schema version; allowed: 1.x"),
        ('version = "9.9"', "version", "got '9.9'; unknown schema version"),
        ('artifacts = ["../../etc/shadow"]', "artifacts.0.source", "leaves the sandbox"),
        ('[[artifacts]]\nsource = "/out"\ndestination = "/etc"', "artifacts.0.destination", "leaves the sandbox"),
        ("[verifier]\ntimeout_sec = 0", "verifier.timeout_sec", "greater than 0"),
        ("[verifier]\ntimeout_sec = true", "verifier.timeout_sec", "valid number"),
        ("[agent]\ntimeout_sec = inf", "agent.timeout_sec", "finite"),
        ("[environment]\nmemory_mb = -1", "environment.memory_mb", "greater than 0"),
        ('[environment]\nnetwork_mode = "nonetwork"', "environment.network_mode", "got 'nonetwork'"),
        ('[[steps]]\nname = "one"', "steps", "several steps are no single task"),
    ],
)
def test_an_impossible_field_is_refused_by_name_with_what_is_allowed(tmp_path: Path, toml: str, field: str, words: str):
    assert words in _problems(_with_toml(tmp_path / "t", toml))[field]


def test_a_nearly_right_word_is_suggested(tmp_path: Path):
    directory = _with_toml(tmp_path / "t", '[environment]\nnetwork_mode = "nonetwork"')
    with pytest.raises(TaskDirectoryError, match="Did you mean no-network"):
        load_task(directory)


def test_deliverables_that_leave_the_artifacts_are_refused(tmp_path: Path):
    for path in ("/etc/passwd", "../truth.json", "a/../../b", "~/x", ""):
        text = to_toml({"metadata": {"journeyman": {"family": "f", "deliverables": [path]}}})
        problems = _problems(_with_toml(tmp_path / "t", text))
        assert "leaves the sandbox" in problems["metadata.journeyman.deliverables.0"]


def test_unknown_keys_are_warned_about_with_line_and_nearest_match_and_not_refused(tmp_path: Path):
    text = "[metadata]\nanything = 1\n[verifier]\ntimeout_secs = 5\n[future]\nx = 1\n"
    task = load_task(_with_toml(tmp_path / "t", text))
    assert task.warnings == (
        "task.toml:5: unknown key future is ignored.",
        "task.toml:4: unknown key verifier.timeout_secs is ignored. Did you mean timeout_sec?",
    )
    assert task.verifier_timeout_s == 600


def test_the_old_key_version_and_plain_string_artifacts_are_accepted(tmp_path: Path):
    task = load_task(_with_toml(tmp_path / "t", 'version = "1.0"\nartifacts = ["/app/out"]'))
    assert task.config.schema_version == "1.0"
    assert task.config.artifacts[0].source == "/app/out"
    assert task.warnings == ()


def test_a_link_out_of_the_task_directory_is_refused_and_one_inside_is_not(tmp_path: Path):
    directory = write_task(draft(), tmp_path / "t")
    (directory / "environment" / "world" / "again.csv").symlink_to("sales.csv")
    assert load_task(directory).files == ("again.csv", "sales.csv")
    (directory / "environment" / "world" / "shadow").symlink_to("/etc/passwd")
    assert "leaves the task directory" in _problems(directory)["files"]


def test_a_directory_that_does_not_exist_is_an_input_error(tmp_path: Path):
    with pytest.raises(InputError, match="is not a directory"):
        load_task(tmp_path / "nothing")


def test_a_draft_that_would_not_load_leaves_nothing_behind(tmp_path: Path):
    bad = draft(timeout_s=-1)
    with pytest.raises(TaskDirectoryError, match=r"verifier\.timeout_sec") as caught:
        write_task(bad, tmp_path / "t")
    assert caught.value.where == str(tmp_path / "t")
    assert list(tmp_path.iterdir()) == []


def test_a_draft_cannot_write_outside_its_directory(tmp_path: Path):
    for name in ("../escape", "/tmp/escape", "task.toml"):
        bad = TaskDraft("x", {}, {**draft().files, name: b"x"})
        with pytest.raises(InputError, match="is no path of a further file"):
            write_task(bad, tmp_path / "inner" / "t")
    assert not any(p.is_file() for p in tmp_path.rglob("*"))


def test_writing_again_replaces_the_whole_directory(tmp_path: Path):
    directory = write_task(draft(), tmp_path / "t")
    (directory / "stray").write_text("left over")
    write_task(draft(), directory)
    assert not (directory / "stray").exists()
    assert [p.name for p in tmp_path.iterdir()] == ["t"]


def test_line_of_finds_keys_in_tables_and_falls_back_to_the_table():
    text = 'a = 1\n[metadata.journeyman]\nfamily = "x"\n[[environment.mcp_servers]]\nname = "n"\n'
    assert line_of(text, ("a",)) == 1
    assert line_of(text, ("metadata", "journeyman", "family")) == 3
    assert line_of(text, ("metadata", "journeyman", "split")) == 2
    assert line_of(text, ("environment", "mcp_servers", 0, "name")) == 5
    assert line_of(text, ("verifier",)) is None


_plain = st.one_of(
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.text(st.characters(exclude_categories=["Cs"])),
)
_keys = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
_tables = st.recursive(
    st.dictionaries(_keys, _plain | st.lists(_plain, max_size=3), max_size=4),
    lambda inner: st.dictionaries(_keys, _plain | inner | st.lists(inner, max_size=2), max_size=4),
    max_leaves=12,
)


@given(_tables)
def test_what_is_written_as_toml_reads_back_equal(values: dict[str, object]):
    assert tomllib.loads(to_toml(values)) == values


def test_the_defaults_are_those_of_the_format():
    config = TaskToml()
    assert (config.verifier.timeout_sec, config.environment.build_timeout_sec) == (600, 600)
    assert (config.environment.network_mode, config.environment.os) == ("public", "linux")
    assert config.agent.timeout_sec is None
    assert json.loads(config.model_dump_json())["multi_step_reward_strategy"] == "mean"
