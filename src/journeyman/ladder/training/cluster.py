"""The Ray cluster that trials run on: joined where one runs, started on this host where none does."""

from __future__ import annotations

import os
from typing import Any

from journeyman.errors import EnvironmentMissing

LOCAL = "local"
"""Address of a cluster of this host alone, which ends with the process that joined it."""


def connect(address: str | None) -> dict[str, Any]:
    """Join a cluster; returns its resources. Joining twice is no error.

    Args:
        address: of a running cluster; None takes RAY_ADDRESS, and without that starts one on this host.

    Raises:
        EnvironmentMissing: Ray is not installed, or nothing answers at the address.
    """
    try:
        import ray
    except ImportError as error:
        raise EnvironmentMissing("rollout.executor ray needs Ray: pip install 'journeyman[scale]'") from error
    where = address or os.environ.get("RAY_ADDRESS") or LOCAL
    if not ray.is_initialized():
        options = {"include_dashboard": False} if where == LOCAL else {}
        try:
            ray.init(address=where, log_to_driver=False, **options)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise EnvironmentMissing(f"no Ray cluster answers at {where}: {error}") from error
    resources: dict[str, Any] = ray.cluster_resources()
    return resources
