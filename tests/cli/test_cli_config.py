"""A recipe can be looked at, checked and described before anything starts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest


@pytest.fixture
def recipe(tmp_path, monkeypatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("recipe.toml").write_text("seed = 3\n[rl]\nlr = 1e-4\n")
    return "recipe.toml"


def test_show_prints_every_value_with_its_source_and_ends_with_the_digest(run, recipe, monkeypatch):
    monkeypatch.setenv("JOURNEYMAN_RL__TRAIN_STEPS", "9")
    done = run("config", "show", recipe, "--rl.temperature", "2")
    rows = {line.split()[0]: line.split()[1:] for line in done.out.splitlines()}
    assert done.code == 0
    assert rows["seed"] == ["3", "recipe.toml:1"]
    assert rows["rl.lr"] == ["0.0001", "recipe.toml:3"]
    assert rows["rl.temperature"] == ["2.0", "--rl.temperature"]
    assert rows["rl.train_steps"] == ["9", "JOURNEYMAN_RL__TRAIN_STEPS"]
    assert rows["rl.tasks_per_step"][-1] == "default"
    assert done.out.splitlines()[-1].startswith("sha256 ")


def test_show_as_json_is_one_document_with_recipe_sources_and_digest(run, recipe):
    document = json.loads(run("config", "show", recipe, "--json").out)
    assert document["recipe"]["rl"]["lr"] == 1e-4
    assert document["sources"]["rl.lr"] == "recipe.toml:3"
    assert len(document["sha256"]) == 64


def test_validate_lists_every_problem_at_once_on_stderr_with_exit_code_2(run, recipe):
    Path("over.toml").write_text('[rl]\nlr = "fast"\ntrials_per_task = -1\nlos = "ppo"\n')
    done = run("config", "validate", recipe, "over.toml", "--rl.loss", "dpo", "--json")
    assert done.code == 2
    assert done.out == ""
    assert done.err.startswith("4 problems in the configuration")
    for row in ("over.toml:2", "over.toml:3", "over.toml:4", "--rl.loss"):
        assert row in done.err


def test_validate_says_how_much_was_set(run, recipe):
    done = run("config", "validate", recipe)
    assert done.code == 0
    assert done.out.startswith("valid: 2 of ")


def test_a_rule_between_fields_is_reported_like_any_other_problem(run, recipe):
    done = run("config", "validate", "--worlds.sft-worlds", "10", "--worlds.sft-heldout-worlds", "10")
    assert done.code == 2
    assert "must be smaller than worlds.sft_worlds" in done.err


def test_schema_is_json_schema_with_every_section(run):
    schema = json.loads(run("config", "schema").out)
    assert {"rl", "worlds", "seed"} <= schema["properties"].keys()


def test_an_unknown_recipe_kind_names_the_known_ones(run):
    done = run("config", "schema", "--for", "quickstrt")
    assert done.code == 2
    assert "allowed: quickstart" in done.err
