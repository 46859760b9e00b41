"""A task directory as one value: what the policy may see, where its verifier lies, and how long each may take.

Layout (Harbor 1.4): ``task.toml``, ``instruction.md``, ``environment/world/<files>``, ``solution/solve.sh``,
``tests/test.sh`` and, for tasks that can be graded in batches, ``tests/check.py`` with ``tests/truth.json``.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from journeyman.durable import publish_directory
from journeyman.errors import InputError, Problem, StorageError
from journeyman.tasks.task_parts import (
    leaving_links,
    prior_context,
    read_config,
    read_instruction,
    verifier_script,
)
from journeyman.tasks.task_toml import SCHEMA_VERSION, Journeyman, TaskToml
from journeyman.tasks.toml_text import to_toml

WORLD_DIRECTORY = Path("environment/world")


class TaskDirectoryError(InputError):
    """A task directory cannot be used. ``problems`` holds all of them: field, file and line, value, nearest match."""

    def __init__(self, directory: Path, problems: list[Problem]) -> None:
        self.problems = problems
        rows = [
            f"{p.source}: {p.path}: {p.message}" + (f" Did you mean {p.suggestion}?" if p.suggestion else "")
            for p in problems
        ]
        count = f"{len(problems)} problem{'s' if len(problems) != 1 else ''} in this task directory"
        super().__init__(str(directory), "\n  ".join([count, *rows]))


@dataclass(frozen=True)
class Task:
    """One task, loaded. Everything below ``tests`` and ``solution`` stays on disk and is never part of this value.

    Attributes:
        path: the directory.
        id: name of the directory.
        instruction: text of ``instruction.md``.
        family, world_id, split, world_digest: from ``[metadata.journeyman]``; an imported task has family and split
            ``imported``, its own id as world and no digest.
        files: names of the world's files, relative POSIX paths, sorted.
        inputs: the files that the prompt lists; all of them where the task names none.
        metadata: ``[metadata]`` as it stands in the file.
        deliverables: files below ``/logs/artifacts`` that are graded (``name/`` is a directory); empty for an imported
            task: then everything that was collected is.
        verifier_timeout_s: seconds the verifier may take.
        agent_timeout_s: seconds the agent may take, or None.
        needs_exit_zero: whether a non-zero status of ``test.sh`` is a verifier error.
        config: the whole ``task.toml``.
        warnings: one line per unknown key.
        step: name of the step this stands for, of a task of several (``steps.py``).
    """

    path: Path
    id: str
    instruction: str
    family: str
    world_id: str
    split: str
    world_digest: str
    files: tuple[str, ...]
    inputs: tuple[str, ...]
    metadata: Mapping[str, Any]
    deliverables: tuple[str, ...]
    verifier_timeout_s: float
    agent_timeout_s: float | None
    needs_exit_zero: bool
    config: TaskToml
    warnings: tuple[str, ...] = ()
    step: str | None = None

    @property
    def tests(self) -> Path:
        """The verifier's directory; the policy never sees it. Of a step: its own, or the task's where it has none."""
        own = None if self.step is None else self.path / "steps" / self.step / "tests"
        return own if own is not None and own.is_dir() else self.path / "tests"

    @property
    def shared_tests(self) -> Path | None:
        """For a step with tests of its own: the task's tests, over which they are laid."""
        shared = self.path / "tests"
        return shared if self.tests != shared and shared.is_dir() else None

    @property
    def is_judged(self) -> bool:
        """Whether a judge grades it, from ``tests/rubric.json``, and not a script."""
        own = self.config.metadata.journeyman
        return own is not None and own.grading == "rubric"

    @property
    def reward_range(self) -> tuple[float, float]:
        """Lowest and highest reward the verifier may give."""
        return self.config.metadata.reward_range or (0.0, 1.0)

    @property
    def world(self) -> Path:
        """The world's files."""
        return self.path / WORLD_DIRECTORY


@dataclass(frozen=True)
class TaskDraft:
    """A task that is about to be written.

    Attributes:
        instruction: text of ``instruction.md``.
        config: content of ``task.toml`` as nested mappings; ``schema_version`` is filled in.
        files: all other files, relative POSIX path -> content; names that end in ``.sh`` become executable.
    """

    instruction: str
    config: Mapping[str, Any]
    files: Mapping[str, bytes]


def load_task(directory: Path) -> Task:
    """Read a task directory.

    Raises:
        TaskDirectoryError: an ``InputError`` that lists every problem: missing or unreadable ``task.toml``,
            ``instruction.md`` or ``tests/test.sh``, a ``trajectory.json`` that is no ATIF, fields with impossible
            values, an unknown schema, artifact paths or links that leave the sandbox, several steps
            (``steps.load_steps`` reads those).
    """
    directory = Path(directory)
    if not directory.is_dir():
        raise InputError(str(directory), "is not a directory", allowed="a Harbor task directory with task.toml")
    problems: list[Problem] = []
    config, raw, warnings = read_config(directory / "task.toml", problems)
    instruction = read_instruction(directory / "instruction.md", problems)
    prior_context(directory / "trajectory.json", problems)
    script = verifier_script(directory, config)
    if not script.is_file():
        problems.append(Problem("verifier", f"tests/{script.name}", "no verifier: this file is missing"))
    if config is not None and config.steps:
        message = "several steps are no single task; allowed: a task without [[steps]], or load_steps"
        problems.append(Problem("steps", "task.toml", message))
    problems.extend(leaving_links(directory))
    if problems or config is None:
        raise TaskDirectoryError(directory, problems)
    return task_of(directory, config, raw, instruction, warnings)


def task_of(
    directory: Path,
    config: TaskToml,
    raw: Mapping[str, Any],
    instruction: str,
    warnings: tuple[str, ...] = (),
    step: str | None = None,
) -> Task:
    """The task value of a checked directory.

    Args:
        config, raw: ``task.toml`` as model and as tables.
        step: name of the step it stands for, whose agent and verifier tables are already those of ``config``.
    """
    own = config.metadata.journeyman or _imported(directory.name)
    files = _names(directory / WORLD_DIRECTORY)
    return Task(
        path=directory,
        id=directory.name if step is None else f"{directory.name}/{step}",
        instruction=instruction,
        family=own.family,
        world_id=own.world_id,
        split=own.split,
        world_digest=own.world_digest,
        files=files,
        inputs=own.inputs or files,
        metadata=raw.get("metadata", {}),
        deliverables=own.deliverables,
        verifier_timeout_s=config.verifier.timeout_sec,
        agent_timeout_s=config.agent.timeout_sec,
        needs_exit_zero=own.exit_code == "error",
        config=config,
        warnings=warnings,
        step=step,
    )


def write_task(draft: TaskDraft, directory: Path) -> Path:
    """Write a task directory: whoever sees ``directory`` sees all of it, and only if ``load_task`` accepts it.

    An existing directory is replaced. Same draft, same bytes.

    Raises:
        TaskDirectoryError: the draft would not load; nothing was written.
        StorageError: the disk is full or the place not writable; nothing stays behind.
    """
    staging = directory.with_name(f".{directory.name}.{os.getpid()}.tmp")
    try:
        shutil.rmtree(staging, ignore_errors=True)
        for name, data in _contents(draft, directory).items():
            path = staging / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            path.chmod(0o755 if name.endswith(".sh") else 0o644)
        try:
            load_task(staging)
        except TaskDirectoryError as error:
            raise TaskDirectoryError(directory, error.problems) from None
        publish_directory(staging, directory)
    except OSError as error:
        raise StorageError(str(directory), f"cannot be written: {error.strerror or error}") from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return directory


def _contents(draft: TaskDraft, directory: Path) -> dict[str, bytes]:
    config = {"schema_version": SCHEMA_VERSION, **draft.config}
    contents = {"task.toml": to_toml(config).encode(), "instruction.md": draft.instruction.encode()}
    for name, data in draft.files.items():
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or not path.parts or name in contents:
            raise TaskDirectoryError(directory, [Problem("files", name, "is no path of a further file of this task")])
        contents[name] = data
    return contents


def _imported(name: str) -> Journeyman:
    """What stands in for ``[metadata.journeyman]`` in a task that is not ours."""
    return Journeyman.model_construct(
        family="imported",
        world_id=name,
        split="imported",
        world_digest="",
        deliverables=(),
        inputs=(),
        exit_code="ignore",
    )


def _names(root: Path) -> tuple[str, ...]:
    found = []
    for folder, _, names in os.walk(root):
        inner = folder[len(str(root)) + 1 :].replace(os.sep, "/")
        found += [f"{inner}/{name}" if inner else name for name in names if os.path.isfile(f"{folder}/{name}")]  # noqa: PTH113
    return tuple(sorted(found))
