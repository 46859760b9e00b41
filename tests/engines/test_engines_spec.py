"""A model's word, and what is said when it names nothing that can be used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from journeyman.engines import Sampling, TurnRequest
from journeyman.engines.spec import locate, open_engine, parse_model, read_card
from journeyman.errors import EnvironmentMissing, InputError


def test_the_three_forms_are_told_apart() -> None:
    hub, service = parse_model("hf:Qwen/Qwen3-4B@1cfa9a7"), parse_model("openai:https://host:8000/v1#some/model")
    assert (hub.kind, hub.place, hub.name) == ("hub", "Qwen/Qwen3-4B", "1cfa9a7")
    assert parse_model("hf:Qwen/Qwen3-4B").name == "main"
    assert (service.kind, service.place, service.name) == ("service", "https://host:8000/v1", "some/model")
    for path in ("models/warm", "./hf", "C:\\models", "/tmp/a:b"):
        assert (parse_model(path).kind, parse_model(path).place) == ("directory", path)


@pytest.mark.parametrize(
    "bad", ["", "hf:", "hf:name", "hf:a/b@", "openai:host#m", "openai:http://h/v1", "vllm:http://h"]
)
def test_a_word_of_no_form_says_what_is_allowed(bad: str) -> None:
    with pytest.raises(InputError, match="allowed"):
        parse_model(bad)


def test_a_directory_without_config_or_tokenizer_says_what_to_do(model: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no directory.*hf:ORG/NAME@REV"):
        open_engine(str(tmp_path / "missing"))
    with pytest.raises(InputError, match=r"config\.json"):
        open_engine(str(tmp_path))
    model.save_pretrained(tmp_path)
    with pytest.raises(InputError, match=r"holds no tokenizer.*save_pretrained"):
        open_engine(str(tmp_path))
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(InputError, match="model_type"):
        read_card(tmp_path)


@pytest.fixture
def saved(model: Any, tmp_path: Path) -> Path:
    model.save_pretrained(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": "{{ messages }}"}))
    return tmp_path


def test_a_directory_is_served_by_the_embedded_engine(saved: Path) -> None:
    card = read_card(saved)
    assert (card.model_type, card.window, card.chat_template) == ("qwen3", 512, "{{ messages }}")
    engine = open_engine(str(saved), training=True, rows=2)
    assert engine.max_len == 512
    (result,) = engine.generate([TurnRequest("a", [5], 1, Sampling(4, 1.0, frozenset()))])
    assert len(result.ids) == 4


def test_a_context_over_the_window_is_refused(saved: Path) -> None:
    with pytest.raises(InputError, match=r"513 tokens.*<= 512"):
        open_engine(str(saved), max_len=513)


def test_an_architecture_that_is_not_decoded_is_refused(saved: Path) -> None:
    config = json.loads((saved / "config.json").read_text())
    (saved / "config.json").write_text(json.dumps({**config, "model_type": "qwen3_moe"}))
    with pytest.raises(InputError, match=r"'qwen3_moe' is not decoded here.*nearest architecture"):
        open_engine(str(saved))


def test_text_alone_cannot_be_trained_on() -> None:
    with pytest.raises(InputError, match="text only"):
        open_engine("openai:http://127.0.0.1:9/v1#m", training=True)


def test_a_hub_model_is_taken_from_the_cache_and_its_lack_said_clearly_offline(
    saved: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    import huggingface_hub.constants

    cache = tmp_path_factory.mktemp("hub")
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(cache))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(EnvironmentMissing, match=r"not in the local cache.*hf download org/name --revision abc"):
        locate(parse_model("hf:org/name@abc"))
    repository, commit = cache / "models--org--name", "0" * 40
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "abc").write_text(commit)
    (repository / "snapshots" / commit).mkdir(parents=True)
    for file in saved.iterdir():
        (repository / "snapshots" / commit / file.name).write_bytes(file.read_bytes())
    assert read_card(locate(parse_model("hf:org/name@abc"))).model_type == "qwen3"
