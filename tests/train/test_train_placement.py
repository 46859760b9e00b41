"""Trainer ranks on two Ray nodes: the steps of one process; a killed node ends the group, a smaller one goes on."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from backend_cases import pushed, step_rows, worst_gap, write_model

from journeyman.train.backends.group.wire import GroupLost
from journeyman.train.backends.spec import BackendSpec, LayoutSpec
from journeyman.train.backends.table import make_trainer
from journeyman.train.optimizer import OptimizerSpec
from journeyman.train.update import update_policy

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # Ray's own, on import and while a node dies
RATE = OptimizerSpec(lr=1e-3)


@pytest.fixture
def nodes(monkeypatch):
    """Two nodes with room for one rank each, as raylets of this machine."""
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    source = str(Path(__file__).parents[2] / "src")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([source, os.environ.get("PYTHONPATH", "")]))
    given = {"object_store_memory": 100 << 20}
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False, **given})
    made = [cluster.add_node(num_cpus=1, **given) for _ in range(2)]
    ray.init(address=cluster.address, log_to_driver=False)
    try:
        yield cluster, made
    finally:
        ray.shutdown()
        cluster.shutdown()


def opened(directory, ranks):
    layout = LayoutSpec(ranks=ranks, nodes=ranks, start="ray")
    spec = BackendSpec(name="fsdp2", layout=layout, dtype="float64", tokens_per_micro_batch=60, deadline_s=240.0)
    return make_trainer(spec, directory, RATE)


def test_a_killed_node_ends_the_group_and_a_smaller_one_goes_on_from_its_checkpoint(nodes, tmp_path):
    cluster, made = nodes
    directory = write_model(tmp_path / "model")
    here = make_trainer(BackendSpec(stock_forward=True, dtype="float64"), directory, RATE)
    wanted = [update_policy(here, step_rows(50 + step)).grad_norm for step in range(2)]
    trainer = opened(directory, 2)
    first = update_policy(trainer, step_rows(50))
    assert first.grad_norm == pytest.approx(wanted[0], abs=1e-6)
    saved = trainer.save_state(tmp_path / "states", {"at": 1})
    cluster.remove_node(made[1], allow_graceful=False)
    with pytest.raises(GroupLost):
        for step in range(5):
            update_policy(trainer, step_rows(60 + step))
    with opened(directory, 1) as smaller:
        assert smaller.load_state(saved) == {"at": 1}
        assert update_policy(smaller, step_rows(51)).grad_norm == pytest.approx(wanted[1], abs=1e-6)
        assert worst_gap(pushed(smaller), {n: p.detach() for n, p in here.model.named_parameters()}) < 1e-6
    assert np.isfinite(wanted).all()
