"""The combination that was published as wrong is refused when a recipe is read, until it has passed here."""

from __future__ import annotations

import json

import pytest

from journeyman.config import load
from journeyman.errors import ConfigError
from journeyman.train.agreement.deployment import Deployment, EngineChoice, TrainerChoice, is_hybrid, write_record

HYBRID = {"model_type": "qwen3_next", "layer_types": ["linear_attention", "full_attention"]}


def model(path, config):
    path.mkdir()
    (path / "config.json").write_text(json.dumps(config))
    return path


def words(directory, **changes):
    given = {
        "engine.model": directory,
        "engine.kind": "vllm",
        "engine.cpu_offload": "true",
        "engine.dtype": "bfloat16",
        "trainer.model": directory,
    } | {key.replace("__", "."): value for key, value in changes.items()}
    return [word for key, value in given.items() for word in (f"--{key}", str(value))]


def read(given):
    return load(Deployment, given, {}).model


def test_the_published_wrong_combination_is_refused_with_what_to_do(tmp_path):
    directory = model(tmp_path / "gdn", HYBRID)
    with pytest.raises(ConfigError) as caught:
        read(words(directory))
    assert "CPU offload" in str(caught.value) and "journeyman tokens agree" in str(caught.value)


@pytest.mark.parametrize(
    "changes",
    [{"engine__cpu_offload": "false"}, {"engine__update": "between_turns"}, {"engine__kind": "embedded"}],
)
def test_each_part_of_the_combination_alone_is_accepted(tmp_path, changes):
    assert read(words(model(tmp_path / "gdn", HYBRID), **changes)).agreement is None


def test_a_model_of_attention_alone_is_accepted(tmp_path):
    read(words(model(tmp_path / "dense", {"model_type": "qwen3", "layer_types": ["full_attention"]})))


def test_a_record_vouches_for_its_own_combination_only(tmp_path):
    directory = model(tmp_path / "gdn", HYBRID)
    record = tmp_path / "agreement.json"
    engine = EngineChoice(model=str(directory), kind="vllm", cpu_offload=True, dtype="bfloat16")
    trainer = TrainerChoice(model=directory)
    given = words(directory, agreement=record)

    with pytest.raises(ConfigError, match="cannot be read"):
        read(given)
    record.write_text("{}")
    with pytest.raises(ConfigError, match="no record"):
        read(given)
    write_record(record, engine, trainer, passed=False, facts={})
    with pytest.raises(ConfigError, match="failed"):
        read(given)
    write_record(record, engine, trainer, passed=True, facts={})
    assert read(given).agreement == record
    with pytest.raises(ConfigError, match="another combination"):
        read(words(directory, agreement=record, engine__dtype="float32"))
    (directory / "config.json").write_text(json.dumps(HYBRID | {"num_hidden_layers": 3}))
    with pytest.raises(ConfigError, match="another combination"):
        read(given)


@pytest.mark.parametrize(
    ("config", "hybrid"),
    [
        ({"model_type": "qwen3"}, False),
        ({"model_type": "llama", "layer_types": ["full_attention", "sliding_attention"]}, False),
        ({"model_type": "qwen3_5_moe"}, True),
        ({"model_type": "x", "text_config": {"layer_types": ["linear_attention"]}}, True),
    ],
)
def test_hybrid_models_are_recognised_by_layers_or_family(config, hybrid):
    assert is_hybrid(config) is hybrid
