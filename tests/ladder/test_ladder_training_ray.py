"""``train rl`` with its trials on a Ray cluster: chosen by one key of the recipe, two steps, nothing left behind."""

from __future__ import annotations

import pytest
from ladder_training_vllm import LUCKY, recipe_of, served_policy

from journeyman.errors import EnvironmentMissing
from journeyman.ladder.training.cluster import connect
from journeyman.ladder.training.rl import run_rl

pytestmark = pytest.mark.slow


def test_two_steps_are_taken_on_trials_that_a_cluster_runs(prepared, tmp_path):
    pytest.importorskip("ray")
    policy = served_policy(prepared, tmp_path / "policy")
    rollout = {"executor": "ray", "ray": {"cpus": 0.2}}
    recipe = recipe_of(prepared, policy, tmp_path / "run", None, rollout=rollout, loop={"stall_s": 400.0})
    result = run_rl(recipe, lambda line: None, changes=LUCKY).result
    assert result.status == "done" and result.steps == 2
    assert result.counts["groups/trained"] == 2
    errors = {k: v for record in result.records for k, v in record.items() if k.startswith("trials/error/")}
    assert not errors
    assert all(record["policy/gap_mean"] < 1e-4 for record in result.records)


def test_a_cluster_that_does_not_answer_is_said_with_its_address():
    pytest.importorskip("ray")
    with pytest.raises(EnvironmentMissing, match=r"no Ray cluster answers at 127\.0\.0\.1:9"):
        connect("127.0.0.1:9")
