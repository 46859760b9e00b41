"""The Ray executor: one task per attempt, the same trials, and a killed worker that is retried by the table alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from trial_faults import fault_of
from trial_places import arguments_of, requests_of, scripts_of

from journeyman.engines.scripted import ScriptedEngine
from journeyman.ladder.workshop import Workshop
from journeyman.sandbox.reaper import traces
from journeyman.trials.executors.protocol import WorkplaceRecipe
from journeyman.trials.executors.ray_tasks import Placement, RayExecutor
from journeyman.trials.store import Owner, open_run

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    ray = pytest.importorskip("ray")
    path = str(Path(__file__).parent)
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        object_store_memory=100 * 2**20,
        resources={"sandbox": 4},
        runtime_env={"env_vars": {"PYTHONPATH": path, "RAY_USAGE_STATS_ENABLED": "0"}},
    )
    yield ray
    ray.shutdown()


def test_trials_as_ray_tasks_end_as_anywhere_and_broken_workers_are_retried_by_the_table(
    cluster: Any, prepared: Workshop, tmp_path: Path
) -> None:
    requests = requests_of(prepared.tasks("train")[:4])
    first = requests[0].trial_id

    def breaks_first_alone(seed: int) -> bool:
        broken = [fault_of(seed, r.trial_id, a, 0.2, ["exit"]) for r in requests for a in (1, 2)]
        return broken[0] == "exit" and not any(broken[1:])

    seed = next(seed for seed in range(100_000) if breaks_first_alone(seed))
    faults = {"fault_seed": seed, "rate": 0.2, "kinds": ["exit"]}
    place = WorkplaceRecipe("trial_faults:FaultyPlace", {**arguments_of(prepared), **faults})
    with (
        prepared.verifier() as verifier,
        Owner(tmp_path / "run") as owner,
        RayExecutor(
            ScriptedEngine(scripts_of(prepared, requests)),
            place,
            seed=1,
            concurrency=4,
            owner=owner,
            placement=lambda request: Placement(cpus=0.5, resources={"sandbox": 1}),
        ) as executor,
    ):
        trials = executor.run(requests, verifier)
    assert [(t.request.trial_id, t.attempt, t.reward) for t in trials] == [
        (first, 1, None),
        (first, 2, 1.0),
        *((request.trial_id, 1, 1.0) for request in requests[1:]),
    ]
    assert trials[0].outcome is not None
    assert trials[0].outcome.cause == "trial_lost"
    with open_run(tmp_path / "run") as run:
        assert len(run.trials()) == 5
    assert not traces(prepared.label)
