"""Executors: where the process of a trial runs. All of them end every trial in exactly one row of the error table.

Promise: an executor never decides what a failure means: the table (``trials/outcome.py``) does. ``inline`` makes
each trial a thread of this process; ``process`` forks one process per trial from a supervisor that never loads torch;
``ray`` makes each trial one Ray task. The engine stays with its owner: trials ask for their turns over a socket.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def _inline() -> Callable[..., Any]:
    from journeyman.trials.executors.threads import ThreadExecutor

    return ThreadExecutor


def _process() -> Callable[..., Any]:
    from journeyman.trials.executors.process import ProcessExecutor

    return ProcessExecutor


def _ray() -> Callable[..., Any]:
    from journeyman.trials.executors.ray_tasks import RayExecutor

    return RayExecutor


#: name -> what imports and returns the class.
EXECUTORS: dict[str, Callable[[], Callable[..., Any]]] = {"inline": _inline, "process": _process, "ray": _ray}
