"""The trainer on a Tinker-compatible service: the same gradient as here, once per request, an end by every deadline."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from backend_cases import Keeper, step_rows, worst_gap, write_model
from tinker_fake import FakeTinker

from journeyman.engines.embedded.engine import EmbeddedEngine
from journeyman.errors import EnvironmentMissing, InputError
from journeyman.train.backends.spec import BackendSpec, LoraSpec, ServiceSpec
from journeyman.train.backends.table import make_trainer
from journeyman.train.backends.tinker.client import ServiceGone, ServiceRefused
from journeyman.train.losses import resolve_loss
from journeyman.train.optimizer import OptimizerSpec
from journeyman.train.transfer.manifest import TransferFailed
from journeyman.train.update import UpdateSpec, row_weights, update_policy

RATE = OptimizerSpec(lr=1e-3)
LORA = LoraSpec(rank=4)


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return write_model(tmp_path_factory.mktemp("model"))


@pytest.fixture
def service(directory, tmp_path):
    with FakeTinker(directory, tmp_path / "service") as fake:
        yield fake


def opened(service, directory, **options):
    spec = BackendSpec(
        name="tinker",
        lora=LORA,
        service=ServiceSpec(url=service.url, base_model="tiny"),
        **{"deadline_s": 30.0, **options},
    )
    return make_trainer(spec, directory, RATE)


@pytest.fixture
def trainer(service, directory):
    made = opened(service, directory)
    yield made
    made.close()


@pytest.mark.parametrize("name", ["dppo_tv", "glm5", "ppo", "cispo", "gspo", "reinforce"])
def test_any_loss_has_the_gradient_it_has_here(service, trainer, directory, name):
    rows, spec = step_rows(1), UpdateSpec(resolve_loss(name))
    here = make_trainer(BackendSpec(lora=LORA), directory, RATE)
    there = next(iter(service.models.values()))
    with torch.no_grad():  # a product of 0 would hide half of the gradients
        for key, parameter in dict(here.model.named_parameters()).items():
            if "lora_B" in key:
                parameter.normal_(0, 0.05, generator=torch.Generator().manual_seed(len(key)))
                there.trained[key].copy_(parameter)
    weights = row_weights(rows, spec)
    expected = here.forward_backward(rows, weights, spec.loss)
    found = trainer.forward_backward(rows, weights, spec.loss)
    assert found.loss == pytest.approx(expected.loss, abs=1e-5)
    assert found.counts == expected.counts
    for key, parameter in here.model.named_parameters():
        if parameter.requires_grad:
            assert torch.allclose(there.trained[key].grad, parameter.grad, atol=3e-6, rtol=1e-3), key


def test_steps_state_and_weights_follow_those_of_this_process(service, trainer, directory, tmp_path):
    here = make_trainer(BackendSpec(lora=LORA), directory, RATE)
    for step in range(2):
        ours, theirs = update_policy(here, step_rows(step)), update_policy(trainer, step_rows(step))
        assert theirs.grad_norm == pytest.approx(ours.grad_norm, rel=1e-3)
    saved = trainer.save_state(tmp_path / "states", {"at": 2})
    pushed = {}
    for name, source in (("here", here), ("there", trainer)):
        source.push_weights(keeper := Keeper(), 2)
        pushed[name] = keeper.state
    assert worst_gap(pushed["here"], pushed["there"]) < 1e-4
    engine = EmbeddedEngine.from_directory(directory, max_len=64)
    trainer.push_weights(engine, 2)
    row = step_rows(5)[0]
    seen = engine.forward_logprobs([row.ids.tolist()])[0] * row.mask
    assert np.abs(seen - trainer.forward_logprobs([row])[0]).max() < 1e-4

    later = update_policy(trainer, step_rows(7)).loss
    assert trainer.load_state(saved) == {"at": 2}
    assert trainer.steps == 2
    assert update_policy(trainer, step_rows(7)).loss == pytest.approx(later, abs=1e-6)


def test_a_request_whose_answer_was_lost_is_done_once(service, trainer):
    update_policy(trainer, step_rows(2))
    service.seen.clear()
    service.break_next, service.busy_next = 3, 3
    update_policy(trainer, step_rows(3))
    assert [verb for verb, _ in service.seen] == ["forward", "forward_backward", "optim_step"]
    assert len({number for _, number in service.seen}) == 3


def test_a_service_that_never_answers_ends_the_verb_by_its_deadline(service, directory):
    trainer = opened(service, directory, deadline_s=1.0)
    service.stuck = True
    began = time.monotonic()
    with pytest.raises(ServiceGone, match="within 1 s"):
        trainer.forward_logprobs(step_rows(4))
    assert time.monotonic() - began < 5
    service.stuck = False
    trainer.close()


def test_what_the_service_refuses_is_not_asked_twice(service, trainer):
    service.fail_next = 1
    service.seen.clear()
    with pytest.raises(ServiceRefused, match="out of memory") as refused:
        trainer.forward_logprobs(step_rows(4))
    assert refused.value.status == 400
    assert len(service.seen) == 1


def test_a_missing_service_and_an_unknown_model_are_named(service, directory, monkeypatch):
    monkeypatch.delenv("TINKER_BASE_URL", raising=False)
    for url, error in (("", EnvironmentMissing), ("http://127.0.0.1:9", EnvironmentMissing)):
        spec = BackendSpec(name="tinker", lora=LORA, service=ServiceSpec(url=url), deadline_s=2.0)
        with pytest.raises(error, match=r"service"):
            make_trainer(spec, directory, RATE)
    spec = BackendSpec(name="tinker", lora=LORA, service=ServiceSpec(url=service.url, base_model="large"))
    with pytest.raises(InputError, match="tiny"):
        make_trainer(spec, directory, RATE)


def test_an_archive_that_would_write_elsewhere_is_refused(service, trainer):
    service.hostile = True
    with pytest.raises(TransferFailed, match="unpacked"):
        trainer.push_weights(Keeper(), 1)


def test_a_loss_that_needs_more_than_one_logprob_a_place_is_refused(trainer):
    rows = step_rows(6)
    with pytest.raises(InputError, match="dppo_topk"):
        trainer.forward_backward(rows, row_weights(rows, UpdateSpec()), resolve_loss("dppo_topk"))


def advantage_of(trainer, rows):
    """What the gradient raises: the logprobs of rows, each times its advantage."""
    found = trainer.forward_logprobs(rows)
    return sum(float(values.sum()) * row.advantage for values, row in zip(found, rows, strict=True))


@pytest.mark.slow
@pytest.mark.skipif(not os.environ.get("TINKER_TEST_URL"), reason="TINKER_TEST_URL names no service to test against")
def test_a_real_service_learns_what_the_fake_learns():
    """Needs TINKER_TEST_URL, and TINKER_TEST_MODEL: a directory with the weights of the service's base model."""
    directory = Path(os.environ["TINKER_TEST_MODEL"])
    service = ServiceSpec(url=os.environ["TINKER_TEST_URL"], base_model=os.environ.get("TINKER_TEST_NAME", ""))
    trainer = make_trainer(BackendSpec(name="tinker", lora=LORA, service=service), directory, OptimizerSpec(lr=1e-2))
    try:
        rows = step_rows(8)
        before = advantage_of(trainer, rows)
        for _ in range(4):
            update_policy(trainer, rows, UpdateSpec(resolve_loss("reinforce")))
        assert advantage_of(trainer, rows) > before
    finally:
        trainer.close()
