"""An owner that can be killed: runs the trials of a plan into a run directory, or goes on with them.

python chaos_run.py PLAN.json
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

from trial_faults import FaultyEngine, FaultyGrader
from trial_places import requests_of

from journeyman.sandbox import PROVIDERS
from journeyman.sandbox.protocol import AgentEnvironment
from journeyman.tasks.task import load_task
from journeyman.tasks.verify import BatchVerifier
from journeyman.trials.executors.process import ProcessExecutor
from journeyman.trials.executors.protocol import WorkplaceRecipe
from journeyman.trials.limits import Limits
from journeyman.trials.store import Owner


def main(path: Path) -> None:
    plan = json.loads(path.read_text())
    place = plan["place"]
    tasks = [replace(load_task(Path(task)), agent_timeout_s=plan["limits"]["agent_s"]) for task in plan["tasks"]]
    requests = requests_of(tasks, plan["samples"])[: plan["trials"]]
    scripts = {request.trial_id: plan["scripts"][request.task.id] for request in requests}
    provider = PROVIDERS[place["provider"]]()
    provider.reap(place["label"])
    environment = AgentEnvironment(Path(place["environment"]), place["digest"])
    faults = {"fault_seed": plan["seed"], "rate": plan["rate"]}
    kinds = {"kinds": plan["kinds"]}
    with (
        Owner(Path(plan["out"])) as owner,
        BatchVerifier(provider, environment, place["label"], waive=frozenset(place["waive"])) as verifier,
        ProcessExecutor(
            FaultyEngine(scripts, **faults, **kinds),
            WorkplaceRecipe("trial_faults:FaultyPlace", {**place, **faults, **kinds}),
            seed=plan["seed"],
            limits=Limits(**plan["limits"]),
            concurrency=plan["concurrency"],
            max_attempts=plan["max_attempts"],
            supervisors=plan["supervisors"],
            owner=owner,
        ) as executor,
    ):
        executor.run(requests, FaultyGrader(verifier, fault_seed=plan["seed"], rate=plan["rate"]))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
