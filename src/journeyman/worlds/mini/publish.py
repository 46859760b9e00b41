"""From a bound task to a Harbor directory (schema 1.4) that anyone can run, and from a world to its files.

The agent may see ``instruction.md`` and ``environment/``; truth, controls and plan lie under ``tests/``; the script
under ``solution/`` knows no value and has to read the files. World files and the agent's programs are hard links where
the file system allows it, so a thousand tasks take the room of their worlds. Nothing here is synced file by file:
whoever publishes a set decides when it is durable.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import journeyman.documents
from journeyman.digest import canonical_json
from journeyman.documents.commands import COMMANDS, PACKAGE
from journeyman.tasks.task_toml import SCHEMA_VERSION
from journeyman.tasks.toml_text import to_toml
from journeyman.worlds.mini.checks import answer
from journeyman.worlds.mini.protocol import BoundTask
from journeyman.worlds.mini.world import World

DELIVERABLE = answer.DELIVERABLE
VERIFIER_TIMEOUT_S, AGENT_TIMEOUT_S, BUILD_TIMEOUT_S = 60.0, 300.0, 600.0

TEST_SCRIPT = """\
#!/bin/sh
# Compares the deliverable with the truth; the verifier's sandbox alone holds both.
exec python3 -I -S "${TESTS_DIR:-/tests}/check.py"
"""

DOCKERFILE = """\
FROM python:3.11-slim
RUN pip install --no-cache-dir --target /opt/agent/lib openpyxl pdfplumber python-docx
COPY agent/ /opt/agent/
ENV PATH=/opt/agent/bin:$PATH
RUN chmod 755 /opt/agent/bin/* && mkdir -p /logs/artifacts
WORKDIR /ws
COPY world/ /ws/
"""

SOLUTION_HEAD = """\
#!/bin/sh
# Solves the task from its files, with the commands an agent has. Runs in the directory of the world.
set -eu
"""


def write_world(world: World, root: Path) -> Path:
    """Write the world's files to ``root/<world id>``; returns that directory. Raises OSError."""
    directory = root / world.id
    directory.mkdir(parents=True, exist_ok=True)
    for name, data in world.files.items():
        (directory / name).write_bytes(data)
    return directory


def agent_files() -> dict[str, bytes]:
    """The programs of the agent's environment for a container build: ``bin/<command>`` and ``lib/officedocs``."""
    package = Path(journeyman.documents.__file__).parent
    library = {f"lib/{PACKAGE}/{path.name}": path.read_bytes() for path in sorted(package.glob("*.py"))}
    return {**{f"bin/{name}": text.encode() for name, text in COMMANDS.items()}, **library}


def write_agent(root: Path) -> Path:
    """Write ``agent_files`` below ``root``; returns it. Raises OSError."""
    for name, data in agent_files().items():
        _write(root / name, data)
    return root


def publish(
    bound: BoundTask,
    world: World,
    out: Path,
    task_id: str,
    *,
    world_directory: Path | None = None,
    agent_directory: Path | None = None,
) -> Path:
    """Write one task directory ``out/<task id>``. Same arguments, same bytes.

    Args:
        bound: the task; its truth, controls and plan go under ``tests/``, its script under ``solution/``.
        world: the world it was bound to.
        out: parent directory.
        task_id: name of the directory.
        world_directory: where the world's files already lie, to be linked; None writes them.
        agent_directory: where the agent's programs already lie, to be linked; None writes them.

    Raises:
        OSError: the place cannot be written; what was written stays, so write into a staging directory.
    """
    directory = out / task_id
    for name, data in _own_files(bound, world).items():
        _write(directory / name, data)
    environment = directory / "environment"
    _link_or_write(world_directory, world.files, environment / "world")
    _link_or_write(agent_directory, agent_files(), environment / "agent")
    return directory


def _own_files(bound: BoundTask, world: World) -> dict[str, bytes]:
    """What belongs to the task alone, by relative path."""
    plan = [{"tool": step.tool, "arguments": dict(step.arguments)} for step in bound.plan]
    controls = [{"name": c.name, "answer": c.answer, "fails": c.fails} for c in bound.controls]
    truth = {"answer": bound.answer, "canary": world.canary}
    return {
        "task.toml": task_toml(bound, world).encode(),
        "instruction.md": bound.instruction.encode(),
        "environment/Dockerfile": DOCKERFILE.encode(),
        "solution/solve.sh": (SOLUTION_HEAD + "\n".join(bound.script) + "\n").encode(),
        "tests/plan.json": canonical_json({"plan": plan, "answer": bound.answer}),
        "tests/test.sh": TEST_SCRIPT.encode(),
        "tests/check.py": Path(answer.__file__).read_bytes(),
        "tests/truth.json": canonical_json(truth),
        "tests/controls.json": canonical_json(controls),
    }


def task_toml(bound: BoundTask, world: World) -> str:
    """``task.toml`` of a task of ours."""
    return to_toml(
        {
            "schema_version": SCHEMA_VERSION,
            "artifacts": [f"/logs/artifacts/{DELIVERABLE}"],
            "metadata": {
                "journeyman": {
                    "family": bound.family,
                    "world_id": world.id,
                    "split": world.split,
                    "world_digest": world.digest,
                    "deliverables": [DELIVERABLE],
                    "inputs": list(bound.inputs),
                }
            },
            "agent": {"timeout_sec": AGENT_TIMEOUT_S},
            "environment": {"build_timeout_sec": BUILD_TIMEOUT_S, "network_mode": "no-network"},
            "verifier": {"timeout_sec": VERIFIER_TIMEOUT_S},
        }
    )


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    if path.suffix == ".sh" or path.parent.name == "bin":
        path.chmod(0o755)


def _link_or_write(source: Path | None, files: Mapping[str, bytes], target: Path) -> None:
    for name, data in files.items():
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if source is None:
            _write(path, data)
            continue
        try:
            os.link(source / name, path)
        except OSError:
            _write(path, data)
