"""One RL step on the torch back-end: what moves the policy, what must not, and what is measured."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from journeyman.engines.embedded.engine import EmbeddedEngine
from journeyman.errors import InputError
from journeyman.train.backends.torch import TorchTrainer
from journeyman.train.checkpoint import latest
from journeyman.train.losses import LOSSES, resolve_loss
from journeyman.train.model import ModelShape, build_model
from journeyman.train.optimizer import GradientNotFinite
from journeyman.train.update import UpdateSpec, row_weights, update_policy


def on_policy(model, rows):
    """The rows with the model's own logprobs as rollout logprobs."""
    logprobs = TorchTrainer(model).forward_logprobs(rows)
    return [replace(row, logprobs=values) for row, values in zip(rows, logprobs, strict=True)]


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
    rows, spec = make_rows(4), UpdateSpec(resolve_loss(name))
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


def test_a_step_runs_one_forward_per_token_and_none_for_old_logprobs(small_model, make_rows):
    rows = on_policy(small_model, make_rows(8))
    for name in LOSSES:
        trainer = TorchTrainer(small_model)
        update_policy(trainer, rows, UpdateSpec(resolve_loss(name)))
        assert trainer.tokens_forwarded == sum(len(row.ids) for row in rows)


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
