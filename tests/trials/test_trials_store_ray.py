"""Two Ray nodes with disjoint run directories, one killed with its disk: nothing acknowledged is lost."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from store_trials import columns_of, store_hot

from journeyman.trials.store import Owner, open_run
from journeyman.trials.store.columns import equal
from journeyman.trials.store.index import FILE, read_index
from journeyman.trials.store.transfer import bundle

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # Ray's own, on import and while a node dies
]
LIMIT_S = 120


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A head without CPUs and two nodes, ``a`` and ``b``, as three raylets of this machine."""
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]))
    given = {"object_store_memory": 100 << 20}
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False, **given})
    nodes = {name: cluster.add_node(num_cpus=2, resources={name: 10}, **given) for name in "ab"}
    ray.init(address=cluster.address, log_to_driver=False)
    try:
        yield cluster, nodes
    finally:
        ray.shutdown()
        cluster.shutdown()


def run_trial(node_disk: str, trial_id: str) -> bytes:
    """One trial as a node runs it: written on its own disk, closed, and handed to the owner as a bundle."""
    return bundle(store_hot(Path(node_disk), trial_id))


def test_nothing_acknowledged_is_lost_when_a_node_dies_with_its_disk(cluster: Any, tmp_path: Path) -> None:
    import ray

    started, nodes = cluster
    disks = {name: tmp_path / f"node-{name}" for name in "ab"}
    task = ray.remote(run_trial)
    waiting = {
        task.options(num_cpus=1, resources={name: 1}, max_retries=0).remote(str(disks[name]), f"{name}/task/{n}"): (
            f"{name}/task/{n}"
        )
        for n in range(40)
        for name in "ab"
    }
    acknowledged: list[str] = []
    lost: list[str] = []
    with Owner(tmp_path / "run") as owner:
        while waiting:
            ready, _ = ray.wait(list(waiting), num_returns=1, timeout=LIMIT_S)
            assert ready, "no trial came back in time"
            trial_id = waiting.pop(ready[0])
            try:
                owner.receive(ray.get(ready[0], timeout=LIMIT_S))
            except ray.exceptions.RayError:
                lost.append(trial_id)
                continue
            acknowledged.append(trial_id)
            if sum(name.startswith("b/") for name in acknowledged) == 8 and nodes["b"] is not None:
                started.remove_node(nodes["b"], allow_graceful=False)
                nodes["b"] = None
                shutil.rmtree(disks["b"])
                for reference in [ref for ref, name in waiting.items() if name.startswith("b/")]:
                    ray.cancel(reference, force=True)  # nobody has the resource "b" any more
    assert {name for name in acknowledged if name.startswith("a/")} == {f"a/task/{n}" for n in range(40)}
    assert len(lost) > 0
    shutil.rmtree(disks["b"], ignore_errors=True)  # a worker may outlive its node by a moment, and write
    rows = list(read_index(tmp_path / "run" / FILE) or ())
    assert {row.trial_id for row in rows} == set(acknowledged)
    reading = open_run(tmp_path / "run")
    for trial_id in acknowledged:
        assert equal(reading.trajectory(trial_id), columns_of(trial_id))
    with Owner(tmp_path / "run") as owner:
        owner.rebuild()
    assert list(read_index(tmp_path / "run" / FILE) or ()) == rows
    assert {path.name for path in disks["a"].glob("trials/*/*")} >= {
        path.name for path in (tmp_path / "run").glob("trials/*/a-*")
    }
