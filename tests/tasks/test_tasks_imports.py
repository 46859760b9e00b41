"""Archipelago and APEX-Agents layouts become task directories; archives that attack are refused; judges grade."""

from __future__ import annotations

import io
import json
import os
import stat
import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from journeyman.errors import InputError
from journeyman.sandbox.environment import build_environment
from journeyman.sandbox.protocol import AgentEnvironment, Provider
from journeyman.tasks.grading import GradeItem
from journeyman.tasks.imports.apex import import_apex
from journeyman.tasks.imports.archipelago import import_archipelago
from journeyman.tasks.imports.archives import ZipLimits, unpack
from journeyman.tasks.judge import JudgeAnswer, JudgeQuestion, text_views
from journeyman.tasks.rubric import Criterion, Rubric, read_rubric
from journeyman.tasks.task import load_task
from journeyman.tasks.verify import BatchVerifier, verify_in_sandbox
from journeyman.tools.agent_environment import AGENT_DISTRIBUTIONS, AGENT_PACKAGES

WORLD = {
    "filesystem/plan.txt": b"of the world\n",
    "filesystem/books/ledger.csv": b"a,1\n",
    ".apps_data/mail/inbox.json": b"[]",
}


def write_zip(path: Path, files: Mapping[str, bytes]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return path


@pytest.fixture
def apex(tmp_path: Path) -> Path:
    root = tmp_path / "apex"
    write_zip(root / "world_files_zipped" / "world_1.zip", {**WORLD, "README": b"stray"})
    rubric = [{"verifier_id": "v1", "criteria": "says 7"}, {"verifier_id": "v2", "criteria": "names the ledger"}]
    row = {"task_name": "Sum", "domain": "accounting", "world_id": "world_1", "prompt": "Add.", "rubric": rubric}
    tasks = [
        {**row, "task_id": "task_a", "task_input_files": ["plan.txt"], "new_field": 1},
        {**row, "task_id": "task_b", "task_input_files": None},
    ]
    (root / "tasks_and_rubrics.json").write_text(json.dumps(tasks))
    (root / "world_descriptions.json").write_text(json.dumps([{"world_id": "world_1", "world_name": "One"}]))
    overlay = root / "task_files" / "task_a" / "filesystem"
    overlay.mkdir(parents=True)
    (overlay / "plan.txt").write_text("of the task\n")
    return root


@pytest.fixture
def archipelago(tmp_path: Path) -> Path:
    root = tmp_path / "example"
    write_zip(root / "original_snapshot.zip", WORLD)
    write_zip(root / "final_snapshot.zip", WORLD)
    verifier = {
        "verifier_id": "ver_1",
        "verifier_version": 1,
        "world_id": "w",
        "task_id": "task_1",
        "eval_config_id": "ec",
        "verifier_values": {"criteria": "says 7", "is_primary_objective": True, "tags": ["sum"], "weight": 2},
        "verifier_index": 0,
        "verifier_dependencies": [],
    }
    documents: dict[str, Any] = {
        "verifiers": [verifier],
        "eval_configs": [{"eval_config_id": "ec", "eval_config_name": "n", "eval_defn_id": "output_llm"}],
        "scoring_config": {"scoring_config_id": "s", "scoring_defn_id": "template", "scoring_config_values": {}},
        "grading_settings": {"llm_judge_model": "m"},
        "initial_messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "Add."}],
        "agent_config": {"agent_config_values": {"timeout": 60, "max_steps": 5}},
    }
    for name, value in documents.items():
        (root / f"{name}.json").write_text(json.dumps(value))
    return root


def test_apex_tasks_hold_the_world_with_their_own_files_over_it_and_all_of_their_rows(apex: Path, tmp_path: Path):
    made = import_apex(apex, tmp_path / "out")
    a, b = (load_task(path) for path in made.tasks)
    assert (a.id, a.family, a.world_id, a.split, a.instruction) == (
        "task_a",
        "accounting",
        "world_1",
        "imported",
        "Add.",
    )
    assert a.files == ("books/ledger.csv", "plan.txt")
    assert (a.world / "plan.txt").read_text() == "of the task\n"
    assert (b.world / "plan.txt").read_text() == "of the world\n"
    assert a.world_digest != b.world_digest
    assert (a.path / "environment" / "apps_data" / "mail" / "inbox.json").read_bytes() == b"[]"
    assert (a.world / "books/ledger.csv").stat().st_ino == (b.world / "books/ledger.csv").stat().st_ino
    source = json.loads((a.tests / "source.json").read_text())
    assert (source["task"]["new_field"], source["world"]["world_name"]) == (1, "One")
    rubric = read_rubric(a.tests)
    assert [(c.id, c.is_primary) for c in rubric.criteria] == [("v1", True), ("v2", False)]
    assert made.warnings == ("world_1: README is neither filesystem nor .apps_data and is left",)
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["task_a", "task_b"]


def test_every_wrong_row_is_named_and_nothing_is_written(apex: Path, tmp_path: Path):
    rows = json.loads((apex / "tasks_and_rubrics.json").read_text())
    rows[0]["rubric"] = []
    rows[1]["world_id"] = "world_2"
    (apex / "tasks_and_rubrics.json").write_text(json.dumps([*rows, {"task_id": "task_b"}]))
    with pytest.raises(InputError) as caught:
        import_apex(apex, tmp_path / "out")
    for words in ("task_a: rubric", "task_b: world world_2", "prompt is missing", "occurs twice"):
        assert words in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_an_archipelago_task_keeps_its_world_prompt_rubric_and_configuration(archipelago: Path, tmp_path: Path):
    made = import_archipelago(archipelago, tmp_path / "out")
    task = load_task(made.tasks[0])
    assert (task.id, task.world_id, task.instruction, task.agent_timeout_s) == ("task_1", "w", "Add.", 60)
    assert task.files == ("books/ledger.csv", "plan.txt")
    rubric = read_rubric(task.tests)
    assert (rubric.criteria[0].weight, rubric.criteria[0].values, rubric.judge) == (
        2.0,
        {"tags": ["sum"]},
        {"llm_judge_model": "m"},
    )
    assert json.loads((task.tests / "source.json").read_text())["verifiers"][0]["verifier_version"] == 1


def test_a_world_of_many_archipelago_tasks_is_imported_whole(archipelago: Path, tmp_path: Path):
    world = tmp_path / "worlds" / "accounting-1"
    names = ("verifiers", "eval_configs", "scoring_config")
    configs = {name: json.loads((archipelago / f"{name}.json").read_text()) for name in names}
    for name, text in (("one", "Do one."), ("two", "Do two.")):
        row = {"prompt": [{"type": "text", "content": text}], "extra": {"world_name": "Accounting World 1"}}
        for path, value in (
            (world / "tasks" / f"{name}.json", row),
            (world / "grader" / "configs" / f"{name}_grading_config.json", configs),
        ):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(value))
    (world / "files").mkdir()
    (world / "files" / "plan.txt").write_text("of the world\n")
    (world / "tools" / "files" / "two").mkdir(parents=True)
    (world / "tools" / "files" / "two" / "extra.txt").write_text("x")
    made = import_archipelago(tmp_path / "worlds", tmp_path / "out")
    one, two = (load_task(path) for path in made.tasks)
    assert (one.files, two.files) == (("plan.txt",), ("extra.txt", "plan.txt"))
    assert (two.instruction, two.family) == ("Do two.", "accounting")
    assert any(".apps_data is not there" in warning for warning in made.warnings)


def test_a_directory_without_a_task_or_with_two_worlds_is_refused(archipelago: Path, tmp_path: Path):
    (tmp_path / "apart").mkdir()
    with pytest.raises(InputError, match="holds no Archipelago task"):
        import_archipelago(tmp_path / "apart", tmp_path / "out")
    write_zip(archipelago / "other.zip", WORLD)
    with pytest.raises(InputError, match=r"original_snapshot\.zip, other\.zip"):
        import_archipelago(archipelago, tmp_path / "out")


def hostile(name: str, mode: int = 0, data: bytes = b"x") -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        info = zipfile.ZipInfo(name)
        info.external_attr = mode << 16
        archive.writestr(info, data)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (hostile("../escape"), "leaves the place"),
        (hostile("filesystem/../../escape"), "leaves the place"),
        (hostile("/etc/escape"), "leaves the place"),
        (hostile("C:/escape"), "leaves the place"),
        (hostile("a\\..\\escape"), "leaves the place"),
        (hostile("link", stat.S_IFLNK | 0o777, b"/etc/passwd"), "link or a special file"),
        (hostile("pipe", stat.S_IFIFO | 0o644), "link or a special file"),
        (b"PK no archive", "no readable zip"),
    ],
)
def test_an_archive_that_leaves_its_place_is_refused_before_anything_is_written(
    tmp_path: Path, data: bytes, words: str
):
    path = tmp_path / "a.zip"
    path.write_bytes(data)
    with pytest.raises(InputError, match=words):
        unpack(path, tmp_path / "inner" / "target")
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["a.zip"]


def test_zip_bombs_are_refused_by_ratio_by_total_by_number_and_when_they_lie(tmp_path: Path):
    bomb = write_zip(tmp_path / "bomb.zip", {"a": bytes(30_000_000)})
    with pytest.raises(InputError, match="grow"):
        unpack(bomb, tmp_path / "t")
    with pytest.raises(InputError, match="unpack to"):
        unpack(bomb, tmp_path / "t", ZipLimits(total_bytes=1_000, ratio=1e9))
    many = write_zip(tmp_path / "many.zip", {str(n): b"" for n in range(30)})
    with pytest.raises(InputError, match="30 members"):
        unpack(many, tmp_path / "t", ZipLimits(files=20))
    assert not (tmp_path / "t").exists()
    data = bytearray(write_zip(tmp_path / "liar.zip", {"a": os.urandom(5_000)}).read_bytes())
    for at in (data.index(b"PK\x01\x02") + 24, data.index(b"PK\x03\x04") + 22):
        data[at : at + 4] = struct.pack("<I", 10)
    (tmp_path / "liar.zip").write_bytes(bytes(data))
    with pytest.raises(InputError):
        unpack(tmp_path / "liar.zip", tmp_path / "t")


def test_a_name_that_occurs_twice_is_refused(tmp_path: Path):
    with pytest.warns(UserWarning), zipfile.ZipFile(tmp_path / "twice.zip", "w") as archive:
        archive.writestr("a", b"1")
        archive.writestr("a", b"2")
    with pytest.raises(InputError, match="occurs twice"):
        unpack(tmp_path / "twice.zip", tmp_path / "t")


class Words:
    """A judge that looks for the last word of the criterion in the answer and the files; ``broken`` raises."""

    def __init__(self, broken: str = "") -> None:
        self.broken, self.asked = broken, []  # type: ignore[var-annotated]

    def judge(self, question: JudgeQuestion) -> JudgeAnswer:
        self.asked.append(question)
        if self.broken and self.broken in question.criterion:
            raise ConnectionError("no route")
        text = question.answer + "".join(question.files.values())
        return JudgeAnswer(question.criterion.split()[-1] in text, "looked for it")


def test_a_rubric_is_graded_by_the_judge_and_never_without_one(
    apex: Path, tmp_path: Path, provider: Provider, environment: AgentEnvironment
):
    task = load_task(import_apex(apex, tmp_path / "out").tasks[0])
    delivered = {"answer.json": b'{"answer": "it is 7"}', "notes.txt": b"from the books"}
    items = [GradeItem("t", task, delivered), GradeItem("u", task, {**delivered, "x.txt": b"the ledger"})]
    judge = Words()
    with BatchVerifier(provider, environment, "judge", judge=judge) as verifier:
        half, whole = verifier.grade(items)
        nothing = verifier.grade([GradeItem("n", task, None)])[0]
    assert (half.kind, half.reward, half.passed) == ("scored", 0.5, False)
    assert [(check.id, check.score) for check in half.checks] == [("v1", 1.0), ("v2", 0.0)]
    assert (whole.reward, whole.passed) == (1.0, True)
    assert (nothing.kind, nothing.reward) == ("malformed_deliverable", 0.0)
    assert (judge.asked[0].answer, judge.asked[0].files) == ("it is 7", {"notes.txt": "from the books"})
    with BatchVerifier(provider, environment, "judge") as verifier:
        assert verifier.grade(items)[0].error == "JudgeMissing"
    with BatchVerifier(provider, environment, "judge", judge=Words(broken="ledger")) as verifier:
        failed = verifier.grade(items)[0]
    assert (failed.kind, failed.reward, failed.error) == ("verifier_error", None, "JudgeFailed")
    assert "no route" in failed.explain
    assert verify_in_sandbox(task, delivered, provider, environment).error == "JudgeMissing"


@pytest.mark.parametrize(
    "change",
    [
        {"scoring": "criteria_level_clamped_average"},
        {"criteria": (Criterion(id="a", criterion="x", evaluation="sql_validator"),)},
    ],
)
def test_what_nobody_here_can_evaluate_is_no_reward(
    apex: Path, tmp_path: Path, provider: Provider, environment: AgentEnvironment, change: dict[str, Any]
):
    task = load_task(import_apex(apex, tmp_path / "out").tasks[0])
    rubric = Rubric(**{**read_rubric(task.tests).model_dump(), **change})
    (task.tests / "rubric.json").write_text(rubric.model_dump_json())
    with BatchVerifier(provider, environment, "judge", judge=Words()) as verifier:
        assert verifier.grade([GradeItem("t", task, {"answer.txt": b"7"})])[0].error == "EvaluationUnknown"


def test_a_judge_reads_a_workbook_as_text_from_a_sandbox_and_a_broken_one_as_a_note(
    provider: Provider, tmp_path_factory: pytest.TempPathFactory
):
    book, buffer = openpyxl.Workbook(), io.BytesIO()
    book.active["A1"] = "margin 12.5"  # type: ignore[index]
    book.save(buffer)
    readers = build_environment(
        tmp_path_factory.mktemp("readers"), distributions=AGENT_DISTRIBUTIONS, packages=AGENT_PACKAGES, programs={}
    )
    files = {"m.xlsx": buffer.getvalue(), "broken.pdf": b"no pdf", "a.bin": b"\xff\xfe", "long.txt": b"x" * 100_000}
    views = text_views(files, provider, readers, label="views", waive=frozenset())
    assert "margin 12.5" in views["m.xlsx"]
    assert "unreadable" in views["broken.pdf"]
    assert views["a.bin"] == "[2 bytes that are no text]"
    assert "60000 characters left out" in views["long.txt"]
