"""Every task is run before training, from the command line: the gate, resumption, pairs, triage."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

HARNESS = ("--harness", "framing:toolbelt")
WAIVE = ("--waive", "memory", "--waive", "pids", "--waive", "disk", "--waive", "cpus")


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Iterator[Path]:
    """Four tasks of two worlds; environments of agents are kept in a cache of the tests."""
    from journeyman.cli.main import main

    out = tmp_path_factory.mktemp("built")
    words = ["worlds", "build", "--seed", "77", "--worlds", "2", "--tasks-per-world", "2", "--out", str(out), "--quiet"]
    assert main(words) == 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(out / "cache"))
        yield out / "tasks" / "train"


@pytest.fixture
def tasks(built, tmp_path) -> Path:
    """A copy that a test may damage."""
    return Path(shutil.copytree(built, tmp_path / "tasks"))


def first_solution(tasks: Path) -> Path:
    return sorted(tasks.iterdir())[0] / "solution" / "solve.sh"


def break_solution(tasks: Path) -> str:
    """Let the first task's solution want a package that is not there; returns the sound text."""
    path = first_solution(tasks)
    sound = path.read_text()
    path.write_text(sound.replace("set -eu\n", "set -eu\npython3 -c 'import mahout'\n"))
    return sound


def test_sound_tasks_pass_and_the_last_line_says_where_the_report_lies(run, built, tmp_path):
    done = run("dry-run", str(built), *HARNESS, *WAIVE, "--out", str(tmp_path / "run"))
    assert done.code == 0, done.err
    *_, headline, last = done.out.splitlines()
    assert headline.startswith("pass: non-model errors 0.0 % (0 of 4), 0.0 to 49.0 %")
    assert last == f"report: {tmp_path / 'run' / 'report.md'}"
    assert "4 of 4 trials ended, 0 broke" in done.err


def test_the_gate_fails_with_1_and_the_pair_finds_the_repair(run, tasks, tmp_path):
    sound = break_solution(tasks)
    before, after = str(tmp_path / "before"), str(tmp_path / "after")
    failed = run("dry-run", str(tasks), *HARNESS, *WAIVE, "--out", before, "--json", "--quiet")
    report = json.loads(failed.out)
    assert (failed.code, report["verdict"], report["against"]) == (1, "fail", None)
    (defect,) = report["defects"]
    assert defect["defect"] == "environment: a dependency is missing: module mahout"
    assert (Path(defect["path"]) / "trial.json").is_file()
    shown = run(*defect["show"].split()[1:])
    assert shown.code == 0 and "ModuleNotFoundError: No module named 'mahout'" in shown.out
    assert run("dry-run", "--out", before, *WAIVE, "--gate", "0.3", "--quiet").code == 0

    first_solution(tasks).write_text(sound)
    done = run("dry-run", "--against", before, *WAIVE, "--out", after, "--quiet")
    assert done.code == 0, done.err
    assert re.search(
        r"^disappeared environment: a dependency is missing: module mahout: 1 -> 0 trials; worth \+25\.00 points",
        done.out,
        re.MULTILINE,
    )
    assert "changed between the runs: the solution of 1 task" in done.out
    assert "yield: 75.00 to 100.00 %" in done.out

    shutil.rmtree(tasks)
    again = run("dry-run", "--against", before, "--out", after, "--json", "--quiet")
    assert again.code == 0, again.err
    assert json.loads(again.out)["against"]["repairs"][0]["worth"]["mean"] == 0.25


def test_a_person_changes_a_class_and_the_agreement_is_printed(run, tasks, tmp_path, monkeypatch):
    break_solution(tasks)
    out = str(tmp_path / "run")
    assert run("dry-run", str(tasks), *HARNESS, *WAIVE, "--out", out, "--quiet").code == 1
    trial = f"dry-run/{sorted(tasks.iterdir())[0].name}/0"
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n"))
    asked = run("dry-run", "triage", out)
    assert asked.code == 0 and f"{trial}: environment" in asked.out
    assert "agreed with the classifier on 1 (100%); Cohen's kappa not defined" in asked.out
    changed = run("dry-run", "triage", out, "--set", f"{trial}=model")
    assert "agreed with the classifier on 0 (0%); Cohen's kappa 0.00; 0 not looked at" in changed.out
    again = run("dry-run", "--out", out, *WAIVE, "--json", "--quiet")
    report = json.loads(again.out)
    assert (again.code, report["failures"]["model"]["count"], report["findings"][0]["classifier"]) == (
        0,
        1,
        "environment",
    )
    for words, message in (
        (f"{trial}=nobody", "allowed: model, tool"),
        ("dry-run/none/0=tool", "no failure of a trial"),
    ):
        refused = run("dry-run", "triage", out, "--set", words)
        assert refused.code == 2 and message in refused.err
    assert json.loads(run("dry-run", "triage", out, "--json").out)["n"] == 1


def test_impossible_wishes_end_with_2_and_start_nothing(run, built, tmp_path):
    for words, message in (
        ([str(built), "--harness", "toolbet"], "did you mean toolbelt?"),
        ([str(tmp_path / "none")], "is not a directory"),
        (["--against", str(tmp_path)], "is no dry run"),
        ([], "TASKS: is missing"),
        ([str(built), "--policy", "openai:http://host/v1#m"], "keeps token ids"),
    ):
        done = run("dry-run", *words, "--out", str(tmp_path / "run"))
        assert done.code == 2 and message in done.err, done.err
        assert not (tmp_path / "run").exists()


@pytest.mark.thorough
def test_a_run_killed_at_any_moment_goes_on_with_what_is_missing(run, tasks, tmp_path):
    for path in tasks.glob("*/solution/solve.sh"):
        path.write_text(path.read_text().replace("set -eu\n", "set -eu\nsleep 0.5\n"))
    out = tmp_path / "run"
    words = ["dry-run", str(tasks), *HARNESS, *WAIVE, "--samples", "4", "--concurrency", "2", "--out", str(out)]
    program = [sys.executable, "-m", "journeyman.cli.main", *words]
    killed = subprocess.Popen(program, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    ends_at = time.monotonic() + 60
    while len(list(out.glob("trials/*/*/DONE"))) < 3:
        assert killed.poll() is None and time.monotonic() < ends_at
        time.sleep(0.02)
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait()
    kept = {path: path.stat().st_mtime_ns for path in out.glob("trials/*/*/DONE")}
    assert len(kept) < 16
    done = run(*words, "--json")
    report = json.loads(done.out)
    assert (done.code, report["ended"], report["outcomes"]) == (0, 16, {"solved": 16})
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    assert f"{16 - len(kept)} of 16 trials to run" in done.err
