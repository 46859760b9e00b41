"""The probe against a real engine and trainer: sound ones agree, and each planted fault is found."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from journeyman.engines.embedded import EmbeddedEngine
from journeyman.train.agreement.gate import IN_FLIGHT, LIMITS, OPENED, PUSHED, findings
from journeyman.train.agreement.probe import Plan, Probe
from journeyman.train.agreement.run import judge, move
from journeyman.train.backends.torch import TorchTrainer

pytestmark = pytest.mark.thorough

PLAN = Plan(vocab=61, trials=4, turns=2, prompt_tokens=16, append_tokens=6, new_tokens=12)
HEAD, EMBEDDING = "lm_head.weight", "model.embed_tokens.weight"


class Planted:
    """A real engine with one fault in front of it; everything else goes straight through."""

    def __init__(self, engine):
        self.engine = engine

    def __getattr__(self, name):
        return getattr(self.engine, name)


class StaleHead(Planted):
    """Loses the output head of every push, as a back-end that packs it apart does when a tied one is not sent."""

    def __init__(self, engine, head):
        super().__init__(engine)
        self.head = head

    def update_weights(self, source, version, **options):
        self.engine.update_weights({**source, HEAD: self.head}, version, **options)


class StalePrefix(Planted):
    """Says that it computes keys and values anew after a push, and keeps the old ones."""

    def update_weights(self, source, version, **options):
        self.engine.update_weights(source, version, **{**options, "kv": "keep"})


class WrongVersion(Planted):
    """Takes the new number and not the new weights."""

    def __init__(self, engine, state):
        super().__init__(engine)
        self.state = state

    def update_weights(self, source, version, **options):
        self.engine.update_weights(self.state, version, **options)


class Hotter(Planted):
    """Samples at another temperature than it was asked for."""

    def submit(self, request):
        self.engine.submit(replace(request, sampling=replace(request.sampling, temperature=1.3)))


class ShiftedMask(Planted):
    """Gives each token the logprob of its neighbour."""

    def step(self, deadline_s=60.0):
        return [replace(result, logprobs=np.roll(result.logprobs, 1)) for result in self.engine.step(deadline_s)]


@pytest.fixture
def state(small_model):
    return {name: tensor.detach().clone() for name, tensor in small_model.state_dict().items()}


@pytest.fixture
def engine(small_model, state):
    config = small_model.config.to_dict() | {"tie_word_embeddings": False}  # a copy of the head, as some engines keep
    return EmbeddedEngine(config, {**state, HEAD: state[EMBEDDING].clone()}, rows=12, max_len=120)


def measured(model, engine, plan=PLAN, size=0.02):
    generator = torch.Generator().manual_seed(3)
    trainer = TorchTrainer(model)
    before = [p.detach().clone() for p in model.parameters()]
    samples = Probe(engine, trainer, lambda: move(model, generator, size), plan).run()
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))  # put back
    return judge(samples, LIMITS["float32"])


def test_a_sound_pair_agrees_over_turns_pushes_and_a_push_within_a_turn(small_model, engine):
    outcome = measured(small_model, engine)
    found = outcome.found
    assert outcome.passed, outcome.findings
    assert found.whole.mean <= 1e-5 and found.whole.max <= 1e-4
    assert set(found.by_leg) == {OPENED, PUSHED, IN_FLIGHT} and set(found.by_version) == {0, 1, 2}
    assert found.mixed.n == 0 and found.whole.n == (4 * 2 + 4 + 4 * 2 + 4 * 3) * 12
    assert any(span.end - span.start < 12 for span in found.spans)  # the push really came within turns


@pytest.mark.parametrize("fault", ["stale head", "stale prefix", "wrong version", "temperature", "shifted mask"])
def test_each_planted_fault_is_found(small_model, engine, state, fault):
    planted = {
        "stale head": lambda: StaleHead(engine, state[EMBEDDING].clone()),
        "stale prefix": lambda: StalePrefix(engine),
        "wrong version": lambda: WrongVersion(engine, {**state, HEAD: state[EMBEDDING].clone()}),
        "temperature": lambda: Hotter(engine),
        "shifted mask": lambda: ShiftedMask(engine),
    }[fault]()
    outcome = measured(small_model, planted)
    assert not outcome.passed
    if fault in ("stale head", "stale prefix", "wrong version"):  # nothing wrong before the first push
        assert outcome.found.by_leg[OPENED].mean <= 1e-5


def test_a_stale_head_below_the_published_line_is_found_by_what_the_push_added(small_model, engine, state):
    found = measured(small_model, StaleHead(engine, state[EMBEDDING].clone()), size=0.004).found
    assert found.whole.mean < LIMITS["bfloat16"].mean == 0.03  # the mean alone would let it pass
    assert any("after a push" in finding.condition for finding in findings(found, LIMITS["bfloat16"]))
