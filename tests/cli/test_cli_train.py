"""``train rl``, ``train sft`` and ``overfit`` from the command line: what is refused, and how."""

from __future__ import annotations

import json

import pytest

from journeyman.cli.main import main


@pytest.mark.parametrize("words", [["train", "rl"], ["train", "sft"], ["overfit"]], ids=lambda words: words[-1])
def test_a_recipe_without_its_required_keys_is_refused_with_one_panel(words, capsys):
    assert main(words) == 2
    said = capsys.readouterr().err
    assert "problems in the configuration" in said and "policy.model" in said


def test_a_problem_is_named_with_its_file_and_line_and_the_nearest_key(tmp_path, capsys):
    recipe = tmp_path / "recipe.toml"
    recipe.write_text('[policy]\nmodel = "m"\n[tasks]\ntrain = ["t"]\n[loop]\nstalenes = 2\nbound = "hald"\n')
    assert main(["train", "rl", str(recipe)]) == 2
    said = capsys.readouterr().err
    assert "recipe.toml:6" in said and "loop.staleness" in said and "Did you mean hold?" in said


def test_tasks_that_are_not_there_are_refused_before_anything_starts(tmp_path, capsys):
    out = tmp_path / "out"
    words = ["train", "rl", "--policy.model", str(tmp_path), "--tasks.train", str(tmp_path), "--out", str(out)]
    assert main(words) == 2
    assert "holds no task" in capsys.readouterr().err and not out.exists()


def test_the_schema_of_each_recipe_is_printed(capsys):
    for kind in ("rl", "sft", "overfit"):
        assert main(["config", "schema", "--for", kind]) == 0
        assert "policy" in json.loads(capsys.readouterr().out)["properties"]
