"""The ranks of a group as Ray actors, one per bundle of a placement group, in the order of the nodes they landed on.

An actor's process runs a rank as torchrun would start it. A node that dies takes its ranks' connections with it, which
the front sees at once; nothing is restarted here: the run goes on from its last checkpoint with a new group.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping

from journeyman.errors import DeadlinePassed, EnvironmentMissing
from journeyman.train.backends.spec import BackendSpec


def place(spec: BackendSpec, environment: Mapping[str, str]) -> Callable[[], None]:
    """Start every rank of ``spec.layout`` on the Ray cluster this process belongs to; the result ends them.

    Args:
        spec: with ``device = "cuda"`` each rank has one GPU.
        environment: what a rank needs to find the front.

    Raises:
        EnvironmentMissing: Ray is not installed, or no cluster is there. DeadlinePassed: it has no room in time.
    """
    try:
        import ray
        from ray.util.placement_group import placement_group, remove_placement_group
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy
    except ImportError as error:
        raise EnvironmentMissing("backend.layout.start = ray needs Ray: pip install 'ray>=2.40'") from error
    if not ray.is_initialized():
        try:
            ray.init(address="auto", log_to_driver=False)
        except ConnectionError as error:
            raise EnvironmentMissing("no Ray cluster is there to place trainer ranks on: ray start --head") from error
    bundle = {"CPU": float(spec.train_threads or 1)} | ({"GPU": 1.0} if spec.device == "cuda" else {})
    group = placement_group([bundle] * spec.layout.ranks, strategy="PACK")
    if not group.wait(spec.deadline_s):
        remove_placement_group(group)
        raise DeadlinePassed(f"room for {spec.layout.ranks} trainer ranks of {bundle}", spec.deadline_s)
    made = ray.remote(max_restarts=0, max_task_retries=0)(RankActor)
    actors = [
        made.options(
            num_cpus=bundle["CPU"],
            num_gpus=bundle.get("GPU", 0),
            scheduling_strategy=PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=index),
        ).remote()
        for index in range(spec.layout.ranks)
    ]

    def end() -> None:
        for actor in actors:
            ray.kill(actor, no_restart=True)
        remove_placement_group(group)

    try:
        where = ray.get([actor.where.remote() for actor in actors], timeout=spec.deadline_s)
        ordered = [actor for _, actor in sorted(zip(where, actors, strict=True), key=lambda pair: pair[0])]
        host, port = ray.get(ordered[0].meeting.remote(), timeout=spec.deadline_s)
    except Exception:
        end()
        raise
    common = dict(environment) | {"MASTER_ADDR": host, "MASTER_PORT": str(port), "WORLD_SIZE": str(len(ordered))}
    for rank, actor in enumerate(ordered):
        actor.run.remote(common | {"RANK": str(rank), "LOCAL_RANK": "0"})
    return end


class RankActor:
    """One rank's process on a node."""

    def where(self) -> tuple[str, int]:
        """Node and process: ranks are numbered in this order, neighbours on one node."""
        import ray

        return ray.get_runtime_context().get_node_id(), os.getpid()

    def meeting(self) -> tuple[str, int]:
        """Address and a free port of this node, where torch's processes meet."""
        import ray

        with socket.socket() as probe:
            probe.bind(("", 0))
            return ray.util.get_node_ip_address(), probe.getsockname()[1]

    def run(self, environment: Mapping[str, str]) -> int:
        """Serve the front until it goes."""
        from journeyman.train.backends.group.rank import main

        os.environ.update(environment)
        return main()
