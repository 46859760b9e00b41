"""A trainer of several processes: equal to one process, resumed by another number, ended when a rank dies."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from backend_cases import pushed, step_rows, worst_gap, write_model

from journeyman.errors import InputError
from journeyman.train.backends.group.shares import shares_of
from journeyman.train.backends.group.trainer import GroupTrainer, data_rank
from journeyman.train.backends.group.wire import GroupLost, Message, decode, encode, pack_rows, unpack_rows
from journeyman.train.backends.spec import BackendSpec, LayoutSpec, LoraSpec
from journeyman.train.backends.table import make_trainer
from journeyman.train.losses import resolve_loss
from journeyman.train.optimizer import GradientNotFinite, OptimizerSpec
from journeyman.train.update import UpdateSpec, row_weights, update_policy

RATE = OptimizerSpec(lr=1e-3, new_rows=3)


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return write_model(tmp_path_factory.mktemp("model"))


def group(directory, ranks, **options):
    options = {"dtype": "float64", "tokens_per_micro_batch": 60, "deadline_s": 120.0, **options}
    spec = BackendSpec(name="fsdp2", layout=LayoutSpec(ranks=ranks), **options)
    trainer = make_trainer(spec, directory, RATE)
    assert isinstance(trainer, GroupTrainer)
    return trainer


@pytest.fixture(scope="module")
def one(directory):
    with group(directory, 1) as trainer:
        yield trainer


@pytest.fixture(scope="module")
def two(directory):
    with group(directory, 2) as trainer:
        yield trainer


def run(trainer, root, steps=3):
    """Losses and norms of some steps, the checkpoint after the first, and the weights at the end."""
    figures, saved = [], None
    for step in range(steps):
        metrics = update_policy(trainer, step_rows(20 + step))
        figures.append((metrics.loss, metrics.grad_norm, metrics.logprob_gap_mean, metrics.tokens))
        saved = saved or trainer.save_state(root, {"step": step})
    return np.array(figures), saved, pushed(trainer)


@pytest.mark.thorough
def test_one_and_two_processes_take_the_same_steps_and_resume_each_other(one, two, directory, tmp_path):
    figures, saved, weights = {}, {}, {}
    for ranks, trainer in ((1, one), (2, two)):
        figures[ranks], saved[ranks], weights[ranks] = run(trainer, tmp_path / str(ranks))
    assert np.abs(figures[1] - figures[2]).max() < 1e-6
    assert worst_gap(weights[1], weights[2]) < 1e-6
    for wrote, reader in ((2, one), (1, two)):  # as many processes as there happen to be
        assert reader.load_state(saved[wrote]) == {"step": 0}
        assert reader.steps == 1
        again = [update_policy(reader, step_rows(20 + step)).grad_norm for step in (1, 2)]
        assert np.abs(np.array(again) - figures[1][1:, 1]).max() < 1e-6
        assert worst_gap(pushed(reader), weights[1]) < 1e-6

    alone = make_trainer(BackendSpec(), directory, RATE)  # another back-end, in float32
    expected = [update_policy(alone, step_rows(20 + step)) for step in range(3)]
    assert np.abs(figures[2][:, 0] - [m.loss for m in expected]).max() < 1e-5
    assert figures[2][:, 1] == pytest.approx([m.grad_norm for m in expected], rel=1e-4)
    assert worst_gap(weights[2], dict(alone.model.named_parameters())) < 1e-4


@pytest.mark.thorough
def test_logprobs_come_back_in_the_rows_order(two, directory):
    rows = step_rows(30)
    alone = make_trainer(BackendSpec(stock_forward=True, dtype="float64"), directory, RATE)
    alone.model.load_state_dict(pushed(two), strict=False)
    for a, b in zip(two.forward_logprobs(rows), alone.forward_logprobs(rows), strict=True):
        assert np.abs(a - b).max() < 1e-6


@pytest.mark.thorough
def test_fewer_rows_than_processes_are_a_step_too(one, two):
    rows = step_rows(31, groups=1, size=2)[:1]
    spec, norms = UpdateSpec(), []
    for trainer in (one, two):
        trainer.forward_backward(rows, row_weights(rows, spec), spec.loss)
        norms.append(trainer.optim_step())
    assert min(norms) > 0


@pytest.mark.thorough
def test_what_all_processes_refuse_is_the_callers_error_and_the_group_goes_on(two):
    rows, loss = step_rows(32), resolve_loss("dppo_topk", params={"divergence": "tv"})
    with pytest.raises(InputError, match="topk"):
        two.forward_backward(rows, row_weights(rows, UpdateSpec()), loss)
    assert len(two.forward_logprobs(rows)) == len(rows)


@pytest.mark.thorough
def test_a_gradient_that_is_not_finite_takes_no_step_anywhere(two):
    rows = step_rows(33)
    before = pushed(two)
    weights = [np.where(row.mask, np.nan, 0.0) for row in rows]
    two.forward_backward(rows, weights, resolve_loss("reinforce"))
    with pytest.raises(GradientNotFinite):
        two.optim_step()
    assert worst_gap(pushed(two), before) < 1e-12


def children(pid):
    tasks = Path(f"/proc/{pid}/task")
    return [int(child) for task in tasks.iterdir() for child in (task / "children").read_text().split()]


def gone(pid, limit_s=20.0):
    until = time.monotonic() + limit_s
    while time.monotonic() < until:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except FileNotFoundError:
            return True
        time.sleep(0.1)
    return False


@pytest.mark.thorough
def test_a_killed_process_ends_the_group_with_an_error_and_leaves_nobody_behind(directory):
    trainer = group(directory, 2)
    agent = trainer._processes._process.pid
    ranks = children(agent)
    assert len(ranks) == 2
    os.kill(ranks[1], signal.SIGKILL)
    began = time.monotonic()
    with pytest.raises(GroupLost):
        for _ in range(3):
            trainer.forward_logprobs(step_rows(34))
    assert time.monotonic() - began < 60
    assert all(gone(pid) for pid in (agent, *ranks))
    with pytest.raises(GroupLost, match="closed"):
        trainer.optim_step()


@pytest.mark.thorough
def test_four_processes_take_the_steps_of_one(one, directory, tmp_path):
    with group(directory, 4) as four:
        expected = group(directory, 1)
        with expected:
            a, _, wanted = run(expected, tmp_path / "one")
        b, saved, got = run(four, tmp_path / "four")
        assert np.abs(a - b).max() < 1e-6
        assert worst_gap(wanted, got) < 1e-6
    assert one.load_state(saved) == {"step": 0}


@pytest.mark.slow
def test_an_adapter_over_two_processes_is_the_one_of_one(directory, tmp_path):
    states = {}
    for ranks in (1, 2):
        with group(directory, ranks, lora=LoraSpec(rank=4, targets=("q_proj", "up_proj"))) as trainer:
            _, _, states[ranks] = run(trainer, tmp_path / str(ranks))
    assert worst_gap(states[1], states[2]) < 1e-6


def test_every_row_has_one_place_and_every_rank_as_many_micro_batches():
    rng = np.random.default_rng(0)
    for ranks in (1, 2, 3, 8):
        lengths = rng.integers(1, 300, 40).tolist()
        shares = shares_of(lengths, [i // 4 for i in range(40)], 500, ranks)
        assert len({len(share) for share in shares}) == 1
        assert sorted(i for share in shares for batch in share for i in batch) == list(range(40))
        assert all(sum(lengths[i] for i in batch) <= 500 for share in shares for batch in share)


def test_ranks_of_one_model_hold_the_same_rows():
    layout = LayoutSpec(ranks=16, tp=2, cp=2, pp=2)
    assert layout.dp == 2
    assert [data_rank(rank, layout) for rank in range(16)] == [0, 0, 0, 0, 1, 1, 1, 1] * 2


def test_rows_cross_the_wire_unchanged_and_nothing_on_it_is_executed():
    rows = step_rows(35)
    batches = [
        [(row, np.arange(len(row.ids), dtype=np.float64)) for row in rows[:3]],
        [],
        [(rows[3], rows[3].logprobs)],
    ]
    data, arrays = pack_rows(batches)
    frame = encode(Message(data, arrays))
    head = int.from_bytes(frame[8:12], "little")
    got = unpack_rows(decode(frame[12:], head))
    assert [len(part) for part, _ in got] == [3, 0, 1]
    for (row, weight), (again, weight_again) in zip(batches[0], zip(*got[0], strict=True), strict=True):
        assert np.array_equal(row.ids, again.ids)
        assert np.array_equal(row.logprobs, again.logprobs)
        assert row.advantage == again.advantage
        assert np.array_equal(weight, weight_again)
    with pytest.raises(GroupLost):
        decode(b'{"data": {}, "arrays": [["a", "|O", [1]]]}' + b"\0" * 8, 42)


def test_the_torch_state_of_this_process_is_untouched():
    assert not torch.distributed.is_initialized()
