"""One RL step on the torch back-end: what moves the policy, what must not, and what is measured."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from journeyman.engines.embedded.engine import EmbeddedEngine
from journeyman.errors import InputError
from journeyman.train.backends.torch import TorchTrainer
from journeyman.train.balancing import balance
from journeyman.train.checkpoint import latest
from journeyman.train.losses import LOSSES, resolve_loss
from journeyman.train.model import ModelShape, build_model
from journeyman.train.optimizer import GradientNotFinite
from journeyman.train.packing import pack
from journeyman.train.update import UpdateSpec, live_rows, row_weights, update_policy


def on_policy(model, rows):
    """The rows with the model's own logprobs as rollout logprobs."""
    logprobs = TorchTrainer(model).forward_logprobs(rows)
    return [replace(row, logprobs=values) for row, values in zip(rows, logprobs, strict=True)]


def with_topk(rows, k=3, vocab=61):
    """The rows with made-up likeliest tokens of the rollout, for the loss that compares them."""
    rng = np.random.default_rng(0)
    scores = [rng.normal(size=(len(row.ids), vocab)) for row in rows]
    logprobs = [s - np.log(np.exp(s).sum(1, keepdims=True)) for s in scores]
    ids = [np.argsort(-s, axis=1)[:, :k].astype(np.int32) for s in scores]
    tops = [np.take_along_axis(lp, i, 1).astype(np.float32) for lp, i in zip(logprobs, ids, strict=True)]
    return [replace(r, topk_ids=i, topk_logprobs=t) for r, i, t in zip(rows, ids, tops, strict=True)]


def gradient(model, rows, spec=None, cap=4096):
    spec = spec or UpdateSpec()
    trainer = TorchTrainer(model, tokens_per_micro_batch=cap)
    metrics = trainer.forward_backward(rows, row_weights(rows, spec), spec.loss)
    grads = {name: parameter.grad.clone() for name, parameter in model.named_parameters()}
    model.zero_grad()
    return metrics, grads


def test_logprobs_come_back_at_their_places(small_model, make_rows):
    rows = make_rows(2)
    got = TorchTrainer(small_model, tokens_per_micro_batch=40).forward_logprobs(rows)
    for row, values in zip(rows, got, strict=True):
        ids = torch.from_numpy(row.ids.astype(np.int64))
        with torch.no_grad():
            expected = small_model(input_ids=ids[None]).logits[0, :-1].log_softmax(-1).gather(1, ids[1:, None])[:, 0]
        expected = np.concatenate([[0], expected.numpy()]) * row.mask
        assert np.abs(values - expected).max() < 1e-5


def test_the_on_policy_gradient_is_that_of_weighted_logprobs(small_model, make_rows):
    rows = on_policy(small_model, make_rows(3))
    metrics, grads = gradient(small_model, rows)
    expected = 0.0
    for row, weights in zip(rows, row_weights(rows, UpdateSpec()), strict=True):
        ids = torch.from_numpy(row.ids.astype(np.int64))
        logprobs = small_model(input_ids=ids[None]).logits[0, :-1].log_softmax(-1).gather(1, ids[1:, None])[:, 0]
        expected = expected - row.advantage * (logprobs * torch.from_numpy(weights[1:]).float()).sum()
    expected.backward()
    for name, parameter in small_model.named_parameters():
        assert torch.allclose(grads[name], parameter.grad, atol=2e-6, rtol=1e-3), name
    assert metrics.abs_gaps.max() < 1e-5
    assert metrics.tokens == sum(int(row.mask.sum()) for row in rows)


@pytest.mark.parametrize("name", LOSSES)
def test_the_size_of_micro_batches_changes_no_gradient(small_model, make_rows, name):
    rows, spec = with_topk(make_rows(4)), UpdateSpec(resolve_loss(name))
    whole, expected = gradient(small_model, rows, spec)
    parts, grads = gradient(small_model, rows, spec, cap=30)
    assert parts.loss == pytest.approx(whole.loss, abs=1e-5)
    assert parts.counts == whole.counts
    for tensor_name, tensor in expected.items():
        assert torch.allclose(grads[tensor_name], tensor, atol=3e-6, rtol=1e-3), tensor_name


def test_a_step_raises_what_was_better_and_lowers_what_was_worse(small_model, make_rows):
    rows = on_policy(small_model, make_rows(5))
    trainer = TorchTrainer(small_model)
    before = [row.logprobs.sum() for row in rows]
    metrics = update_policy(trainer, rows)
    after = [values.sum() for values in trainer.forward_logprobs(rows)]
    change = sum((b - a) * row.advantage for a, b, row in zip(before, after, rows, strict=True))
    assert change > 0
    assert metrics.live_groups == 3
    assert metrics.dropped_share == 0
    assert metrics.logprob_gap_mean < 1e-6
    assert metrics.entropy == pytest.approx(-sum(before) / metrics.tokens, rel=1e-5)
    assert metrics.grad_norm > 0


def test_groups_without_a_difference_leave_no_trace(small_model, make_rows):
    rows = on_policy(small_model, make_rows(6))
    dead = [replace(row, advantage=0.0, prompt=row.prompt + 10) for row in rows[:4]]
    twin = build_model(ModelShape(61, 32, 2, 4, 2, 16, 48, 128), 0)
    twin.load_state_dict(small_model.state_dict())
    plain = update_policy(TorchTrainer(small_model), rows)
    mixed = update_policy(TorchTrainer(twin), dead + rows)
    assert (mixed.live_groups, mixed.dead_groups, mixed.loss) == (3, 1, plain.loss)
    assert torch.equal(twin.model.embed_tokens.weight, small_model.model.embed_tokens.weight)
    weights = small_model.model.embed_tokens.weight.detach().clone()
    nothing = update_policy(TorchTrainer(small_model), dead)
    assert (nothing.tokens, nothing.live_groups, nothing.dead_groups) == (0, 0, 1)
    assert torch.equal(weights, small_model.model.embed_tokens.weight)


def test_one_perturbed_weight_after_the_push_shows_in_the_logprob_gap(small_model, make_rows):
    rows = on_policy(small_model, make_rows(7))
    with torch.no_grad():
        small_model.model.layers[0].mlp.down_proj.weight[0, 0] += 0.5
    assert update_policy(TorchTrainer(small_model), rows).logprob_gap_mean > 1e-4


class Lookups(TorchDispatchMode):
    """Counts the ids looked up in one embedding: what went through a forward, whoever ran it."""

    def __init__(self, table):
        super().__init__()
        self.table, self.count = table, 0

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        if operation is torch.ops.aten.embedding.default and args[0].data_ptr() == self.table.data_ptr():
            self.count += args[1].numel()
        return operation(*args, **(kwargs or {}))


@pytest.mark.parametrize("name", LOSSES)
def test_a_step_runs_one_forward_per_token_and_none_for_old_logprobs(small_model, make_rows, name):
    rows = with_topk(on_policy(small_model, make_rows(8)))
    prefixes = {tuple(row.ids[: t + 1].tolist()) for row in rows for t in range(len(row.ids))}
    trainer = TorchTrainer(small_model)
    with Lookups(small_model.model.embed_tokens.weight) as seen:
        update_policy(trainer, rows, UpdateSpec(resolve_loss(name)))
    assert seen.count == len(prefixes)  # equal prefixes of a Group once
    assert trainer.tokens_forwarded == sum(len(row.ids) for row in rows)


def test_old_logprobs_asked_for_apart_would_double_the_forwards(small_model, make_rows):
    rows = on_policy(small_model, make_rows(8))
    trainer = TorchTrainer(small_model)
    with Lookups(small_model.model.embed_tokens.weight) as seen:
        old = trainer.forward_logprobs(rows)
        once = seen.count
        rows = [replace(row, old_logprobs=values) for row, values in zip(rows, old, strict=True)]
        update_policy(trainer, rows, UpdateSpec(resolve_loss("ppo")))
    assert seen.count == 2 * once


def test_ranks_that_split_a_step_add_up_to_its_gradient(small_model, make_rows):
    rows, spec = make_rows(16), UpdateSpec()
    weights = row_weights(rows, spec)
    whole, expected = gradient(small_model, rows, spec)
    lengths = [len(row.ids) for row in rows]
    plan = balance(pack(lengths, 60), 3, lengths=lengths)
    summed = {name: torch.zeros_like(tensor) for name, tensor in expected.items()}
    losses = []
    for rank in plan:
        mine = [i for bin_ in rank for i in bin_]
        trainer = TorchTrainer(small_model, tokens_per_micro_batch=60)
        losses.append(trainer.forward_backward([rows[i] for i in mine], [weights[i] for i in mine], spec.loss).loss)
        for name, parameter in small_model.named_parameters():
            summed[name] += parameter.grad
        small_model.zero_grad()
    assert sum(losses) == pytest.approx(whole.loss, abs=1e-5)
    for name, tensor in expected.items():
        assert torch.allclose(summed[name], tensor, atol=3e-6, rtol=1e-3), name


def test_a_trust_region_over_the_likeliest_tokens_drops_by_both_sides_of_them(small_model, make_rows):
    rows = on_policy(small_model, make_rows(8))
    own = TorchTrainer(small_model)
    ids = [np.tile(np.arange(5, dtype=np.int32), (len(row.ids), 1)) for row in rows]
    asked = [np.stack([shifted_logprobs(own, row, i) for i in range(5)], 1) for row in rows]
    same = [replace(r, topk_ids=i, topk_logprobs=a) for r, i, a in zip(rows, ids, asked, strict=True)]
    spec = UpdateSpec(resolve_loss("dppo_topk", params={"divergence": "kl", "delta_low": 1e-4, "delta_high": 1e-4}))
    assert gradient(small_model, same, spec)[0].counts["dropped/high"] == 0
    far = [replace(r, logprobs=r.logprobs - 0.1 * r.mask, topk_logprobs=r.topk_logprobs - 2) for r in same]
    metrics = gradient(small_model, far, spec)[0]
    gained = sum(int(row.mask.sum()) for row in rows if row.advantage > 0)
    assert metrics.counts["dropped/high"] == gained
    with pytest.raises(InputError, match="topk"):
        gradient(small_model, [same[0], *rows[1:]], spec)


def shifted_logprobs(trainer, row, token):
    """float32 [tokens]: what the policy gives one token at each trained place of the row."""
    out = np.zeros(len(row.ids), dtype=np.float32)
    for place in np.flatnonzero(row.mask):
        ids = row.ids[: place + 1].copy()
        ids[place] = token
        mask = np.zeros(place + 1, dtype=np.uint8)
        mask[place] = 1
        out[place] = trainer.forward_logprobs([replace(row, ids=ids, mask=mask)])[0][place]
    return out


def test_advantages_of_tokens_stand_in_for_that_of_the_trial(small_model, make_rows):
    rows = make_rows(17)
    spread = [replace(r, token_advantages=np.full(len(r.ids), r.advantage, np.float32)) for r in rows]
    assert all(
        torch.equal(a, b) for a, b in zip(*(gradient(small_model, x)[1].values() for x in (rows, spread)), strict=True)
    )
    steps = [
        replace(r, advantage=0.0, token_advantages=np.where(np.arange(len(r.ids)) % 2, 1, 0).astype(np.float32))
        for r in rows
    ]
    assert len(live_rows(steps)) == len(rows)
    unmasked = [replace(r, advantage=0.0, token_advantages=(1 - r.mask).astype(np.float32)) for r in rows]
    assert live_rows(unmasked) == []


def test_given_old_logprobs_are_used_and_must_be_complete(small_model, make_rows):
    rows, spec = on_policy(small_model, make_rows(9)), UpdateSpec(resolve_loss("ppo"))
    shifted = [replace(row, old_logprobs=row.logprobs - 1) for row in rows]
    metrics, _ = gradient(small_model, shifted, spec)  # every ratio is e: above the clip
    positive = sum(int(row.mask.sum()) for row in rows if row.advantage > 0)
    assert metrics.counts["dropped/high"] == positive
    with pytest.raises(InputError, match="old_logprobs"):
        gradient(small_model, [shifted[0], *rows[1:]], spec)


def test_a_row_of_unequal_columns_is_refused(small_model, make_rows):
    row = make_rows(10)[0]
    with pytest.raises(InputError, match=r"rows\[0\]"):
        update_policy(TorchTrainer(small_model), [replace(row, logprobs=row.logprobs[:-1])])


def test_a_saved_trainer_continues_to_the_bit(small_model, make_rows, tmp_path):
    rows = on_policy(small_model, make_rows(11))
    first = TorchTrainer(small_model)
    update_policy(first, rows)
    first.save_state(tmp_path, {"step": 1})
    update_policy(first, rows)
    second = TorchTrainer(build_model(ModelShape(61, 32, 2, 4, 2, 16, 48, 128), 99))
    assert second.load_state(latest(tmp_path)) == {"step": 1}
    update_policy(second, rows)
    assert second.steps == 2
    assert torch.equal(second.model.model.embed_tokens.weight, small_model.model.embed_tokens.weight)
    with pytest.raises(InputError, match=r"config\.json:hidden_size.*found 32.*48"):
        TorchTrainer(build_model(ModelShape(61, 48, 2, 4, 2, 16, 48, 128), 0)).load_state(latest(tmp_path))


def test_an_engine_keeps_its_weights_when_the_trainer_steps_on(small_model, make_rows):
    class Receiver:
        def update_weights(self, state, version):
            self.state, self.version = state, version

    engine, trainer = Receiver(), TorchTrainer(small_model)
    trainer.push_weights(engine, 3)
    before = small_model.model.embed_tokens.weight.detach().clone()
    update_policy(trainer, make_rows(12))
    assert engine.version == 3
    assert torch.equal(engine.state["model.embed_tokens.weight"], before)
    assert not torch.equal(small_model.model.embed_tokens.weight, before)


def engine_rows(engine, rows):
    """The rows with the logprobs that an engine gives their ids."""
    values = engine.forward_logprobs([row.ids.tolist() for row in rows])
    return [replace(row, logprobs=lp * row.mask) for row, lp in zip(rows, values, strict=True)]


def test_engine_and_trainer_agree_until_one_weight_differs(small_model, make_rows):
    engine = EmbeddedEngine(small_model.config.to_dict(), small_model.state_dict(), rows=2, max_len=64)
    trainer, rows = TorchTrainer(small_model), make_rows(14)
    update_policy(trainer, rows)
    stale = gradient(small_model, engine_rows(engine, rows))[0]
    assert stale.abs_gaps.mean() > 1e-4
    trainer.push_weights(engine, 1)
    fresh = gradient(small_model, engine_rows(engine, rows))[0]
    assert fresh.abs_gaps.max() < 1e-5
    with torch.no_grad():
        small_model.model.layers[1].self_attn.v_proj.weight[0, 0] += 0.5
    perturbed = gradient(small_model, engine_rows(engine, rows))[0]
    assert perturbed.abs_gaps.mean() > 1e-4


def test_a_logprob_that_is_not_a_number_cannot_hide_in_the_gap(small_model, make_rows):
    rows = make_rows(15)
    spoilt = rows[0].logprobs.copy()
    spoilt[-1] = np.nan
    trainer = TorchTrainer(small_model, tokens_per_micro_batch=30)
    rows = [replace(rows[0], logprobs=spoilt), *rows[1:]]
    metrics = trainer.forward_backward(rows, row_weights(rows, UpdateSpec()), UpdateSpec().loss)
    assert np.isnan(metrics.abs_gaps.max())
    with pytest.raises(GradientNotFinite):
        trainer.optim_step()


def test_more_threads_inside_the_update_leave_the_setting_outside_alone(small_model, make_rows):
    rows = on_policy(small_model, make_rows(13))
    one, two = TorchTrainer(small_model), TorchTrainer(small_model, train_threads=2)
    expected, got = one.forward_logprobs(rows), two.forward_logprobs(rows)
    assert torch.get_num_threads() == 1
    assert all(np.abs(a - b).max() < 1e-5 for a, b in zip(expected, got, strict=True))
