"""The words of `journeyman quickstart` become a recipe, or an error before anything is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from journeyman.cli.quickstart import unmet
from journeyman.ladder.report.figures import Gate
from journeyman.ladder.report.model import Step


@pytest.mark.parametrize(
    ("words", "row"),
    [
        (["--sede", "1"], "--sede  unknown key. Did you mean seed?"),
        (["--seed", "x"], '--seed  got "x"; expected an integer >= 0'),
        (["--profile", "tinny"], 'got "tinny"; allowed: tiny, smollm2. Did you mean tiny?'),
        (["--rl.trials-per-task", "-8"], "got -8; expected an integer >= 2"),
        (["@", "absent.toml"], "no such file"),
        (["recipe.toml"], "unexpected word. Did you mean @ recipe.toml?"),
    ],
)
def test_bad_words_end_with_2_and_leave_no_directory(run, tmp_path, monkeypatch, words, row):
    monkeypatch.chdir(tmp_path)
    done = run("quickstart", "--out", str(tmp_path / "out"), *words)
    assert done.code == 2
    assert row in done.err
    assert done.out == ""
    assert list(Path().iterdir()) == []


def test_named_options_and_recipe_words_are_reported_together(run, tmp_path):
    done = run("quickstart", "--seed=-1", "--rl.lr", "0", "--profile", "huge", "--out", str(tmp_path / "out"))
    assert done.err.startswith("3 problems in the configuration")


def test_an_out_that_is_a_file_or_another_run_ends_with_2_and_is_not_touched(run, tmp_path):
    (tmp_path / "file").write_text("mine")
    assert run("quickstart", "--out", str(tmp_path / "file")).code == 2
    assert (tmp_path / "file").read_text() == "mine"
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("mine")
    done = run("quickstart", "--out", str(tmp_path / "full"))
    assert done.code == 2
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["thesis.txt"]


def test_a_failed_gate_is_told_with_value_and_threshold():
    gate = Gate.of("gain of mean reward, lower bound", -0.02, ">", 0.0, detail="n = 32 tasks")
    step = Step(number=4, name="overfit", status="failed", gate=gate)
    assert unmet(step) == ["gain of mean reward, lower bound is -0.02, needed > 0.0 (n = 32 tasks)"]
    held = Gate.of("error rate", 0.0, "<", 0.01)
    assert unmet(Step(number=1, name="environment", status="passed", gate=held)) == []
