"""jobs/<job>/<trial>/ written and read, and rewards that Harbor counts and we refuse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from journeyman.errors import InputError
from journeyman.tasks.errors import RewardInvalid
from journeyman.tasks.results.jobs import TrialContent, read_job, read_trial, write_trial
from journeyman.tasks.results.manifest import ManifestEntry, collected, overlapping, place_of
from journeyman.tasks.results.trial_result import TrialResult, parse_trial_result, result_json
from journeyman.tasks.reward_file import parse_reward_json, parse_reward_txt, read_reward, read_rewards
from journeyman.tasks.task_sections import Artifact

RESULT: dict[str, Any] = {
    "id": "594025f3-7d65-4655-8576-4bee95002eae",
    "task_name": "lab/ledger",
    "trial_name": "ledger__a1",
    "trial_uri": "file:///jobs/j/ledger__a1",
    "task_id": {"path": "tasks/ledger"},
    "task_checksum": "ab",
    "config": {"task": {"path": "tasks/ledger"}, "trial_name": "ledger__a1"},
    "agent_info": {"name": "oracle", "version": "1", "model_info": {"name": "m", "provider": "p"}},
    "agent_result": None,
    "verifier_result": {"rewards": {"reward": 0.5, "style": 1}},
    "started_at": "2026-11-29T10:00:00Z",
    "exception_info": {
        "exception_type": "AgentTimeoutError",
        "exception_message": "5 s",
        "exception_traceback": "Traceback",
        "occurred_at": "2026-11-29T10:00:05Z",
    },
    "step_results": [
        {"step_name": "one", "agent_result": {"n_input_tokens": 10, "n_output_tokens": 2, "cost_usd": 0.5}},
        {"step_name": "two", "agent_result": {"n_input_tokens": 5, "n_output_tokens": 1}},
    ],
    "reward_valid": True,
    "future": {"x": 1},
}


@pytest.fixture
def result() -> TrialResult:
    return TrialResult.model_validate(RESULT)


def test_a_trial_is_read_back_as_it_was_written(tmp_path: Path, result: TrialResult):
    manifest = [ManifestEntry(source="/logs/artifacts", destination="artifacts/logs", type="directory", status="ok")]
    content = TrialContent(
        verifier={"reward.json": b'{"reward": 0.5, "style": 1}', "test-stdout.txt": b"ok"},
        agent={"trajectory.json": b"{}"},
        artifacts={"logs/artifacts/answer.json": b"{}"},
        manifest=manifest,
        steps={"one": TrialContent(artifacts={"a.txt": b"a"})},
        log="started\n",
    )
    job = tmp_path / "jobs" / "j"
    directory = write_trial(job, result, content)
    (job / "result.json").write_text('{"stats": {}}')
    found = read_job(job)
    (trial,) = found.trials
    assert found.result == {"stats": {}}
    assert result_json(trial.result) == result_json(result)
    assert (trial.rewards, trial.exception) == ({"reward": 0.5, "style": 1.0}, "Traceback")
    assert trial.manifest == tuple(manifest)
    assert trial.artifacts() == {"logs/artifacts/answer.json": b"{}"}
    assert trial.artifacts("one") == {"a.txt": b"a"}
    assert [p.name for p in directory.parent.iterdir() if p.name.startswith(".")] == []
    assert any("unknown key future is kept" in warning for warning in trial.warnings)


def test_tokens_and_cost_of_several_steps_are_summed(result: TrialResult):
    usage = result.usage
    assert (usage.n_input_tokens, usage.n_output_tokens, usage.cost_usd) == (15, 3, 0.5)
    assert [error.exception_type for error in result.exceptions] == ["AgentTimeoutError"]


def test_every_wrong_field_of_a_result_is_named():
    broken = {**RESULT, "id": "no", "verifier_result": {"rewards": {"reward": "NaN"}}, "agent_info": {"name": "x"}}
    with pytest.raises(InputError) as caught:
        parse_trial_result(json.dumps(broken).encode(), "result.json")
    for field in ("id:", "verifier_result.rewards.reward:", "agent_info.version:"):
        assert field in str(caught.value)


@pytest.mark.parametrize(
    ("text", "ours"),
    [
        ('{"reward": true}', "RewardInvalid"),
        ('{"reward": 7.5, "x": -2}', "RewardInvalid"),
        ('{"reward": NaN}', "RewardInvalid"),
        ("", "RewardFileEmpty"),
        (None, "RewardFileMissing"),
    ],
)
def test_a_reward_that_is_refused_here_is_none_and_says_so(
    tmp_path: Path, result: TrialResult, text: str | None, ours: str
):
    directory = write_trial(tmp_path, result, TrialContent())
    if text is not None:
        (directory / "verifier" / "reward.json").write_text(text)
    trial = read_trial(directory)
    assert trial.rewards is None
    assert str(trial.reward_problem).startswith(ours)
    assert any("Harbor counts" in warning for warning in trial.warnings)


def test_a_task_may_declare_another_range_and_its_reward_is_mapped_onto_ours(tmp_path: Path):
    (tmp_path / "reward.txt").write_text("7.5\n")
    assert read_reward(tmp_path, (0.0, 10.0)) == 0.75
    assert read_rewards(tmp_path, (0.0, 10.0)) == {"reward": 7.5}
    assert parse_reward_json(b'{"reward": -2}', (-2.0, 2.0)) == -2
    for text in (b"11", b"nan", b"-1"):
        with pytest.raises(RewardInvalid):
            parse_reward_txt(text, (0.0, 10.0))
    with pytest.raises(RewardInvalid):
        parse_reward_json(b'{"reward": true}', (0.0, 10.0))


def test_names_that_leave_a_trial_are_refused(tmp_path: Path, result: TrialResult):
    for content in (TrialContent(agent={"../x": b""}), TrialContent(artifacts={"manifest.json": b""})):
        with pytest.raises(InputError):
            write_trial(tmp_path, result, content)
    with pytest.raises(InputError):
        write_trial(tmp_path, result.model_copy(update={"trial_name": "../x"}), TrialContent())
    assert list(tmp_path.iterdir()) == []


def test_a_link_in_place_of_a_result_is_not_followed(tmp_path: Path, result: TrialResult):
    directory = write_trial(tmp_path, result, TrialContent())
    (directory / "result.json").rename(tmp_path / "elsewhere.json")
    (directory / "result.json").symlink_to(tmp_path / "elsewhere.json")
    with pytest.raises(InputError, match="is missing"):
        read_trial(directory)


def test_artifacts_have_one_place_each_and_overlaps_are_found():
    out, app = Artifact(source="/logs/artifacts"), Artifact(source="/app/out", destination="kept")
    assert [a.source for a in collected([app])] == ["/logs/artifacts", "/app/out"]
    assert collected([out, app]) == [out, app]
    assert (place_of(out).as_posix(), place_of(app).as_posix()) == ("logs/artifacts", "kept")
    assert overlapping([app]) == []
    assert overlapping([Artifact(source="/logs/artifacts/answer.json")]) == []
    clash = Artifact(source="/other", destination="kept/x")
    assert overlapping([app, clash]) == [(app, clash)]
