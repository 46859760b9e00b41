"""The training loop over real trials on a real engine: bit-for-bit resume, kills, weights in shared memory."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from ladder_training_setup import plan_of, small_policy, spec_of, without_times

from journeyman.digest import sha256_file
from journeyman.engines.errors import EngineError
from journeyman.ladder.training.evaluating import SideEvaluator
from journeyman.ladder.training.open_site import open_site
from journeyman.ladder.training.remote import RemoteSite
from journeyman.ladder.training.weights import PREFIX, SHARED, WeightBox, checked, sweep
from journeyman.ladder.workshop import Workshop
from journeyman.train.backends.torch import TorchTrainer
from journeyman.train.loop.asynchronous import AsyncLoop
from journeyman.train.loop.journal import Journal, read, segments
from journeyman.train.loop.protocol import GroupOrder
from journeyman.train.loop.synchronous import SyncLoop
from journeyman.train.metrics.sinks import Sinks
from journeyman.train.model import load_model


@pytest.fixture(scope="module")
def policy(prepared: Workshop, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_policy(prepared, tmp_path_factory.mktemp("policy"))


def sync_run(root: Path, prepared: Workshop, policy: Path, steps: int, stop_after: int | None = None, **changes):
    """One session of a synchronous run; asks to stop after that many steps."""
    source = open_site(plan_of(prepared, policy).as_data())
    done: list[int] = []
    loop = SyncLoop(
        root,
        spec_of(steps, **changes),
        source,
        TorchTrainer(load_model(policy)),
        Sinks(root, after=stop_after or 0),
        is_stopping=lambda: stop_after is not None and len(done) >= stop_after,
        on_step=lambda record, groups: done.append(1),
    )
    try:
        return loop.run()
    finally:
        source.close()


def test_a_resumed_synchronous_run_equals_an_uninterrupted_one_bit_for_bit(prepared, policy, tmp_path):
    whole = sync_run(tmp_path / "whole", prepared, policy, 4)
    first = sync_run(tmp_path / "cut", prepared, policy, 4, stop_after=2)
    second = sync_run(tmp_path / "cut", prepared, policy, 4)
    assert (whole.status, first.status, second.status) == ("done", "interrupted", "done")
    assert without_times(first.records + second.records) == without_times(whole.records)
    weights = [sha256_file(r.checkpoint / "model.safetensors") for r in (whole, second)]
    moments = [sha256_file(r.checkpoint / "optimizer.safetensors") for r in (whole, second)]
    assert weights[0] == weights[1] and moments[0] == moments[1]
    assert whole.counts == second.counts
    assert whole.records[0]["policy/gap_mean"] < 1e-4


def test_a_step_whose_numbers_are_not_finite_is_quarantined_with_its_batch(prepared, policy, tmp_path):
    source = open_site(plan_of(prepared, policy).as_data())

    class Poisoned:
        """The site, with one trial of the first group that reports an impossible logprob."""

        def __getattr__(self, name):
            return getattr(source, name)

        def poll(self, wait_s):
            found = source.poll(wait_s)
            for trial in found.trials:
                if trial.position == 0:
                    trial.logprobs[trial.mask.astype(bool)] = np.nan
            return found

    loop = SyncLoop(tmp_path, spec_of(1), Poisoned(), TorchTrainer(load_model(policy)), Sinks(tmp_path))
    try:
        result = loop.run()
    finally:
        source.close()
    assert result.status == "done" and result.counts["groups/dropped/quarantined"] >= 1
    kept = list((tmp_path / "quarantine").iterdir())
    assert len(kept) == 1 and (kept[0] / "rows.npz").is_file()


def async_run(root: Path, prepared: Workshop, policy: Path, steps: int, *, kill_engine: bool = False, **changes):
    source = (KilledOnce if kill_engine else RemoteSite)(plan_of(prepared, policy).as_data(), root / "sampling.log")
    loop = AsyncLoop(root, spec_of(steps, **changes), source, TorchTrainer(load_model(policy)), Sinks(root))
    try:
        return loop.run(), source.restarts
    finally:
        source.close()


class KilledOnce(RemoteSite):
    """A site whose process is killed when the first trials have ended."""

    is_killed = False

    def poll(self, wait_s: float):
        found = super().poll(wait_s)
        if found.trials and not self.is_killed:
            self.is_killed = True
            os.kill(self.pid, signal.SIGKILL)
        return found


@pytest.mark.thorough
def test_an_asynchronous_run_trains_within_the_bound_with_the_engine_killed_on_the_way(prepared, policy, tmp_path):
    result, restarts = async_run(tmp_path, prepared, policy, 4, kill_engine=True)
    assert result.status == "done" and result.steps == 4 and restarts == 1
    assert result.counts["groups/trained"] == 8
    assert all(record["staleness/trained_max"] <= 2 for record in result.records)
    lost = {k: v for k, v in result.counts.items() if "dropped" in k}
    assert not lost, "hold loses nothing"
    assert (tmp_path / "metrics.jsonl").read_text().count("\n") == 4
    assert not list(SHARED.glob(f"{PREFIX}rl-{os.getpid()}-*")), "nothing stays in shared memory"


@pytest.mark.thorough
def test_a_resumed_asynchronous_run_accounts_for_every_group(prepared, policy, tmp_path):
    source = RemoteSite(plan_of(prepared, policy).as_data(), tmp_path / "sampling.log")
    trainer = TorchTrainer(load_model(policy))
    loop = AsyncLoop(tmp_path, spec_of(5), source, trainer, Sinks(tmp_path))
    loop._begin()
    while loop.gate.version < 2 or loop._worker.is_busy:
        loop._round()
    before = loop.gate.ledger.state()
    loop.journal.sync()  # what a kill leaves: the journal as it is, the checkpoint as it was
    loop._worker.close(wait=True)
    loop.journal.close()
    loop.books.close()
    source.close()
    again, _ = async_run(tmp_path, prepared, policy, 5)
    assert again.status == "done" and again.counts["groups/trained"] == 10
    kinds = [r for n in segments(tmp_path / "journal") for r, _ in read(tmp_path / "journal", n)]
    assert again.counts["groups/submitted"] >= before["submitted"]
    assert len({r["position"] for r in kinds if r["kind"] == "submit"}) == sum(r["kind"] == "submit" for r in kinds)


def test_weights_reach_running_trials_between_two_tokens_and_every_token_knows_its_version(prepared, policy, tmp_path):
    source = open_site(plan_of(prepared, policy, at_once=8).as_data())
    trainer = TorchTrainer(load_model(policy))
    source.submit([GroupOrder(0, 0, 8, 0)])
    found = []
    for version in range(1, 40):
        found += source.poll(0.01).trials
        trainer.push_weights(source, version)
        if len(found) == 8:
            break
    while len(found) < 8:
        found += source.poll(0.5).trials
    source.close()
    sampled = [trial.versions[trial.mask.astype(bool)] for trial in found]
    assert all((np.diff(v) >= 0).all() for v in sampled)
    changes = [len(np.unique(v)) - 1 for v in sampled]
    assert any(n > trial.facts["turns"] for n, trial in zip(changes, found, strict=True)), "also within a turn"
    assert all((trial.versions[trial.mask == 0] == -1).all() for trial in found)


def test_a_turn_cut_by_an_update_goes_on_with_the_same_noise_whether_in_place_or_issued_again(prepared, policy):
    """Equal weights under new numbers: then both ways sample what an undisturbed engine samples."""
    found = {}
    for partial in ("undisturbed", "continue", "reissue"):
        plan = plan_of(prepared, policy, at_once=4, partial="reissue" if partial == "reissue" else "continue")
        source = open_site(plan.as_data())
        trainer = TorchTrainer(load_model(policy))
        source.submit([GroupOrder(0, 0, 4, 0)])
        trials, version = [], 0
        while len(trials) < 4:
            trials += source.poll(0.01).trials
            if partial != "undisturbed" and version < 12:
                version += 1
                trainer.push_weights(source, version)
        source.close()
        found[partial] = sorted(trials, key=lambda trial: trial.sample)
    for partial in ("continue", "reissue"):
        assert [t.ids.tolist() for t in found[partial]] == [t.ids.tolist() for t in found["undisturbed"]]
        gaps = [
            np.abs(a.logprobs - b.logprobs).max() for a, b in zip(found[partial], found["undisturbed"], strict=True)
        ]
        assert max(gaps) < 1e-4
        assert max(int(trial.versions.max()) for trial in found[partial]) > 0


@pytest.mark.thorough
def test_frozen_weights_are_measured_beside_training_and_the_best_checkpoint_is_kept(prepared, policy, tmp_path):
    root = tmp_path / "run"
    plan = plan_of(prepared, policy)
    source = RemoteSite(plan.as_data(), root / "sampling.log")
    dev = RemoteSite(replace(plan, name="dev", tasks=plan.tasks[:2]).as_data(), root / "dev.log")
    evaluator = SideEvaluator(dev, tasks=2, samples=2, k=2)
    spec = spec_of(2, evaluate_every=1)
    loop = AsyncLoop(root, spec, source, TorchTrainer(load_model(policy)), Sinks(root), evaluator)
    try:
        result = loop.run()
    finally:
        source.close()
        evaluator.close()
    assert result.status == "done"
    assert result.evaluations[0].version == 0 and result.evaluations[-1].version == 2
    assert (root / "kept" / "best" / "model.safetensors").is_file() or result.evaluations[0].mean_reward == max(
        found.mean_reward for found in result.evaluations
    )
    assert all(found.trials == 4 and found.k == 2 for found in result.evaluations)
    lines = [json.loads(line) for line in (root / "metrics.jsonl").read_text().splitlines()]
    assert sum("dev/mean_reward" in line for line in lines) == len(result.evaluations)


def test_weights_that_are_not_what_was_written_are_refused_and_boxes_of_dead_processes_are_removed(policy, tmp_path):
    box = WeightBox("test")
    path = box.put(TorchTrainer(load_model(policy)).model.state_dict(), 7)
    assert checked(path, 7) == path
    with pytest.raises(EngineError, match="not what was written"):
        checked(path, 8)
    (path / "model.safetensors").write_bytes((path / "model.safetensors").read_bytes()[:-1] + b"x")
    with pytest.raises(EngineError, match="not what was written"):
        checked(path, 7)
    box.close()
    ended = subprocess.Popen(["true"])
    ended.wait()
    for owner in (ended.pid, os.getpid()):
        (tmp_path / f"{PREFIX}a-b-{owner}-xyz").mkdir()
    assert [p.name for p in sweep(tmp_path)] == [f"{PREFIX}a-b-{ended.pid}-xyz"]


def test_a_torn_record_at_the_end_of_the_journal_is_ignored_and_written_over(tmp_path):
    journal = Journal(tmp_path)
    for position in range(3):
        journal.note("submit", {"position": position})
    journal.close()
    path = tmp_path / "journal-00000000.bin"
    whole = path.read_bytes()
    for cut in (1, 7, 20):
        path.write_bytes(whole[:-cut])
        assert [r["position"] for r, _ in read(tmp_path, 0)] == [0, 1]
    again = Journal(tmp_path, 0)
    again.note("submit", {"position": 9})
    again.close()
    assert [r["position"] for r, _ in read(tmp_path, 0)] == [0, 1, 9]
