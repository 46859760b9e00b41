"""What Harbor says, for the tests of conformance: run by Harbor's Python, prints one JSON document.

harbor_side.py version | tasks DIR... | atif FILE... | results FILE... | run TASK OUT [BWRAP AGENT] | template DIR
"""

from __future__ import annotations

import asyncio
import json
import sys
from importlib.metadata import version
from pathlib import Path


def tasks(*names: str) -> object:
    from harbor.models.task.config import TaskConfig
    from harbor.models.task.task import Task

    found = {}
    for name in names:
        config = TaskConfig.model_validate_toml((Path(name) / "task.toml").read_text())
        found[name] = {"config": config.model_dump(mode="json"), "is_valid": Task.is_valid_dir(name)}
    return found


def atif(*names: str) -> object:
    from harbor.models.trajectories.trajectory import Trajectory

    return {n: Trajectory.model_validate_json(Path(n).read_text()).to_json_dict() for n in names}


def atif_accepts(*names: str) -> object:
    from harbor.models.trajectories.trajectory import Trajectory
    from pydantic import ValidationError

    def accepts(name: str) -> bool:
        try:
            Trajectory.model_validate_json(Path(name).read_text())
        except ValidationError:
            return False
        return True

    return {name: accepts(name) for name in names}


def results(*names: str) -> object:
    from harbor.models.trial.result import TrialResult

    return {n: TrialResult.model_validate_json(Path(n).read_text()).model_dump(mode="json") for n in names}


def run(task: str, out: str, bwrap: str = "bwrap", agent: str = "") -> object:
    from harbor.models.trial.config import AgentConfig, EnvironmentConfig, TaskConfig, TrialConfig
    from harbor.trial.trial import Trial

    kwargs = {"bwrap": bwrap, "agent": agent or None}
    config = TrialConfig(
        task=TaskConfig(path=Path(task)),
        trial_name=f"{Path(task).name}__oracle",
        trials_dir=Path(out),
        agent=AgentConfig(name="oracle"),
        environment=EnvironmentConfig(import_path="harbor_bwrap:BwrapEnvironment", kwargs=kwargs),
    )

    async def whole() -> object:
        return await (await Trial.create(config)).run()

    return asyncio.run(whole()).model_dump(mode="json")


def template(directory: str) -> object:
    """A task in Harbor's own words: its template, its writer of task.toml."""
    import shutil

    import harbor
    from harbor.models.task.config import EnvironmentConfig, PackageInfo, TaskConfig, VerifierConfig

    root = Path(directory)
    shutil.copytree(Path(harbor.__file__).parent / "cli" / "template-task", root)
    shutil.rmtree(root / "pytest-tests", ignore_errors=True)
    shutil.rmtree(root / "shared-pytest-tests", ignore_errors=True)
    config = TaskConfig(
        task=PackageInfo(name="lab/hello", description="write a file"),
        metadata={"difficulty": "easy"},
        verifier=VerifierConfig(timeout_sec=30),
        environment=EnvironmentConfig(workdir="/app"),
    )
    (root / "task.toml").write_text(config.model_dump_toml())
    (root / "instruction.md").write_text("Write 'Hello, world!' to hello.txt.\n")
    (root / "solution" / "solve.sh").write_text("#!/bin/sh\necho 'Hello, world!' > hello.txt\n")
    (root / "tests" / "test.sh").write_text(
        "#!/bin/sh\nif grep -qx 'Hello, world!' /app/hello.txt; then r=1; else r=0; fi\n"
        "echo $r > /logs/verifier/reward.txt\nexit 3\n"  # the status is ignored where there is a reward
    )
    (root / "tests" / "Dockerfile").unlink(missing_ok=True)
    return config.model_dump(mode="json")


COMMANDS = {f.__name__: f for f in (tasks, atif, atif_accepts, results, run, template)}


if __name__ == "__main__":
    command, *arguments = sys.argv[1:]
    if command == "version":
        print(json.dumps({"harbor": version("harbor"), "python": sys.version.split()[0]}))
    else:
        print(json.dumps(COMMANDS[command](*arguments)))
