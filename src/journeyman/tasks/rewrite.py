"""Changing a task directory without losing anything of it: comments, unknown keys, order and further files stay.

``write_task`` makes a task from nothing; this is for tasks that somebody else wrote.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from journeyman.durable import publish_directory
from journeyman.errors import InputError, StorageError
from journeyman.tasks.field_types import inside
from journeyman.tasks.steps import SteppedTask, load_any
from journeyman.tasks.task import Task, TaskDirectoryError

if TYPE_CHECKING:
    from tomlkit.container import Container


def edited_toml(text: str, changes: Mapping[str, Any]) -> str:
    """TOML ``text`` with some values changed; everything else is byte for byte what it was.

    Args:
        changes: nested mappings, merged into the tables that are there; None removes a key; a list replaces a list.

    Raises:
        InputError: the text is not TOML.
    """
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    if not changes:
        return text
    try:
        document = tomlkit.parse(text)
    except TOMLKitError as error:
        raise InputError("task.toml", f"is not TOML: {error}") from error
    _merge(document, changes)
    return tomlkit.dumps(document)


def _merge(table: Container | Any, changes: Mapping[str, Any]) -> None:
    for key, value in changes.items():
        if value is None:
            table.pop(key, None)
        elif isinstance(value, Mapping) and isinstance(table.get(key), Mapping):
            _merge(table[key], value)
        elif isinstance(value, Mapping):
            table[key] = _without_none(value)
        else:
            table[key] = list(value) if isinstance(value, tuple) else value


def _without_none(values: Mapping[str, Any]) -> dict[str, Any]:
    nested = {key: _without_none(v) if isinstance(v, Mapping) else v for key, v in values.items()}
    return {key: value for key, value in nested.items() if value is not None}


def rewrite_task(
    source: Path,
    target: Path,
    changes: Mapping[str, Any] | None = None,
    files: Mapping[str, bytes | None] | None = None,
) -> Task | SteppedTask:
    """Write a changed copy of a task directory: every file of ``source`` goes along, with its mode, links as links.

    Args:
        source: a task directory; of one step or of several.
        target: where to; may be ``source``. Seen as a whole or not at all.
        changes: to ``task.toml``, as for ``edited_toml``.
        files: contents to put at relative paths; None removes a file.

    Returns:
        the task as it now is; its ``warnings`` name the keys that were kept and not understood.

    Raises:
        TaskDirectoryError: ``source`` does not load, or what it would become would not; nothing was written.
        StorageError: the place cannot be written.
    """
    load_any(source)
    staging = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        shutil.rmtree(staging, ignore_errors=True)
        shutil.copytree(source, staging, symlinks=True)
        if changes:
            path = staging / "task.toml"
            path.write_bytes(edited_toml(path.read_bytes().decode(), changes).encode())
        for name, data in (files or {}).items():
            _put(staging, name, data)
        try:
            load_any(staging)
        except TaskDirectoryError as error:
            raise TaskDirectoryError(target, error.problems) from None
        publish_directory(staging, target)
    except OSError as error:
        raise StorageError(str(target), f"cannot be written: {error.strerror or error}") from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return load_any(target)


def _put(root: Path, name: str, data: bytes | None) -> None:
    try:
        path = root / inside(name)
    except ValueError as error:
        raise InputError(name, str(error)) from None
    if name.startswith("/") or not path.parent.resolve().is_relative_to(root.resolve()):
        raise InputError(name, "leaves the task directory")
    path.unlink(missing_ok=True)
    if data is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        path.chmod(0o755 if name.endswith(".sh") else 0o644)
