"""The task directory that an imported, judged task becomes.

``environment/world`` holds what the agent sees, ``environment/apps_data`` the state of mail, chat and calendar, and
``tests`` the rubric and the source's own records. The script of the verifier gives no reward: only a judge can.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from journeyman.digest import sha256
from journeyman.durable import storage_error
from journeyman.errors import InputError
from journeyman.tasks.imports.archives import unpack
from journeyman.tasks.reward_file import read_plain_file
from journeyman.tasks.rubric import FILE, Rubric, rubric_json
from journeyman.tasks.task import load_task
from journeyman.tasks.task_toml import SCHEMA_VERSION
from journeyman.tasks.toml_text import to_toml

SUBSYSTEMS = {"filesystem": "environment/world", ".apps_data": "environment/apps_data"}
"""Top folder of a world or of a task's files -> where its content goes."""

NO_JUDGE = """\
#!/bin/sh
# A judge grades this task by rubric.json. This script cannot, and so it leaves no reward: not 0, none.
echo "this task is graded by a judge from tests/rubric.json; a script gives it no reward" >&2
exit 78
"""

DOCKERFILE = """\
FROM python:3.11-slim
RUN mkdir -p /logs/artifacts
WORKDIR /ws
COPY world/ /ws/
COPY apps_data/ /apps_data/
"""

MAX_JSON_BYTES = 512_000_000


@dataclass(frozen=True)
class JudgedTask:
    """What is known of a task that is to be imported.

    Attributes:
        id: name of its directory.
        prompt: what the agent is asked.
        family: the domain, for reports.
        worlds: directories with ``filesystem`` and ``.apps_data``, laid over each other in this order.
        rubric: its criteria.
        source: the records it was made of, as they are.
        agent_timeout_s: or None for none.
        linkable: files below it are nobody's but the import's, and tasks of one world may share them as hard links.
    """

    id: str
    prompt: str
    family: str
    world_id: str
    worlds: tuple[Path, ...]
    rubric: Rubric
    source: Mapping[str, Any]
    agent_timeout_s: float | None = None
    linkable: Path | None = None


@dataclass(frozen=True)
class Imported:
    """What an import made: the task directories, and one line per thing that was left or is odd."""

    tasks: tuple[Path, ...]
    warnings: tuple[str, ...] = ()


def write_judged(task: JudgedTask, out: Path) -> Path:
    """Write ``out/<id>``: seen as a whole or not at all; an existing one is replaced.

    Raises:
        InputError: no prompt, a name that is no directory name, or a link among its files.
        StorageError: the place cannot be written.
    """
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,200}", task.id):
        raise InputError("task_id", f"{task.id!r} is no directory name")
    final, staging = out / task.id, out / f".{task.id}.{os.getpid()}.tmp"
    try:
        shutil.rmtree(staging, ignore_errors=True)
        files = world_files(task.worlds)
        for name, path in files.items():
            _put(path, staging / name, may_link=task.linkable is not None and path.is_relative_to(task.linkable))
        for folder in SUBSYSTEMS.values():
            (staging / folder).mkdir(parents=True, exist_ok=True)
        for name, data in _own_files(task, _digest(files)).items():
            path = staging / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            path.chmod(0o755 if name.endswith(".sh") else 0o644)
        load_task(staging)
        shutil.rmtree(final, ignore_errors=True)
        staging.replace(final)
    except OSError as error:
        raise storage_error(final, error) from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return final


def world_files(worlds: tuple[Path, ...]) -> dict[str, Path]:
    """Files by their name in the task directory; of a name that occurs in several worlds, the last one's.

    Raises:
        InputError: a link or a special file among them.
    """
    found: dict[str, Path] = {}
    for world in worlds:
        for folder, target in SUBSYSTEMS.items():
            root = world / folder
            for path in sorted(root.rglob("*")) if root.is_dir() else ():
                if path.is_symlink() or not (path.is_file() or path.is_dir()):
                    raise InputError(str(path), "is a link or a special file")
                if path.is_file():
                    found[f"{target}/{path.relative_to(root).as_posix()}"] = path
    return found


def strays(world: Path) -> list[str]:
    """What lies at the top of a world besides its two folders; it is left."""
    return sorted(path.name for path in world.iterdir() if path.name not in (*SUBSYSTEMS, "__MACOSX", ".DS_Store"))


@contextmanager
def unpacked(archive: Path, out: Path) -> Iterator[Path]:
    """A world archive, unpacked below ``out`` for as long as it is needed. Raises InputError as ``unpack``."""
    with scratch_in(out) as scratch:
        unpack(archive, scratch)
        yield scratch


@contextmanager
def scratch_in(out: Path) -> Iterator[Path]:
    """A directory on the file system of ``out``, so that its files can be linked, and gone afterwards."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        directory = tempfile.TemporaryDirectory(prefix=".import-", dir=out)
    except OSError as error:
        raise storage_error(out, error) from error
    with directory as scratch:
        yield Path(scratch)


def read_json(path: Path, kind: type[list[Any]] | type[dict[str, Any]]) -> Any:
    """A JSON document that is a ``kind``. Raises InputError when it is missing or is none."""
    data = read_plain_file(path, MAX_JSON_BYTES)
    if data is None:
        raise InputError(str(path), "is missing")
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InputError(str(path), f"is not JSON: {error}") from error
    if not isinstance(value, kind):
        raise InputError(str(path), f"holds a {type(value).__name__}", allowed=f"a {kind.__name__}")
    return value


def _own_files(task: JudgedTask, world_digest: str) -> dict[str, bytes]:
    if not task.prompt.strip():
        raise InputError(task.id, "has no prompt")
    own = {
        "family": task.family,
        "world_id": task.world_id,
        "split": "imported",
        "world_digest": world_digest,
        "deliverables": [],
        "grading": "rubric",
    }
    config: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "artifacts": ["/logs/artifacts"],
        "metadata": {"journeyman": own},
        "environment": {"network_mode": "no-network", "workdir": "/ws"},
    }
    if task.agent_timeout_s is not None:
        config["agent"] = {"timeout_sec": task.agent_timeout_s}
    source = json.dumps(task.source, indent=1, ensure_ascii=False, allow_nan=False)
    return {
        "task.toml": to_toml(config).encode(),
        "instruction.md": task.prompt.encode(),
        "environment/Dockerfile": DOCKERFILE.encode(),
        "tests/test.sh": NO_JUDGE.encode(),
        f"tests/{FILE}": rubric_json(task.rubric),
        "tests/source.json": source.encode(),
    }


def _digest(files: Mapping[str, Path]) -> str:
    rows = [f"{name}\0{sha256(path.read_bytes())}" for name, path in sorted(files.items())]
    return sha256("\n".join(rows).encode())


def _put(source: Path, target: Path, *, may_link: bool) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        if may_link:
            os.link(source, target)
            return
    except OSError:
        pass  # another file system, or one without hard links
    shutil.copyfile(source, target)
