"""What the loop carries beside tokens, through a real engine: likeliest tokens, probes, second verdicts."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from ladder_training_setup import HACKED_FROM, plan_of, small_policy, spec_of

from journeyman.errors import InputError
from journeyman.ladder.training.open_site import open_site
from journeyman.ladder.training.shadow import ShadowGrader, shadows_of
from journeyman.ladder.workshop import Workshop
from journeyman.tasks.grading import GradeItem
from journeyman.tasks.task import load_task
from journeyman.tasks.verdict import scored
from journeyman.train.backends.torch import TorchTrainer
from journeyman.train.loop.journal import Journal, read
from journeyman.train.loop.protocol import FinishedTrial, GroupOrder
from journeyman.train.loop.settling import row_of
from journeyman.train.loop.stepping import Probes, fresh_gap
from journeyman.train.loop.synchronous import SyncLoop
from journeyman.train.losses import resolve_loss
from journeyman.train.metrics.sinks import Sinks
from journeyman.train.model import load_model
from journeyman.train.update import UpdateSpec


@pytest.fixture(scope="module")
def policy(prepared: Workshop, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_policy(prepared, tmp_path_factory.mktemp("policy"))


def sampled(source, count):
    found = []
    while len(found) < count:
        found += source.poll(0.5).trials
    return sorted(found, key=lambda trial: trial.sample)


def test_a_loss_over_the_likeliest_tokens_trains_on_what_the_engine_told_of_them(prepared, policy, tmp_path):
    source = open_site(plan_of(prepared, policy, topk=5).as_data())
    spec = spec_of(1, update=UpdateSpec(resolve_loss("dppo_topk", params={"divergence": "kl"})))
    trainer = TorchTrainer(load_model(policy))
    try:
        source.update_weights(trainer.model.state_dict(), 0)
        source.submit([GroupOrder(0, 0, 4, 0)])
        trial = sampled(source, 4)[0]
        assert trial.topk_ids.shape == trial.topk_logprobs.shape == (trial.num_sampled, 5)
        row = row_of(trial)
        at = np.flatnonzero(row.mask)
        assert (np.diff(row.topk_logprobs[at], axis=1) <= 0).all(), "most probable first"
        own = row.topk_ids[at] == row.ids[at, None]
        assert own.any() and np.allclose(row.topk_logprobs[at][own], row.logprobs[at][own.any(1)], atol=1e-5)
        result = SyncLoop(tmp_path, spec, source, trainer, Sinks(tmp_path)).run()
    finally:
        source.close()
    assert result.status == "done" and result.records[0]["policy/grad_norm"] > 0


def test_without_such_a_loss_the_engine_is_asked_for_nothing_more(prepared, policy):
    source = open_site(plan_of(prepared, policy, probe=True).as_data())
    source.submit([GroupOrder(0, 0, 4, 0)])
    trials = sampled(source, 4)
    source.close()
    assert all(trial.topk_ids is None and trial.routed_experts is None for trial in trials)


def test_the_journal_keeps_what_the_engine_told(tmp_path):
    ids = np.arange(6, dtype=np.int32)
    mask = np.array([0, 0, 1, 1, 0, 1], np.uint8)
    told = {
        "topk_ids": np.arange(6, dtype=np.int32).reshape(3, 2),
        "topk_logprobs": -np.ones((3, 2), np.float32),
        "routed_experts": np.arange(24, dtype=np.uint8).reshape(6, 2, 2),
    }
    column = np.zeros(6, np.float32)
    versions = np.where(mask == 1, 3, -1).astype(np.int32)
    trial = FinishedTrial(4, 0, ids, mask, column, versions, 0.5, True, "none", {}, **told)
    journal = Journal(tmp_path)
    journal.trial(trial)
    journal.trial(replace(trial, sample=1, **dict.fromkeys(told)))
    journal.close()
    whole, bare = (record["trial"] for record, _ in read(tmp_path, 0))
    for name, column in told.items():
        found = getattr(whole, name)
        assert found.dtype == column.dtype and np.array_equal(found, column)
        assert getattr(bare, name) is None


def test_each_push_is_followed_by_a_probe_that_its_weights_alone_sampled(prepared, policy):
    """At hand in every step, also where all trials mix versions; exact, so a moved trainer shows."""
    source = open_site(plan_of(prepared, policy, probe=True).as_data())
    trainer = TorchTrainer(load_model(policy))
    source.submit([GroupOrder(0, 0, 8, 0)])
    probes, trials = [], []
    for version in (1, 2, 3):
        trainer.push_weights(source, version)
        while not any(int(probe.versions.max()) == version for probe in probes):
            arrivals = source.poll(0.01)
            probes += arrivals.probes
            trials += arrivals.trials
    source.close()
    held = Probes()
    held.add(probes)
    gap = fresh_gap(trainer, held.of(3), 3)  # the last of them maybe while no trial was under way any more
    assert gap is not None and gap.tokens == 24 and gap.mean < 1e-4
    assert all(probe.position == -1 and probe.reward is None for probe in probes)
    with_noise = load_model(policy)
    head = with_noise.get_input_embeddings().weight
    head.data.add_(0.05 * np.ptp(head.detach().numpy()))
    moved = fresh_gap(TorchTrainer(with_noise), held.of(3), 3)
    assert moved is not None and moved.mean > 100 * gap.mean
    assert held.of(9, wait_s=0.01) == []


def test_the_tokens_of_the_present_weights_tell_in_mixed_trials_where_their_context_was_computed_anew(prepared, policy):
    source = open_site(plan_of(prepared, policy, kv_on_update="recompute").as_data())
    trainer = TorchTrainer(load_model(policy))
    source.submit([GroupOrder(0, 0, 8, 0)])
    for _ in range(4):
        source.poll(0.02)
    moved = TorchTrainer(load_model(policy))
    for parameter in moved.model.parameters():
        parameter.data.mul_(1.05)
    moved.push_weights(source, 1)
    trials = sampled(source, 8)
    source.close()
    mixed = [t for t in trials if {0, 1} <= set(t.versions[t.mask == 1].tolist())]
    assert mixed and fresh_gap(moved, mixed, 1) is None
    assert fresh_gap(moved, mixed, 1, whole=False).mean < 1e-4
    assert fresh_gap(trainer, mixed, 1, whole=False).mean > 1e-3


class ByName:
    """A grader whose verdict stands in the deliverable, and whose held-back verdict in its task's name."""

    def grade(self, items):
        return [scored(0.25 if "shadow" in str(item.task.path) else 1.0, None) for item in items]


def shadow_tasks(prepared: Workshop, root: Path) -> Path:
    """Copies of four tasks whose verifiers never give more than half of the reward."""
    for task in prepared.tasks("train")[:4]:
        shutil.copytree(task.path, root / task.id, symlinks=True)
    return root


def test_a_held_back_verifier_grades_the_same_deliverables_beside_the_rewarding_one(prepared, tmp_path):
    tasks = prepared.tasks("train")[:4]
    shadows = [load_task(path) for path in sorted(shadow_tasks(prepared, tmp_path / "shadow").iterdir())]
    grader = ShadowGrader(ByName(), shadows_of(tasks, shadows))
    verdicts = grader.grade([GradeItem("a", tasks[0], {"answer": b"1"}), GradeItem("b", tasks[1], None)])
    assert [verdict.reward for verdict in verdicts] == [1.0, 1.0]
    assert grader.reward_of("a") == 0.25 and grader.reward_of("a") is None, "told once"
    with pytest.raises(InputError, match="already gives the reward"):
        shadows_of(tasks, tasks[:1])
    with pytest.raises(InputError, match="is no task of"):
        shadows_of(tasks[1:], [load_task(tmp_path / "shadow" / tasks[0].id)])
    some = ShadowGrader(ByName(), shadows_of(tasks, shadows), share=0.5)
    some.grade([GradeItem(f"trial {n}", tasks[0], None) for n in range(200)])
    assert 70 < sum(some.reward_of(f"trial {n}") is not None for n in range(200)) < 130


def test_second_verdicts_reach_the_record_of_a_step(prepared, policy, tmp_path):
    shadow = shadow_tasks(prepared, tmp_path / "shadow")
    paths = tuple(str(path) for path in sorted(shadow.iterdir()))
    source = open_site(plan_of(prepared, policy, shadow=paths).as_data())
    try:
        loop = SyncLoop(tmp_path / "run", spec_of(1), source, TorchTrainer(load_model(policy)), Sinks(tmp_path))
        record = loop.run().records[0]
    finally:
        source.close()
    assert 0 <= record["reward/shadow"] <= 1 and record["reward/shadowed"] == pytest.approx(record["reward/mean"])
    assert json.dumps(record)


def test_a_probe_is_sampled_though_no_trial_is_under_way(prepared, policy):
    source = open_site(plan_of(prepared, policy, probe=True).as_data())
    source.submit([GroupOrder(0, 0, 4, 0)])
    sampled(source, 4)
    TorchTrainer(load_model(policy)).push_weights(source, 1)
    probes = []
    for _ in range(200):
        probes += source.poll(0.01).probes
    source.close()
    assert [int(probe.versions.max()) for probe in probes][-1:] == [1]


@pytest.mark.thorough
def test_gains_that_only_the_rewarding_verifier_sees_alarm_within_five_steps(prepared, policy, tmp_path):
    """From the verdicts of a trial to the alarm, with a grader that is gamed from the tenth step on."""
    paths = tuple(str(path) for path in sorted(shadow_tasks(prepared, tmp_path / "shadow").iterdir()))
    found = {}
    for name, shadow in (("watched", paths), ("unwatched", ())):
        plan = plan_of(prepared, policy, shadow=shadow, grader="ladder_training_setup:HackedGrader")
        source = open_site(plan.as_data())
        root = tmp_path / name
        try:
            loop = SyncLoop(root, spec_of(HACKED_FROM + 5), source, TorchTrainer(load_model(policy)), Sinks(root))
            found[name] = loop.run()
        finally:
            source.close()
    alarms = [alarm for alarm in found["watched"].alarms if alarm.guard == "proxy"]
    assert alarms and HACKED_FROM < alarms[0].step <= HACKED_FROM + 5
    assert "verifier-only gains" in alarms[0].text
    assert not [alarm for alarm in found["unwatched"].alarms if alarm.guard == "proxy"], "nothing to compare with"
    before, after = found["watched"].records[HACKED_FROM - 1], found["watched"].records[-1]
    assert after["reward/shadowed"] - after["reward/shadow"] > 0.1 + before["reward/shadowed"] - before["reward/shadow"]
