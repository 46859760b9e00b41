"""Writes that survive ``kill -9``: temporary file, fsync, rename, fsync of the directory.

A reader sees the old content or the new, never a part. What these functions returned from is acknowledged.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
from pathlib import Path
from typing import Any

from journeyman.errors import StorageError

STORAGE_ERRNOS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS})
"""What the system says when it is the storage that refuses, whoever was writing."""

_NEW = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC


def storage_error(path: Path, error: OSError) -> StorageError:
    """The user's words for a write that failed."""
    free = ""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        free = "free some space or choose another --out; the run continues from its last complete step"
    return StorageError(str(path), f"cannot be written: {error.strerror or error}", hint=free or None)


def write_bytes(path: Path, data: bytes) -> None:
    """Replace ``path`` by ``data`` atomically and durably.

    Args:
        path: the file; missing folders are made.
        data: its whole content.

    Raises:
        StorageError: the disk is full or the place is not writable; the old content is kept, no temporary file stays.
    """
    folder, name = os.path.split(path)
    folder = folder or "."
    temporary = f"{folder}/.{name}.{os.getpid()}.tmp"
    try:
        try:
            file = os.open(temporary, _NEW, 0o666)
        except FileNotFoundError:
            os.makedirs(folder, exist_ok=True)  # noqa: PTH103 - a hot path, as all of this function
            file = os.open(temporary, _NEW, 0o666)
        try:
            _write_all(file, data)
            os.fsync(file)
        finally:
            os.close(file)
        os.replace(temporary, path)  # noqa: PTH105
        sync_directory(folder)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(temporary)  # noqa: PTH108
        raise storage_error(path, error) from error


def write_part(path: Path | str, data: bytes, *, is_synced: bool = True) -> None:
    """Write a file that counts only once another one says so: its content is synced, its entry left to the caller.

    Args:
        path: the file; its folder is there.
        data: its whole content.
        is_synced: False where the data can be made again.

    Raises:
        OSError: the disk is full or the place is not writable; a part of the file may be there.
    """
    file = os.open(path, _NEW, 0o666)
    try:
        _write_all(file, data)
        if is_synced:
            os.fsync(file)
    finally:
        os.close(file)


def _write_all(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


def write_text(path: Path, text: str) -> None:
    """``write_bytes`` of UTF-8 text."""
    write_bytes(path, text.encode())


def write_json(path: Path, value: Any) -> None:
    """``write_bytes`` of indented JSON; NaN and infinities are refused (ValueError)."""
    write_bytes(path, (json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode())


def publish_directory(staging: Path, final: Path) -> None:
    """Move a finished directory to its final name: whoever sees ``final`` sees all of it.

    Every file is synced first. An existing ``final`` is replaced.

    Raises:
        StorageError: as for ``write_bytes``.
    """
    try:
        for path in staging.rglob("*"):
            if path.is_file() and not path.is_symlink():
                with path.open("rb") as file:
                    os.fsync(file.fileno())
        if final.exists():
            shutil.rmtree(final)
        final.parent.mkdir(parents=True, exist_ok=True)
        staging.replace(final)
        sync_directory(final.parent)
    except OSError as error:
        raise storage_error(final, error) from error


def sync_directory(path: Path | str) -> None:
    """fsync a directory entry, so that a rename in it is durable."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
