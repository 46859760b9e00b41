"""A run over two Ray nodes of which one is killed while trials are under way on it: no trial is lost."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from trial_places import arguments_of, requests_of, scripts_of

from journeyman.engines.scripted import ScriptedEngine
from journeyman.ladder.workshop import Workshop
from journeyman.sandbox.reaper import traces
from journeyman.trials.executors.protocol import WorkplaceRecipe
from journeyman.trials.executors.ray_tasks import Placement, RayExecutor
from journeyman.trials.store import Owner

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # Ray's own, on import and while a node dies
SECONDS = 180


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A head without room and two nodes with room for two attempts each, as three raylets of this machine."""
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]))
    given = {"object_store_memory": 100 << 20}
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False, **given})
    nodes = [cluster.add_node(num_cpus=2, resources={"sandbox": 2}, **given) for _ in range(2)]
    ray.init(address=cluster.address, log_to_driver=False)
    try:
        yield cluster, nodes
    finally:
        ray.shutdown()
        cluster.shutdown()


def children(node: Any) -> list[int]:
    """The processes that the node's raylet started."""
    tasks = Path(f"/proc/{node.all_processes['raylet'][0].process.pid}/task")
    return [int(child) for task in tasks.iterdir() for child in (task / "children").read_text().split()]


def test_killing_a_node_loses_no_trial(cluster: Any, prepared: Workshop, tmp_path: Path) -> None:
    started, nodes = cluster
    requests = requests_of(prepared.tasks("train")[:8])
    killed = threading.Event()
    marks = tmp_path / "marks"
    marks.mkdir()

    def kill_when_busy() -> None:
        until = time.monotonic() + SECONDS
        while time.monotonic() < until and not killed.is_set():
            inside = {int(mark.name) for mark in marks.iterdir()}
            if workers := inside & set(children(nodes[1])):
                for pid in workers:  # they would outlive their raylet by a moment; those of a lost machine do not
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                started.remove_node(nodes[1], allow_graceful=False)
                killed.set()
            time.sleep(0.05)

    thread = threading.Thread(target=kill_when_busy, daemon=True)
    place = WorkplaceRecipe("trial_slow:SlowPlace", {**arguments_of(prepared), "marks": str(marks)})
    with (
        prepared.verifier() as verifier,
        Owner(tmp_path / "run") as owner,
        RayExecutor(
            ScriptedEngine(scripts_of(prepared, requests)),
            place,
            seed=1,
            concurrency=4,
            owner=owner,
            placement=lambda request: Placement(cpus=1, resources={"sandbox": 1}),
        ) as executor,
    ):
        thread.start()
        trials = executor.run(requests, verifier)
    assert killed.is_set()
    last = {trial.request.trial_id: trial for trial in trials}
    assert last.keys() == {request.trial_id for request in requests}
    assert [trial.reward for trial in last.values()] == [1.0] * len(requests)
    lost = [trial for trial in trials if trial.reward is None]
    assert lost, "the node was killed while an attempt ran on it"
    assert all(trial.outcome is not None and trial.outcome.cause == "trial_lost" for trial in lost)
    assert not traces(prepared.label)
