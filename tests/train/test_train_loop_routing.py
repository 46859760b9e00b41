"""The loop over a mixture of experts: what the engine recorded reaches the trainer, and its worth the record."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import transformers

from journeyman.train.backends.spec import BackendSpec
from journeyman.train.backends.stock import StockPolicy, padded
from journeyman.train.backends.table import make_trainer
from journeyman.train.loop.admission import AdmissionSpec
from journeyman.train.loop.gate import GateSpec
from journeyman.train.loop.protocol import Arrivals, FinishedTrial
from journeyman.train.loop.spec import LoopSpec
from journeyman.train.loop.synchronous import SyncLoop
from journeyman.train.metrics.sinks import Sinks
from journeyman.train.optimizer import OptimizerSpec
from journeyman.train.protocol import TrainRow


@pytest.fixture(scope="module")
def mixture(tmp_path_factory):
    torch.manual_seed(0)
    config = transformers.Qwen3MoeConfig(
        vocab_size=61, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=16,
        intermediate_size=48, moe_intermediate_size=24, num_experts=8, num_experts_per_tok=2, norm_topk_prob=True,
        initializer_range=0.15,
    )  # fmt: skip
    path = tmp_path_factory.mktemp("mixture")
    transformers.Qwen3MoeForCausalLM(config).save_pretrained(path)
    return path


class Mixture:
    """A source whose engine is the policy with gates that round otherwise, and which tells where each token went."""

    def __init__(self, path):
        self.model = transformers.AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32).eval()
        self.chosen, self.orders, self.version = [], [], 0
        for layer in self.model.model.layers:
            gate = layer.mlp.gate.weight
            gate.data.add_(0.01 * torch.randn(gate.shape, generator=torch.Generator().manual_seed(5)))
            layer.mlp.gate.register_forward_hook(lambda _, __, out: self.chosen.append(out[2].numpy().copy()))

    def update_weights(self, state, version):
        """Only the first push, of the weights it has: they are not what this source is about."""
        self.version = version

    def submit(self, orders):
        self.orders += orders

    def poll(self, wait_s):
        orders, self.orders = self.orders, []
        return Arrivals([self.trial(order, sample) for order in orders for sample in order.wanted])

    def trial(self, order, sample):
        rng = np.random.default_rng([order.position, sample])
        ids = rng.integers(0, 61, 24).astype(np.int32)
        mask = (np.arange(24) >= 8).astype(np.uint8)
        self.chosen.clear()
        batch = padded([TrainRow(ids, mask, np.zeros(24, np.float32), 0.0, 0)])
        with torch.no_grad():
            told = StockPolicy(self.model)(batch.ids, batch.at, batch.targets).numpy()
        logprobs = np.zeros(24, np.float32)
        logprobs[8:] = told
        versions = np.where(mask == 1, self.version, -1).astype(np.int32)
        experts = np.stack(self.chosen, 1).astype(np.uint8)
        reward = float(rng.random())
        return FinishedTrial(
            order.position, sample, ids, mask, logprobs, versions, reward, True, "none", {}, routed_experts=experts
        )

    def cancel(self, position): ...

    def limit(self, trials): ...

    def close(self): ...


def run(root, mixture, spec):
    loop = LoopSpec("moe", 0, 4, 4, GateSpec(AdmissionSpec(2, 0, 64), steps=1))
    trainer = make_trainer(spec, mixture, OptimizerSpec(lr=1e-3))
    return SyncLoop(root, loop, Mixture(mixture), trainer, Sinks(root)).run()


def test_recorded_experts_are_replayed_and_the_gap_is_reported_with_and_without(mixture, tmp_path):
    result = run(tmp_path / "replayed", mixture, BackendSpec(replay_routing=True))
    assert result.status == "done" and result.steps == 1
    first = result.records[0]
    assert first["policy/gap_mean"] < first["policy/gap_recomputed_mean"] / 1.5
    free = run(tmp_path / "free", mixture, BackendSpec())
    other = free.records[0]
    assert other["policy/gap_mean"] == pytest.approx(first["policy/gap_recomputed_mean"], rel=1e-3)
