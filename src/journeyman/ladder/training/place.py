"""What trials of any task set need on this machine, made once by the trainer's process: environment, read documents."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from journeyman.errors import InputError
from journeyman.sandbox import PROVIDERS
from journeyman.sandbox.environment import build_environment
from journeyman.tasks.task import load_task
from journeyman.tools import ReadCache
from journeyman.tools.agent_environment import AGENT_DISTRIBUTIONS, AGENT_PACKAGES, AGENT_PROGRAMS
from journeyman.tools.workbench import tools_environment
from journeyman.train.rollouts import RolloutSection
from journeyman.trials.plan import FRAMING
from journeyman.trials.world_documents import documents_of


def find_tasks(paths: Sequence[Path], where: str) -> list[Path]:
    """The task directories that paths name or hold, in order, each once.

    Raises:
        InputError: a path holds none.
    """
    found: dict[Path, None] = {}
    for path in paths:
        inside = [path] if (path / "task.toml").is_file() else sorted(p.parent for p in path.glob("*/task.toml"))
        if not inside:
            raise InputError(f"{where}: {path}", "holds no task", allowed="a task directory or a directory of them")
        found.update(dict.fromkeys(directory.absolute() for directory in inside))
    return list(found)


def make_place(
    rollout: RolloutSection, tasks: Sequence[Path], tokenizer: Path, out: Path, label: str
) -> dict[str, Any]:
    """Arguments of ``workplaces.TaskPlace`` for a policy on some tasks; builds what is missing below ``out``.

    Args:
        tokenizer: its directory.
        label: owner of every sandbox.

    Raises:
        EnvironmentMissing: the sandbox or a distribution is missing here.
    """
    is_own = rollout.harness.startswith(FRAMING)
    place: dict[str, Any] = {
        "label": label,
        "provider": rollout.sandbox,
        "policy": "model",
        "tokenizer": str(tokenizer),
        "max_context": rollout.max_context,
        "waive": sorted(rollout.waive),
        "with_sandbox": not is_own,
    }
    if not is_own:
        environment = tools_environment(out / "environment")
        return {**place, "environment": str(environment.path), "digest": environment.digest}
    environment = build_environment(
        out / "environment", distributions=AGENT_DISTRIBUTIONS, packages=AGENT_PACKAGES, programs=AGENT_PROGRAMS
    )
    provider = PROVIDERS[rollout.sandbox]()
    cache = ReadCache(out / "reads", provider, environment, label, waive=frozenset(rollout.waive))
    cache.fill(documents_of([load_task(path) for path in tasks]))
    return {**place, "environment": str(environment.path), "digest": environment.digest, "reads": str(cache.directory)}
