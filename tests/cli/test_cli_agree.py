"""``journeyman tokens agree`` as a user runs it."""

from __future__ import annotations

import json

import pytest
import torch

from journeyman.cli.main import main
from journeyman.train.model import ModelShape, build_model, save_model

SHAPE = ModelShape(vocab_size=61, hidden=32, layers=2, heads=4, kv_heads=2, head_dim=16, ffn=48, positions=256)
SMALL = ["--probe.trials", "2", "--probe.turns", "1", "--quiet"]


@pytest.fixture
def models(tmp_path):
    for name, seed in (("one", 1), ("other", 2)):
        with torch.no_grad():
            save_model(build_model(SHAPE, seed=seed), tmp_path / name)
    return tmp_path


def test_the_same_model_on_both_sides_agrees_and_leaves_a_record(models, capsys):
    out = models / "agreement.json"
    words = ["tokens", "agree", "--engine", str(models / "one"), "--trainer", str(models / "one"), "--out", str(out)]
    assert main([*words, *SMALL]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[-1] == f"agree: {out}"
    record = json.loads(out.read_text())
    assert record["passed"] is True and record["facts"]["agreement"]["whole"]["max"] <= 1e-4


def test_two_models_do_not_agree_and_the_exit_code_says_so(models, capsys):
    out = models / "agreement.json"
    words = ["tokens", "agree", "--engine", str(models / "one"), "--trainer", str(models / "other"), "--out", str(out)]
    assert main([*words, *SMALL, "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["passed"] is False and any(reason.startswith("mean gap") for reason in document["findings"])
    assert json.loads(out.read_text())["passed"] is False


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--engine", "openai:https://localhost/v1#m", "--trainer", "one"], "returns text only"),
        (["--engine", "nowhere", "--trainer", "one"], "is no directory"),
        (["--engine", "one", "--trainer", "one", "--limits.mean", "0.1"], "all of mean, q99, span_mean, or none"),
        (["--engine", "one"], "trainer"),
        (["--engine", "one", "--engine.kind", "vllm", "--trainer", "one"], "is no address of a server"),
        (["--engine", "http://127.0.0.1:9", "--engine.kind", "embedded", "--trainer", "one"], "opens no server"),
    ],
)
def test_bad_input_is_named_and_nothing_is_written(models, monkeypatch, capsys, words, said):
    monkeypatch.chdir(models)
    assert main(["tokens", "agree", *words, *SMALL]) == 2
    assert said in capsys.readouterr().err
    assert not (models / "agreement.json").exists()


def test_the_url_of_a_server_that_is_not_there_says_so(models, capsys):
    words = ["tokens", "agree", "--engine", "http://127.0.0.1:9", "--trainer", str(models / "one"), *SMALL]
    assert main(words) == 3
    assert "is it up, and is this its address?" in capsys.readouterr().err
