"""``journeyman tokens audit`` and ``tokens show`` as a user runs them, over a stored batch and model directories."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from journeyman.cli.main import main
from journeyman.tokens import Context, Tokenizer

HERE = Path(__file__).parent / "templates"


@pytest.fixture
def run(tmp_path: Path, tokenizer_dir: Path, tokenizer: Tokenizer) -> Path:
    """A run directory with one batch of two trials; the second was sampled as re-tokenising would not have it."""
    root = tmp_path / "run"
    shutil.copytree(tokenizer_dir, root / "tokenizer")
    clean = [*tokenizer.encode("Acme\n"), tokenizer.special("<|im_end|>")]
    split = [*tokenizer.encode("Ac"), *tokenizer.encode("me"), tokenizer.special("<|im_end|>")]
    columns = []
    for sampled in (clean, split):
        context = Context()
        context.append_prompt(tokenizer.encode_marked("<|im_start|>user\n"))
        context.append_sampled(sampled, [-0.25] * len(sampled), version=3)
        context.append_observation([5])
        context.append_sampled([sampled[0]], [-0.5], version=4)
        columns.append(context.arrays())
    batch = root / "train" / "step-0001"
    batch.mkdir(parents=True)
    lines = [
        json.dumps({"trial_id": f"train/1/{n}", "attempt": 1, "n_tokens": len(c.ids)}) for n, c in enumerate(columns)
    ]
    (batch / "trials.jsonl").write_text("\n".join(lines) + "\n")
    names = ("ids", "mask", "logprob", "source", "version", "turn")
    flat = {name: np.concatenate([getattr(c, name) for c in columns]) for name in names}
    np.savez(batch / "tokens.npz", offsets=np.cumsum([0, *(len(c.ids) for c in columns)]), **flat)
    return root


def test_the_audit_of_a_run_says_what_where_and_how_often(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tokens", "audit", str(run)]) == 0
    out = capsys.readouterr().out
    assert "25.00% of turns" in out
    assert "50.00% of trials" in out
    assert "train/1/1#1 turn 1 token 0: sampled" in out
    assert out.endswith(f"audited 2 trials: {run}\n")


def test_the_audit_as_json_names_the_trial(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tokens", "audit", str(run), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["contexts"], document["turns"], document["would_fork"]) == (2, 4, 1)
    assert [item["trial"].rsplit("::")[-1] for item in document["changed"]] == ["train/1/1#1"]


def test_a_trial_is_shown_token_by_token_without_colours_in_a_pipe(
    run: Path, tokenizer: Tokenizer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["tokens", "show", "train/1/0", "--run", str(run)]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    lines = out.splitlines()
    first = next(line for line in lines if "sampled" in line)
    assert first.split()[1:] == ["1", "sampled", "1", "-0.2500", "3", str(tokenizer.encode("Acme")[0]), "Acme"]
    assert lines[-1].startswith("8 tokens, 4 trained on: train/step-0001::train/1/0#1 in ")
    assert any(line.endswith("  \\n") for line in lines)


def test_a_trial_as_json_holds_every_column(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tokens", "show", "train/1/0", "--run", str(run), "--json"]) == 0
    tokens = json.loads(capsys.readouterr().out)["tokens"]
    assert [token["version"] for token in tokens if token["mask"]] == [3, 3, 3, 4]
    assert {token["source"] for token in tokens} == {"prompt", "sampled", "observation"}
    assert all(token["logprob"] is None for token in tokens if token["source"] != "sampled")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["audit"], "needs a run directory or --model"),
        (["audit", "{run}", "--model", "{run}"], "needs a run directory or --model"),
        (["audit", "{run}/train"], "holds no tokenizer"),
        (["audit", "--model", "{run}/tokenizer"], "journeyman.tokens.framing"),
        (["audit", "--model", "{run}"], "has no chat template"),
        (["audit", "--model", "{run}/tokenizer", "--family", "qwen"], "unknown family"),
        (["show", "train/1/7", "--run", "{run}"], "no trial 'train/1/7'"),
    ],
)
def test_bad_input_is_exit_code_2_and_says_what_is_wrong(
    run: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    assert main(["tokens", *(word.format(run=run) for word in words)]) == 2
    assert said in capsys.readouterr().err


def test_the_audit_of_a_model_prints_each_check_and_fails_when_one_differs(
    family_dir: Callable[[str], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(family_dir("glm-4.7") / "tokenizer.json", tmp_path)
    template = (HERE / "glm-4.7.jinja").read_text()
    (tmp_path / "chat_template.jinja").write_text(template)
    assert main(["tokens", "audit", "--model", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("family glm-4.7\n")
    assert "[gMASK]" in out
    assert out.endswith(f"ids verified: {tmp_path}\n")
    (tmp_path / "chat_template.jinja").write_text(template.replace("# Tools", "# tools on 2025-07-01"))
    assert main(["tokens", "audit", "--model", str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert "differs      text: thinking, user and tools" in out
    assert "fixed        date in the template, line 4: 2025-07-01" in out
    assert out.endswith(f"ids unverified: {tmp_path}\n")
