"""A run is graded again from what it saved: broken verdicts get their number, old ones stay, no agent runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from journeyman.errors import EnvironmentMissing, InputError
from journeyman.redact import Redactor
from journeyman.sandbox import PROVIDERS
from journeyman.sandbox.environment import build_environment
from journeyman.tasks.artifacts import write_artifacts
from journeyman.tasks.task import TaskDraft, load_task, write_task
from journeyman.tasks.verdict import scored, verdict_from_dict, verifier_error
from journeyman.tasks.verify import BatchVerifier
from journeyman.trials.executors.closing import ARTIFACTS
from journeyman.trials.outcome import outcome_of
from journeyman.trials.regrade import RegradeReport, regrade_run
from journeyman.trials.run_tasks import RECORDS, RUN_FILE, RunTasks
from journeyman.trials.store import HotTrial, open_run
from journeyman.trials.store.space import SpaceGuard

CHECK = """
import json

class MalformedDeliverable(Exception):
    pass

def grade(artifacts, truth):
    try:
        answer = json.loads(artifacts["answer.json"])["answer"]
    except (KeyError, TypeError, ValueError) as error:
        raise MalformedDeliverable(repr(error)) from error
    return {"reward": float(answer == truth["answer"]), "passed": answer == truth["answer"], "checks": []}
"""
BROKEN = "def grade(artifacts, truth):\n    raise KeyError('planted-key-98765432')\n"
NONE: dict[str, bytes] | None = None


def put_task(run: Path, name: str, check: str = CHECK) -> None:
    own = {"family": "look", "world_id": "w-1", "split": "train", "world_digest": "0" * 64}
    files = {
        "environment/Dockerfile": b"FROM debian:12\n",
        "solution/solve.sh": b"true\n",
        "tests/test.sh": b"exit 9\n",
        "tests/truth.json": b'{"answer": "412"}',
        "tests/check.py": check.encode(),
    }
    config = {"metadata": {"journeyman": {**own, "deliverables": ["answer.json"]}}}
    load_task(write_task(TaskDraft("report it\n", config, files), run / "tasks" / "train" / name))


def put_trial(
    run: Path, trial_id: str, task: str, delivered: dict[str, bytes] | None, verdict: Any, **changes: Any
) -> None:
    outcome = outcome_of(verdict, "answered", None)
    texts = {name: data.decode(errors="replace") for name, data in (delivered or {}).items()}
    record = {
        "task_id": task,
        "harness": "toolbelt",
        "stop_reason": "answered",
        "outcome": outcome.outcome_class,
        "cause": outcome.cause,
        "reward": verdict.reward if verdict else None,
        "passed": verdict.passed if verdict else None,
        "verdict": verdict.to_dict() if verdict else None,
        "turns": [],
        "deliverables": texts,
        **changes,
    }
    with HotTrial(run, trial_id, space=SpaceGuard(reserve_bytes=0, wait_s=0), durable=False) as hot:
        directory = hot.close(record)
    if delivered is not None and changes.get("saved", True):
        write_artifacts(delivered, run / ARTIFACTS / directory.relative_to(run / "trials"))


def given(value: str) -> dict[str, bytes]:
    return {"answer.json": json.dumps({"answer": value}).encode()}


@pytest.fixture
def grade_again(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., RegradeReport]]:
    try:
        provider = PROVIDERS["bwrap"]()
    except EnvironmentMissing as missing:
        pytest.skip(str(missing))
    environment = build_environment(tmp_path_factory.mktemp("agent"))
    waive = frozenset({"memory", "pids"}) - provider.supports
    label = f"test-regrade-{os.getpid()}"

    def go(run: Path, **changes: Any) -> RegradeReport:
        with BatchVerifier(provider, environment, label, waive=waive) as verifier:
            return regrade_run(run, verifier, **changes)

    yield go
    assert provider.list(label) == []


@pytest.fixture
def run_directory(tmp_path: Path) -> Path:
    """Five graded trials: two whose verifier broke then, one wrong verdict, one right, one that delivered nothing."""
    run = tmp_path / "run"
    for name in ("look-1", "look-2"):
        put_task(run, name)
    broke = verifier_error(_fault())
    put_trial(run, "a/1", "look-1", given("412"), broke)
    put_trial(run, "a/2", "look-1", given("413"), broke)
    put_trial(run, "b/1", "look-2", given("412"), scored(0.0, False))
    put_trial(run, "b/2", "look-2", given("412"), scored(1.0, True))
    put_trial(run, "b/3", "look-2", NONE, scored(1.0, True))
    return run


def _fault() -> Any:
    from journeyman.tasks.errors import VerifierTimeout

    return VerifierTimeout("check.py did not end within 20 s")


def files_of(run: Path) -> dict[str, bytes]:
    """Every file of the run but what grading again made."""
    return {
        path.relative_to(run).as_posix(): path.read_bytes()
        for path in run.rglob("*")
        if path.is_file() and "regrades" not in path.parts
    }


def test_broken_verdicts_get_a_number_wrong_ones_change_and_old_ones_are_kept(
    grade_again: Callable[..., RegradeReport], run_directory: Path
) -> None:
    before = files_of(run_directory)
    report = grade_again(run_directory)
    after = {trial.key: (trial.before["reward"] if trial.before else None, trial.after["reward"], trial.outcome_after)
             for trial in report.trials}  # fmt: skip
    assert after == {
        "a/1#1": (None, 1.0, "solved"),
        "a/2#1": (None, 0.0, "failed"),
        "b/1#1": (0.0, 1.0, "solved"),
        "b/2#1": (1.0, 1.0, "solved"),
        "b/3#1": (1.0, 0.0, "malformed_deliverable"),
    }
    assert [trial.key for trial in report.changed] == ["a/1#1", "a/2#1", "b/1#1", "b/3#1"]
    assert report.moves()["verifier_error -> solved"] == 1
    assert files_of(run_directory) == before
    with open_run(run_directory) as opened:
        assert verdict_from_dict(opened.record("a/1")["verdict"]).error == "VerifierTimeout"
        assert len(opened.trials()) == 5


def test_the_report_and_both_verdicts_lie_beside_the_run_and_the_next_one_gets_its_own_place(
    grade_again: Callable[..., RegradeReport], run_directory: Path
) -> None:
    first, second = grade_again(run_directory), grade_again(run_directory)
    assert first.place != second.place
    assert {path.name for path in (run_directory / "regrades").iterdir()} == {first.place.name, second.place.name}
    lines = [json.loads(line) for line in (first.place / "verdicts.jsonl").read_text().splitlines()]
    assert [line["key"] for line in lines] == ["a/1#1", "a/2#1", "b/1#1", "b/2#1", "b/3#1"]
    assert lines[0]["before"]["error"] == "VerifierTimeout"
    assert lines[0]["after"] == {"kind": "scored", "reward": 1.0, "passed": True, "error": None, "explain": ""}
    facts = json.loads((first.place / "report.json").read_text())
    assert (facts["graded"], facts["verifier_errors"], facts["skipped"]) == (5, 0, {})


def test_tasks_and_trials_can_be_chosen_and_a_wrong_name_is_refused_before_anything_runs(
    grade_again: Callable[..., RegradeReport], run_directory: Path
) -> None:
    assert [t.key for t in grade_again(run_directory, only_tasks=["look-1"]).trials] == ["a/1#1", "a/2#1"]
    assert [t.key for t in grade_again(run_directory, only_trials=["b/1", "a/2#1"]).trials] == ["a/2#1", "b/1#1"]
    with pytest.raises(InputError, match=r"look-3.*nearest: look-"):
        grade_again(run_directory, only_tasks=["look-3"])
    with pytest.raises(InputError, match="nearest: b/"):
        grade_again(run_directory, only_trials=["b/9"])


def test_a_verifier_that_breaks_again_still_gives_no_number_and_its_words_hold_no_secret(
    grade_again: Callable[..., RegradeReport], tmp_path: Path
) -> None:
    run = tmp_path / "run"
    put_task(run, "look-1", BROKEN)
    put_trial(run, "a/1", "look-1", given("412"), scored(1.0, True))
    report = grade_again(run, redact=Redactor({"planted-key-98765432": "MY_KEY"}))
    (trial,) = report.trials
    assert (trial.after["kind"], trial.after["reward"], report.num_verifier_errors) == ("verifier_error", None, 1)
    text = (report.place / "verdicts.jsonl").read_text()
    assert "planted-key" not in text
    assert "[secret MY_KEY]" in text


def test_what_cannot_be_graded_again_is_counted_with_its_reason(
    grade_again: Callable[..., RegradeReport], tmp_path: Path
) -> None:
    run = tmp_path / "run"
    put_task(run, "look-1")
    put_trial(
        run, "a/system", "look-1", NONE, None, outcome="system_error", cause="sandbox_failed", stop_reason="error"
    )
    put_trial(run, "a/gone", "look-9", given("412"), scored(1.0, True))
    put_trial(run, "a/binary", "look-1", {"answer.json": b"\xff\x00"}, scored(0.0, False), saved=False)
    put_trial(run, "a/lost", "look-1", given("x"), scored(0.0, False), saved=False,
              deliverables={"answer.json": "<99999 bytes in artifacts/>"})  # fmt: skip
    put_trial(run, "a/text", "look-1", given("412"), scored(0.0, False), saved=False)
    report = grade_again(run)
    assert [(t.key, t.after["reward"]) for t in report.trials] == [("a/text#1", 1.0)]
    reasons = {keys[0]: reason for reason, keys in report.skipped.items()}
    assert "sandbox_failed" in reasons["a/system#1"]
    assert "task is not below" in reasons["a/gone#1"]
    assert "not text" in reasons["a/binary#1"]
    assert "is gone" in reasons["a/lost#1"]


@pytest.mark.thorough
def test_the_command_prints_what_changed_and_where_it_lies(
    grade_again: Callable[..., RegradeReport], run_directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from journeyman.cli.main import main

    (run_directory / "environment").mkdir()
    waive = [word for limit in ("memory", "pids") for word in ("--waive", limit)]
    assert main(["regrade", str(run_directory), "--task", "look-2", "--json", *waive]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["graded"], [c["key"] for c in said["changed"]]) == (3, ["b/1#1", "b/3#1"])
    assert main(["regrade", str(run_directory), "--trial", "a/1", *waive]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "a/1#1  verifier_error None -> scored 1.0"
    assert lines[-1].startswith("1 graded, 1 changed, 0 verifier errors: ")
    assert main(["regrade", str(run_directory / "none")]) == 2


@pytest.mark.parametrize("name", RECORDS)
def test_the_tasks_of_a_run_are_found_where_it_names_them(
    run_directory: Path, grade_again: Callable[..., RegradeReport], tmp_path: Path, name: str
) -> None:
    (run_directory / "tasks").rename(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="say where the task directories lie: --tasks DIR"):
        RunTasks(run_directory)
    paths = [str(path.parent) for path in sorted((tmp_path / "elsewhere").rglob("task.toml"))]
    told = {"plan": {"tasks": paths}} if name == RUN_FILE else {"tasks": [{"path": path} for path in paths]}
    (run_directory / name).write_text(json.dumps(told))
    assert [t.key for t in grade_again(run_directory, only_tasks=["look-1"]).trials] == ["a/1#1", "a/2#1"]
    (run_directory / name).write_text(json.dumps({"plan": 3}))
    with pytest.raises(InputError, match="is damaged"):
        RunTasks(run_directory)


def test_a_directory_that_is_no_run_is_refused_and_left_as_it_was(
    grade_again: Callable[..., RegradeReport], tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="nowhere: is not a directory; allowed: a run directory"):
        RunTasks(tmp_path / "nowhere")
    put_task(tmp_path, "look-1")
    with pytest.raises(InputError, match="holds no trials"):
        grade_again(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["tasks"]


@pytest.mark.thorough
def test_a_run_of_office_tasks_is_graded_again_as_it_was(tmp_path: Path) -> None:
    for words in (
        ["worlds", "build", "--seed", "3", "--worlds", "1", "--tasks", "6", "--out", "worlds"],
        ["trials", "run", "worlds/tasks", "--policy", "oracle", "--out", "run"],
        ["regrade", "run", "--json"],
    ):
        done = subprocess.run(
            [sys.executable, "-m", "journeyman.cli.main", *words],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["graded"], told["changed"], told["verifier_errors"]) == (6, [], 0)
