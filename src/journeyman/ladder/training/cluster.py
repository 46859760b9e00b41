"""The Ray cluster that trials run on: joined where one runs, started on this host where none does."""

from __future__ import annotations

import os
import socket
from typing import Any

from journeyman.errors import EnvironmentMissing

LOCAL = "local"
"""Address of a cluster of this host alone, which ends with the process that joined it."""

STORE_BYTES = 256 << 20
"""Object store of such a cluster: trials are told little and answer over sockets."""
ANSWER_S = 10.0
"""Until something must listen at a cluster's address."""


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
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        options = {"include_dashboard": False, "object_store_memory": STORE_BYTES} if where == LOCAL else {}
        _check_answers(where)
        try:
            ray.init(address=where, log_to_driver=False, **options)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise EnvironmentMissing(f"no Ray cluster answers at {where}: {error}") from error
    resources: dict[str, Any] = ray.cluster_resources()
    return resources


def _check_answers(address: str) -> None:
    """Refuse an address where nothing listens: Ray itself would try for minutes."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if not port.isdigit():
        return  # "local" and "auto" name no place
    try:
        socket.create_connection((host, int(port)), timeout=ANSWER_S).close()
    except OSError as error:
        raise EnvironmentMissing(f"no Ray cluster answers at {address}: {error}") from error
