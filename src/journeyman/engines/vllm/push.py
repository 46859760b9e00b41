"""New weights onto every server of an engine, all or none, while turns are under way.

pause(keep) -> start -> update -> finish(version) -> resume, on all servers at once. A server that is gone is left out;
any other failure takes every server back to the weights before, and one that cannot be brought back serves no turn.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Sequence

from journeyman.engines.errors import EngineError
from journeyman.engines.vllm import routes, wire
from journeyman.engines.vllm.export import WeightFile
from journeyman.engines.vllm.proof import PROBE, Sampled, same, sample_probe
from journeyman.engines.vllm.replica import CONTROL_S, Replica

__all__ = ["PROBE", "confirm", "load_all", "probe"]
_probe_numbers = itertools.count()


async def load_all(
    replicas: Sequence[Replica], file: WeightFile, before: WeightFile | None, deadline_s: float
) -> list[str]:
    """Load ``file`` on every living server; the servers are paused.

    Returns:
        Words about servers that were left out because they are gone.

    Raises:
        EngineError: at least one failed and the others were taken back, as far as possible; who is not, has
            ``served`` None.
    """
    living = [replica for replica in replicas if replica.alive or await replica.healthy()]
    done = await asyncio.gather(
        *(replica.load(str(file.path), file.sha256, file.version, deadline_s) for replica in living),
        return_exceptions=True,
    )
    failed = {replica: error for replica, error in zip(living, done, strict=True) if error is not None}
    gone = [replica for replica in failed if not await replica.healthy()]
    if any(replica not in gone for replica in failed) or len(failed) == len(living):
        left = [replica for replica in living if replica not in gone]
        await asyncio.gather(*(_restore(replica, before) for replica in left))
        first = next(iter(failed.values()), None)
        raise EngineError(f"the push of version {file.version} failed: {first or 'no server is left'}") from first
    for replica in living:
        replica.served = None if replica in gone else file.version
    return [f"{replica.url} is gone and was left out" for replica in gone]


async def _restore(replica: Replica, before: WeightFile | None) -> None:
    """Bring the weights before back; ``served`` is None where that fails. ``confirm`` looks at the result."""
    version, replica.served = replica.served, None
    if version is None:
        return
    with contextlib.suppress(EngineError):  # an update still open is closed first; none open is refused
        await replica.post(routes.FINISH, CONTROL_S, body={"weight_version": wire.label_of(version)})
    try:
        if before is not None:
            await replica.load(str(before.path), before.sha256, version, CONTROL_S)
        else:  # nothing was ever pushed: an update without tensors puts the loaded ones back
            await replica.post(routes.START)
            await replica.post(routes.FINISH, CONTROL_S, body={"weight_version": wire.label_of(version)})
    except EngineError:
        return
    replica.served = version


async def probe(replica: Replica, unlabelled: int) -> Sampled:
    """Sample the fixed prompt under a salt never used before."""
    return await sample_probe(replica, f"probe-{unlabelled}-{next(_probe_numbers)}", unlabelled)


async def confirm(replica: Replica, before: Sampled | None, tolerance: float) -> None:
    """After a failed push: a server that does not sample what it sampled before it serves no turn any more."""
    if replica.served is None or before is None:
        return
    try:
        now = await probe(replica, replica.served)
    except EngineError:
        replica.served = None
        return
    if not same(now, before, tolerance):
        replica.served = None
