"""ATIF in, ATIF out, and a run as a Harbor job."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from store_trials import columns_of, record_of, store_hot
from tokenizers import Tokenizer as Definition
from tokenizers import decoders, models, pre_tokenizers, trainers

from journeyman.errors import InputError
from journeyman.tasks.atif import atif_json, parse_atif
from journeyman.tasks.results.jobs import read_job
from journeyman.tokens.context import Source
from journeyman.tokens.renderers import FAMILIES, Renderer
from journeyman.tokens.tokenizer import Tokenizer, save_extended
from journeyman.trials.store import HotTrial, open_run
from journeyman.trials.store.atif_read import import_atif, read_atif, sft_example, token_columns
from journeyman.trials.store.columns import calls_of
from journeyman.trials.store.export import export_run


def document(**changes: Any) -> dict[str, Any]:
    agent = {
        "step_id": 2,
        "source": "agent",
        "message": "on it",
        "tool_calls": [{"tool_call_id": "c", "function_name": "calc", "arguments": {"expr": "1+1"}}],
        "observation": {"results": [{"source_call_id": "c", "content": "2"}]},
        "metrics": {"prompt_token_ids": [1, 2], "completion_token_ids": [3, 4], "logprobs": [-0.1, -0.2]},
    }
    last = {"step_id": 3, "source": "agent", "message": "2", "metrics": {"prompt_token_ids": [1, 2, 3, 4, 5]}}
    last["metrics"]["completion_token_ids"] = [6]
    opening = {"step_id": 1, "source": "user", "message": [{"type": "text", "text": "add"}]}
    whole = {"schema_version": "ATIF-v1.8", "agent": {"name": "x", "version": "1"}, "steps": [opening, agent, last]}
    return {**whole, **changes}


def parsed(value: object) -> Any:
    return parse_atif(json.dumps(value), "document")


def test_our_own_export_comes_back_with_the_same_tokens_masks_logprobs_and_versions(tmp_path: Path):
    trial = "look/7/0"
    store_hot(tmp_path / "run", trial)
    export_run(tmp_path / "run", "atif", tmp_path / "atif")
    (path,) = (tmp_path / "atif").iterdir()
    import_atif([path], tmp_path / "again")
    with open_run(tmp_path / "again") as run:
        found, record = run.trajectory(trial), run.record(trial)
    sent = columns_of(trial)
    last = np.flatnonzero(sent.source == Source.SAMPLED)[-1] + 1
    for name in ("ids", "mask", "logprob", "version", "turn"):
        assert np.array_equal(getattr(found, name), getattr(sent, name)[:last]), name
    assert record["reward"] == 1.0
    assert record["turns"][0]["calls"][0]["tool"] == "calc"


def test_a_foreign_models_turns_are_demonstrations_and_copied_context_is_never_learned():
    first = token_columns(parsed(document()))
    assert first.ids.tolist() == [1, 2, 3, 4, 5, 6]
    assert first.mask.tolist() == [0, 0, 1, 1, 0, 1]
    assert set(first.source[first.mask == 1]) == {int(Source.DEMONSTRATION)}
    copied = document()
    copied["steps"][1]["is_copied_context"] = True
    ids, mask = sft_example(parsed(copied))
    assert (ids.tolist(), mask.tolist()) == ([1, 2, 3, 4, 5, 6], [0, 0, 0, 0, 0, 1])


def test_a_loss_mask_and_a_rewritten_prompt_are_honoured():
    masked = document()
    masked["steps"][1]["metrics"]["extra"] = {"loss_mask": [0, 1]}
    masked["steps"][2]["metrics"]["prompt_token_ids"] = [1, 9]
    columns = token_columns(parsed(masked))
    assert columns.ids.tolist() == [1, 2, 3, 4, 9, 6]
    assert columns.mask.tolist() == [0, 0, 0, 1, 0, 1]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d.update(reward=1), "reward"),
        (lambda d: d["steps"][1].update(step_id=5), "without gaps"),
        (lambda d: d["steps"][0].update(metrics={}), "metrics belongs to steps of the agent"),
        (lambda d: d["steps"][1]["tool_calls"][0].update(arguments="1+1"), "arguments"),
        (lambda d: d["steps"][1]["observation"]["results"][0].update(source_call_id="z"), "no call of this step"),
        (lambda d: d["steps"][1].update(llm_call_count=0), "without a model call"),
        (lambda d: d["steps"][1].update(timestamp="yesterday"), "timestamp"),
        (lambda d: d.update(schema_version="ATIF-v2.0"), "schema_version"),
        (lambda d: d.update(steps=[]), "steps"),
        (lambda d: d.update(subagent_trajectories=[document()]), "trajectory_id of its own"),
        (lambda d: d["steps"][0]["message"][0].update(source={"media_type": "image/png", "path": "a"}), "no source"),
    ],
)
def test_a_field_that_the_format_forbids_is_named(change: Any, words: str):
    value = document()
    change(value)
    with pytest.raises(InputError, match=words):
        parsed(value)


def test_a_document_is_written_as_it_was_read():
    value = document(session_id="s", trajectory_id="t", extra={"k": 1})
    assert atif_json(parsed(value)) == value


def test_nothing_is_imported_when_one_document_is_wrong(tmp_path: Path):
    (tmp_path / "good.json").write_text(json.dumps(document()))
    (tmp_path / "bad.json").write_text("{}")
    with pytest.raises(InputError, match=r"bad\.json"):
        import_atif([tmp_path / "good.json", tmp_path / "bad.json"], tmp_path / "run")
    assert not (tmp_path / "run").exists()
    with pytest.raises(InputError, match="is no file"):
        read_atif(tmp_path / "absent.json")


def test_a_run_becomes_a_harbor_job_in_which_only_valid_rewards_are_rewards(tmp_path: Path):
    store_hot(tmp_path / "run", "look/1/0")
    with HotTrial(tmp_path / "run", "look/2/0", durable=False) as hot:
        for call in calls_of(columns_of("look/2/0")):
            hot.append_call(call)
        broken = {"kind": "verifier_error", "error": "RewardFileMissing", "explain": "no file"}
        hot.close({**record_of("look/2/0", None), "cause": "verifier_failed", "verdict": broken})
    done = export_run(tmp_path / "run", "harbor", tmp_path / "jobs" / "run")
    assert done.n_documents == 2
    good, bad = read_job(tmp_path / "jobs" / "run").trials
    assert (good.rewards, good.result.reward_valid, good.result.exception_info) == ({"reward": 1.0}, True, None)
    assert (bad.rewards, bad.result.verifier_result) == (None, None)
    assert bad.result.exception_info is not None
    assert bad.result.exception_info.exception_type == "RewardFileNotFoundError"
    (detail,) = good.result.agent_result.rollout_details  # type: ignore[union-attr, misc]
    assert len(detail.prompt_token_ids or ()) == len(detail.logprobs or ()) == 5


@pytest.fixture(scope="module")
def renderer(tmp_path_factory: pytest.TempPathFactory) -> Renderer:
    """A family's renderer over a vocabulary of bytes and its special tokens."""
    definition = Definition(models.BPE())
    definition.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    definition.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(vocab_size=300, initial_alphabet=alphabet, show_progress=False)
    definition.train_from_iterator(["add 1+1 please"] * 3, trainer)
    directory = tmp_path_factory.mktemp("tokenizer")
    save_extended(json.loads(definition.to_str()), FAMILIES["qwen2.5"].specials, directory)
    return Renderer(FAMILIES["qwen2.5"], Tokenizer(directory), thinking=False)


def test_a_document_of_text_alone_becomes_turns_to_learn_from_except_copied_ones(renderer: Renderer, tmp_path: Path):
    text = document()
    for step in text["steps"][1:]:
        step.pop("metrics")
    assert len(token_columns(parsed(text)).ids) == 0
    columns = token_columns(parsed(text), renderer)
    learned = renderer.tokenizer.decode(columns.ids[columns.mask == 1].tolist())
    assert "on it" in learned
    assert '"expr": "1+1"' in learned
    assert "add" not in learned
    assert "tool_response" not in learned
    whole = renderer.tokenizer.decode(columns.ids.tolist())
    assert whole.index("add") < whole.index("on it") < whole.index("tool_response")
    text["steps"][1]["is_copied_context"] = True
    later = token_columns(parsed(text), renderer)
    assert later.ids.tolist() == columns.ids.tolist()
    assert "on it" not in renderer.tokenizer.decode(later.ids[later.mask == 1].tolist())
    (tmp_path / "a.json").write_text(json.dumps(text))
    import_atif([tmp_path / "a.json"], tmp_path / "run", renderer)
    with open_run(tmp_path / "run") as run:
        (row,) = run.trials()
        assert run.trajectory(row.key).mask.tolist() == later.mask.tolist()
        assert run.record(row.key)["turns"][0]["is_copied_context"]
