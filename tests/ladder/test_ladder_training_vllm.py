"""``train rl`` with vLLM as the source of rollouts: a stand-in server on real sockets, and a real one on request."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ladder_training_vllm import LUCKY, fake_vllm, recipe_of, served_policy

from journeyman.errors import EnvironmentMissing
from journeyman.ladder.training.remote import SourceFailed
from journeyman.ladder.training.rl import run_rl
from journeyman.ladder.workshop import Workshop
from journeyman.train.model import load_model

PYTHON = os.environ.get("JOURNEYMAN_VLLM_PYTHON")


@pytest.fixture(scope="module")
def policy(prepared: Workshop, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return served_policy(prepared, tmp_path_factory.mktemp("policy"))


@pytest.fixture
def server(policy: Path) -> Iterator[Any]:
    module = fake_vllm()
    with module.serving(module.FakeVllm(load_model(policy), max_len=192)) as fake:
        yield fake


def trained(*words: Any, **sections: Any) -> tuple[Any, list[str]]:
    said: list[str] = []
    report = run_rl(recipe_of(*words, **sections), said.append, changes=LUCKY)
    return report, said


@pytest.mark.thorough
def test_a_recipe_trains_on_a_servers_rollouts_with_likeliest_tokens_and_proved_pushes(
    prepared, policy, server, tmp_path
):
    loss = {"name": "dppo_topk", "topk": 8}
    prices = {"per_million_sampled": 2.0, "per_cpu_second": 0.01}
    report, _ = trained(prepared, policy, tmp_path / "run", {"urls": [server.url]}, loss=loss, prices=prices)
    result = report.result
    assert result.status == "done" and result.steps == 2
    assert server.label == "v2", "the last push reached the server"
    asked = [body["sampling_params"]["logprobs"] for path, _, body in server.seen if path == "/inference/v1/generate"]
    assert 8 in asked and set(asked) <= {0, 8}, "probes ask for none"
    for record in result.records:
        assert record["policy/gap_mean"] < 1e-4 and record["policy/gap_tokens"] > 0
        assert record["usd/tokens"] > 0 and record["usd/cpu"] > 0
    assert result.records[-1]["total/usd"] == pytest.approx(sum(r["usd/tokens"] + r["usd/cpu"] for r in result.records))
    assert (tmp_path / "run" / "policy" / "model.safetensors").is_file()


@pytest.mark.thorough
def test_a_push_that_left_the_old_head_in_force_is_found_by_its_proof(prepared, policy, server, tmp_path):
    server.stale_head = True
    with pytest.raises(SourceFailed, match="does not serve version 1"):
        trained(prepared, policy, tmp_path / "run", {"urls": [server.url]}, optimizer={"lr": 0.03})


@pytest.mark.thorough
def test_a_stale_head_stops_the_asynchronous_run_though_no_trial_is_sampled_by_one_version(
    prepared, policy, server, tmp_path
):
    """Without the proof, by the probes: trials are longer than a step, so each mixes versions."""
    server.stale_head = True
    loop = {"steps": 6, "staleness": 3}
    report, _ = trained(
        prepared, policy, tmp_path / "run", {"urls": [server.url], "prove": False}, optimizer={"lr": 0.03}, loop=loop
    )
    result = report.result
    assert result.status == "stopped" and result.steps <= 5
    assert [alarm.guard for alarm in result.alarms if alarm.guard == "gap"]
    assert all(record["policy/gap_mean"] is not None for record in result.records), "no step is blind"


@pytest.mark.thorough
def test_a_server_that_does_not_answer_ends_the_run_with_what_to_do(prepared, policy, tmp_path):
    with pytest.raises(EnvironmentMissing, match=r"127\.0\.0\.1:9"):
        trained(prepared, policy, tmp_path / "run", {"urls": ["http://127.0.0.1:9"]})


@pytest.mark.parametrize(
    ("sections", "words"),
    [
        ({"rollout": {"engine": "vllm"}}, "neither vllm.urls nor vllm.python"),
        ({"backend": {"replay_routing": True}}, "records no experts"),
        ({"loss": {"name": "dppo_topk"}, "backend": {"name": "megatron", "layout": {"ranks": 2}}}, "lacks topk"),
    ],
)
def test_what_engine_and_trainer_cannot_give_is_refused_when_the_recipe_is_read(
    prepared, policy, tmp_path, sections, words
):
    with pytest.raises(ValueError, match=words):
        recipe_of(prepared, policy, tmp_path, None, **sections)


@pytest.mark.skipif(not PYTHON, reason="needs a vLLM server: make test-vllm")
def test_two_steps_on_a_real_server_that_the_run_starts_and_ends(prepared, policy, tmp_path):
    vllm = {"python": PYTHON, "start_s": 600.0}
    report, _ = trained(prepared, policy, tmp_path / "run", vllm, loss={"name": "dppo_topk"})
    result = report.result
    assert result.status == "done" and result.steps == 2
    gaps = [record["policy/gap_mean"] for record in result.records]
    print(json.dumps({"gaps": gaps, "wall_s": [r["time/wall_s"] for r in result.records]}))
    assert all(gap is not None and gap < 1e-4 for gap in gaps)
    assert (tmp_path / "run" / "logs" / "vllm" / "server.log").is_file()
