"""Supervised training: the data teaches, a kill changes nothing, a foreign directory is refused."""

from __future__ import annotations

import multiprocessing
import os
import signal

import numpy as np
import pytest
import torch

from journeyman.errors import InputError
from journeyman.train.checkpoint import latest, load_checkpoint
from journeyman.train.criterion import FixedSteps, UntilLearned
from journeyman.train.model import ModelShape, build_model
from journeyman.train.optimizer import OptimizerSpec
from journeyman.train.sft import train_sft

SHAPE = ModelShape(vocab_size=24, hidden=32, layers=2, heads=2, kv_heads=1, head_dim=16, ffn=48, positions=64)
SPEC = OptimizerSpec(lr=3e-3, muon_lr=0.015)


def build(attempt):
    return build_model(SHAPE, 10 + attempt)


def batch(step):
    """Four rows that repeat their first half after a separator; only the second half is learned."""
    rng = np.random.default_rng([7, step])
    rows = []
    for _ in range(4):
        half = rng.integers(1, 24, rng.integers(2, 6))
        ids = np.concatenate([half, [0], half])
        rows.append((ids, (np.arange(len(ids)) > len(half)).astype(np.uint8)))
    return rows


HELD_OUT = batch(10**6) + batch(10**6 + 1)
PLAN = UntilLearned(
    warmup=2, check_every=4, threshold=9.0, checks=2, decay=8, cap=40, restart_at=32, attempts=2, gate=9.0
)


def weights(model):
    return {name: parameter.detach().clone() for name, parameter in model.named_parameters()}


def run(root, data=batch, plan=PLAN):
    return train_sft(build, data, plan=plan, optimizer=SPEC, held_out=HELD_OUT, checkpoints=root, checkpoint_every=3)


def killed_run(root, at):
    torch.set_num_threads(1)

    def data(step):
        if step == at:
            os.kill(os.getpid(), signal.SIGKILL)
        return batch(step)

    run(root, data)


@pytest.mark.parametrize("at", [1, 10])
def test_a_killed_run_continues_and_ends_in_the_same_bits(tmp_path, at):
    whole = run(tmp_path / "whole")
    assert whole.record.steps == 16
    child = multiprocessing.get_context("fork").Process(target=killed_run, args=(tmp_path / "cut", at))
    child.start()
    child.join(60)
    assert child.exitcode == -signal.SIGKILL
    asked = []

    def data(step):
        asked.append(step)
        return batch(step)

    resumed = run(tmp_path / "cut", data)
    assert asked[0] == {1: 0, 10: 9}[at]
    assert resumed.record == whole.record
    expected = weights(whole.model)
    assert all(torch.equal(tensor, expected[name]) for name, tensor in weights(resumed.model).items())


def test_a_finished_run_is_not_trained_again(tmp_path):
    whole = run(tmp_path)
    again = run(tmp_path, data=lambda step: pytest.fail("asked for data"))
    assert again.record == whole.record
    assert torch.equal(weights(again.model)["model.norm.weight"], weights(whole.model)["model.norm.weight"])


def test_an_attempt_that_does_not_learn_is_given_up_and_the_record_says_so():
    plan = UntilLearned(
        warmup=2, check_every=4, threshold=1e-9, decay=4, cap=20, restart_at=8, near=1e-9, attempts=2, gate=1e-9
    )
    asked = []

    def data(step):
        asked.append(step)
        return batch(step)

    result = run(None, data, plan)
    assert asked == [*range(8), *range(20, 40)]
    assert (result.record.attempts, result.record.steps, result.record.learned) == (2, 20, False)
    assert result.record.held_out[-1][0] == 20


def test_training_lowers_the_held_out_loss():
    plan = FixedSteps(steps=60, constant=60, warmup=5, check_every=20)
    result = train_sft(build, batch, plan=plan, optimizer=SPEC, held_out=HELD_OUT)
    losses = [loss for _, loss in result.record.held_out]
    assert losses[-1] < 0.9 * losses[0]
    assert result.record.tokens == sum(len(ids) for step in range(60) for ids, _ in batch(step))


def test_a_directory_of_other_settings_or_a_damaged_checkpoint_is_refused(tmp_path):
    run(tmp_path)
    with pytest.raises(InputError, match=r"state\.json:settings"):
        run(tmp_path, plan=FixedSteps(steps=3, constant=3))
    newest = latest(tmp_path)
    data = bytearray((newest / "model.safetensors").read_bytes())
    data[-1] ^= 1
    (newest / "model.safetensors").write_bytes(bytes(data))
    with pytest.raises(InputError, match=r"model\.safetensors: is damaged"):
        run(tmp_path)
    (newest / "state.json").write_text("{}")
    with pytest.raises(InputError, match=r"state\.json: is damaged"):
        load_checkpoint(newest)


def test_a_criterion_without_held_out_data_is_refused():
    with pytest.raises(InputError, match="held_out"):
        train_sft(build, batch, plan=PLAN, optimizer=SPEC)
