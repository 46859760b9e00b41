"""The grammar of recipes: layers, union members, paths, secrets, and an error panel that holds every problem."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import pytest
from pydantic import Field, model_validator

from journeyman.config import Knobs, load
from journeyman.errors import ConfigError


class Dppo(Knobs):
    type: Literal["dppo"] = "dppo"
    clip: float = Field(0.2, gt=0)
    mask_high: float = 5.0


class Glm5(Knobs):
    type: Literal["glm5"] = "glm5"
    clip: float = Field(0.9, gt=0)
    low: int = Field(1, ge=0)


class Optim(Knobs):
    lr: float = Field(1e-3, gt=0)
    betas: list[float] = Field([0.9, 0.95])
    use_muon: bool = True


class Train(Knobs):
    optim: Optim = Optim(lr=3e-4)
    loss: Annotated[Dppo | Glm5, Field(discriminator="type")] = Dppo()
    agg: Literal["prompt", "token", "sequence"] = "prompt"
    max_staleness: int = Field(4, ge=0)


class Recipe(Knobs):
    seed: int = Field(0, ge=0)
    data: Path = Path("data")
    extra_data: list[Path] = Field([])
    limit: int | None = None
    clients: dict[str, str] = Field({})
    api_key: str = "env:NOTHING"
    train: Train = Train()


def panel_of(tokens: list[str], env: dict[str, str] | None = None, model: type[Knobs] = Recipe) -> str:
    with pytest.raises(ConfigError) as caught:
        load(model, tokens, env or {})
    return str(caught.value)


@pytest.fixture
def toml(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(text: str, name: str = "base.toml") -> str:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text)
        return name

    return write


def test_the_panel_shows_every_problem_with_path_source_value_allowed_and_nearest_match(toml):
    toml('# a comment\n[train]\n\naggr = "token"\n[train.optim]\nlr = "fast"\n', "overlay.toml")
    assert panel_of(["@", "overlay.toml", "--train.loss.type", "dpo"]).splitlines() == [
        "3 problems in the configuration",
        '  train.optim.lr   overlay.toml:6     got "fast"; expected a number > 0',
        '  train.loss.type  --train.loss.type  got "dpo"; allowed: dppo, glm5. Did you mean dppo?',
        "  train.aggr       overlay.toml:4     unknown key. Did you mean train.agg?",
    ]


def test_later_layers_win_and_every_value_knows_its_layer(toml):
    toml("seed = 1\nlimit = 1\n[train]\nmax_staleness = 1\n[train.optim]\nlr = 0.1\n")
    toml("limit = 2\ntrain.max_staleness = 2\ntrain.optim.lr = 0.2\n", "over.toml")
    env = {"JOURNEYMAN_TRAIN__MAX_STALENESS": "3", "JOURNEYMAN_TRAIN__OPTIM__LR": "0.3", "HOME": "/nowhere"}
    resolved = load(Recipe, ["@", "base.toml", "@over.toml", "--train.optim.lr", "0.4"], env)
    recipe = resolved.model
    assert (recipe.seed, recipe.limit, recipe.train.max_staleness, recipe.train.optim.lr) == (1, 2, 3, 0.4)
    named = {k: resolved.sources[k] for k in ("seed", "limit", "train.max_staleness", "train.optim.lr", "train.agg")}
    assert named == {
        "seed": "base.toml:1",
        "limit": "over.toml:1",
        "train.max_staleness": "JOURNEYMAN_TRAIN__MAX_STALENESS",
        "train.optim.lr": "--train.optim.lr",
        "train.agg": "default",
    }


def test_a_section_given_in_part_keeps_the_rest_of_its_default():
    recipe = load(Recipe, ["--train.optim.use-muon", "false"], {}).model
    assert recipe.train.optim == Optim(lr=3e-4, use_muon=False)


def test_lists_are_replaced_and_may_be_written_three_ways(toml):
    toml("[train.optim]\nbetas = [0.1]\n")
    for words in (["0.5,0.6"], ["[0.5, 0.6]"]):
        assert load(Recipe, ["@", "base.toml", "--train.optim.betas", *words], {}).model.train.optim.betas == [0.5, 0.6]
    assert load(Recipe, ["@", "base.toml"], {}).model.train.optim.betas == [0.1]
    assert load(Recipe, ["--train.optim.betas="], {}).model.train.optim.betas == []


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--train.optim.use-muon"], True),
        (["--train.optim.no-use-muon"], False),
        (["--no-train.optim.use-muon"], False),
        (["--train.optim.use-muon=no"], False),
        (["--train.optim.use_muon", "off"], False),
    ],
)
def test_a_boolean_is_switched_by_a_flag_its_negation_or_a_word(words, expected):
    assert load(Recipe, [*words, "--seed", "3"], {}).model.train.optim.use_muon is expected


def test_negative_numbers_and_none_are_values_not_flags():
    assert load(Recipe, ["--limit", "-3"], {}).model.limit == -3
    assert load(Recipe, ["--limit", "-3", "--limit", "none"], {}).model.limit is None
    assert "got -1; expected an integer >= 0" in panel_of(["--seed", "-1"])


def test_a_union_that_changes_type_sheds_the_former_keys_with_a_notice_and_takes_its_own_defaults(toml):
    toml("[train.loss]\nclip = 0.5\nmask_high = 7.0\n")
    resolved = load(Recipe, ["@", "base.toml", "--train.loss.type", "glm5"], {})
    assert resolved.model.train.loss == Glm5(clip=0.5)
    assert resolved.notices == ("train.loss.mask_high (base.toml:3) dropped: train.loss is now glm5",)
    assert load(Recipe, ["--train.loss.type=glm5"], {}).model.train.loss == Glm5(clip=0.9)
    assert load(Recipe, ["--train.loss.type=glm5", "--train.loss.low", "2"], {}).model.train.loss == Glm5(low=2)


def test_a_key_of_another_union_member_is_an_unknown_key():
    assert "unknown key while train.loss.type is dppo; glm5 has it" in panel_of(["--train.loss.low", "2"])


def test_paths_of_a_file_start_at_the_file_and_paths_of_a_flag_at_the_current_directory(toml):
    toml('data = "shards"\nextra_data = ["a", "/b"]\n', "recipes/deep/base.toml")
    recipe = load(Recipe, ["@", "recipes/deep/base.toml"], {}).model
    assert recipe.data == Path("recipes/deep/shards")
    assert recipe.extra_data == [Path("recipes/deep/a"), Path("/b")]
    assert load(Recipe, ["@", "recipes/deep/base.toml", "--data", "shards"], {}).model.data == Path("shards")


def test_free_tables_keep_their_keys_as_written():
    assert load(Recipe, ["--clients.north-east", "Ann"], {}).model.clients == {"north-east": "Ann"}


@pytest.mark.parametrize(
    "words",
    [
        ["--api-key", "correct horse battery"],
        ["--clients.a", "sk-abcdefghijklmnop1234"],
        ["--clients.a", "hf_abcdefghijklmnop1234"],
    ],
)
def test_a_value_that_looks_like_a_secret_is_refused_and_never_shown(words):
    text = panel_of(words)
    assert "looks like a secret" in text
    assert words[1] not in text


def test_a_secret_given_as_a_reference_is_accepted():
    assert load(Recipe, ["--api-key", "env:VENDOR_KEY"], {}).model.api_key == "env:VENDOR_KEY"


def test_a_syntax_error_names_file_and_line_and_hides_no_other_problem(toml):
    toml("seed = 1\nlimit = = 2\n")
    text = panel_of(["@", "base.toml", "@", "absent.toml", "stray"])
    assert "TOML syntax  base.toml:2" in text
    assert "absent.toml" in text
    assert "no such file" in text
    assert "stray" in text


def test_a_misspelt_file_name_gets_the_nearest_file(toml):
    toml("seed = 1\n", "overlay.toml")
    assert "Did you mean overlay.toml?" in panel_of(["@", "overley.toml"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--lr", "1"], "unknown key. Did you mean train.optim.lr?"),
        (["--sede", "1"], "unknown key. Did you mean seed?"),
        (["--zzz", "1"], "unknown key; allowed: api_key, clients, data"),
        (["--seed"], "needs a value; expected an integer >= 0"),
        (["--train", "1"], 'got "1"; expected a table'),
        (["--train.agg", "promt"], 'got "promt"; allowed: prompt, token, sequence. Did you mean prompt?'),
        (["--train.optim.betas", "x"], 'got "x"; expected a number'),
        (["--no-train.optim.use-muon=yes"], 'takes no value, got "yes"'),
        (["base.toml"], "unexpected word. Did you mean @ base.toml?"),
        (["@"], "a file name must follow"),
    ],
)
def test_each_kind_of_mistake_says_what_is_allowed(words, message):
    assert message in panel_of(words)


def test_an_unknown_variable_is_named():
    assert "JOURNEYMAN_SEDE  unknown key. Did you mean seed?" in panel_of([], {"JOURNEYMAN_SEDE": "1"})


def test_a_variable_that_describes_the_machine_is_no_recipe_key():
    assert load(Recipe, [], {"JOURNEYMAN_BWRAP": "/opt/bin/bwrap"}).model == Recipe()


def test_required_fields_and_broken_rules_between_fields_are_rows_of_the_same_panel():
    class Window(Knobs):
        low: int
        high: int

        @model_validator(mode="after")
        def _ordered(self):
            if self.low > self.high:
                raise ValueError("low must not exceed high")
            return self

    class Outer(Knobs):
        name: str
        window: Window

    text = panel_of(["--window.low", "3"], model=Outer)
    assert "name         not set  is required; expected text" in text
    assert "window.high  not set  is required; expected an integer" in text
    broken = panel_of(["--window.low", "3", "--window.high", "2", "--name", "x"], model=Outer)
    assert "window  --window.low  low must not exceed high" in broken


def test_equal_recipes_have_equal_digests_however_they_were_written(toml):
    toml("[train.optim]\nlr = 2e-3\n")
    by_file = load(Recipe, ["@", "base.toml"], {})
    by_flag = load(Recipe, ["--train.optim.lr=0.002"], {})
    assert by_file.sha256 == by_flag.sha256
    assert by_file.sha256 != load(Recipe, [], {}).sha256


def test_line_numbers_are_left_out_where_the_scan_is_not_sure(toml):
    toml('clients.note = """\nsede = 1\n"""\nsede = 1\n[train]\nloss = { clip = -1 }\n')
    text = panel_of(["@", "base.toml"])
    assert "sede             base.toml:4" in text
    assert "train.loss.clip  base.toml:6  got -1; expected a number > 0" in text
