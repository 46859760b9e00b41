"""Where a store lies: a local directory or any fsspec URL, behind the few calls that reading needs.

No locks, no renames and no appends on what is not local: an object is put whole or not at all.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

from journeyman.digest import sha256, sha256_file
from journeyman.durable import write_bytes
from journeyman.errors import EnvironmentMissing, InputError

OPTIONS: dict[str, dict[str, Any]] = {
    "s3": {"config_kwargs": {"connect_timeout": 20, "read_timeout": 60, "retries": {"max_attempts": 5}}},
}
"""Deadlines of protocols whose library takes them, in seconds per request. Others keep their library's own."""

MANIFEST = "UPLOADED.json"
"""Written last into an uploaded directory: size and sha256 of every file. Without it an upload is not complete."""


class Place(Protocol):
    """A directory by any means. Paths are relative, with ``/``."""

    def read(self, path: str) -> bytes: ...
    def write(self, path: str, data: bytes) -> None: ...
    def put(self, source: Path, path: str) -> None: ...
    def exists(self, path: str) -> bool: ...
    def size(self, path: str) -> int: ...
    def directories(self, path: str) -> Iterator[str]: ...
    def files(self, path: str, suffix: str) -> Iterator[str]: ...
    def open(self, path: str) -> Any: ...
    def name(self, path: str) -> str: ...


class LocalPlace:
    """A directory of this machine."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def read(self, path: str) -> bytes:
        return (self.root / path).read_bytes()

    def write(self, path: str, data: bytes) -> None:
        write_bytes(self.root / path, data)

    def put(self, source: Path, path: str) -> None:
        """Copy a file to its place, whole or not at all."""
        self.write(path, source.read_bytes())

    def exists(self, path: str) -> bool:
        return os.path.exists(os.path.join(self.root, path))  # noqa: PTH110, PTH118 - asked 10^5 times by a rebuild

    def size(self, path: str) -> int:
        return (self.root / path).stat().st_size

    def directories(self, path: str) -> Iterator[str]:
        """Sub-directories as paths of this place, sorted; none when there is no such directory."""
        yield from self._entries(path, lambda entry: entry.is_dir())

    def files(self, path: str, suffix: str) -> Iterator[str]:
        """Files of a directory with this ending, as paths of this place, sorted."""
        yield from self._entries(path, lambda entry: entry.name.endswith(suffix) and entry.is_file())

    def open(self, path: str) -> Any:
        """What pyarrow reads: a memory map."""
        import pyarrow as pa

        return pa.memory_map(str(self.root / path))

    def name(self, path: str) -> str:
        return str(self.root / path)

    def _entries(self, path: str, wanted: Any) -> Iterator[str]:
        try:
            with os.scandir(self.root / path if path else self.root) as entries:
                names = sorted(entry.name for entry in entries if not entry.name.startswith(".") and wanted(entry))
        except (FileNotFoundError, NotADirectoryError):
            return
        prefix = f"{path}/" if path else ""
        yield from (f"{prefix}{name}" for name in names)


class RemotePlace:
    """A directory behind an fsspec URL, e.g. ``s3://bucket/run``.

    Args:
        url: with its protocol; credentials and endpoint come from the environment of that protocol's own library.

    Raises:
        EnvironmentMissing: the library of the protocol is not installed.
        InputError: the protocol is unknown.
    """

    def __init__(self, url: str) -> None:
        import fsspec

        self.url = url.rstrip("/")
        try:
            self._fs, self._root = fsspec.core.url_to_fs(self.url, **OPTIONS.get(self.url.partition("://")[0], {}))
        except ImportError as error:
            raise EnvironmentMissing(f"{url}: {error}; pip install 'journeyman[store]' brings s3") from error
        except ValueError as error:
            raise InputError(url, str(error), allowed="a local directory or a URL fsspec knows") from error

    def read(self, path: str) -> bytes:
        data: bytes = self._fs.cat_file(self._at(path))
        return data

    def write(self, path: str, data: bytes) -> None:
        self._fs.makedirs(self._fs._parent(self._at(path)), exist_ok=True)
        self._fs.pipe_file(self._at(path), data)

    def put(self, source: Path, path: str) -> None:
        self._fs.makedirs(self._fs._parent(self._at(path)), exist_ok=True)
        self._fs.put_file(str(source), self._at(path))

    def exists(self, path: str) -> bool:
        return bool(self._fs.exists(self._at(path)))

    def size(self, path: str) -> int:
        return int(self._fs.size(self._at(path)))

    def directories(self, path: str) -> Iterator[str]:
        yield from self._entries(path, "directory", "")

    def files(self, path: str, suffix: str) -> Iterator[str]:
        yield from self._entries(path, "file", suffix)

    def open(self, path: str) -> Any:
        return self._fs.open(self._at(path), "rb", block_size=1 << 20)

    def name(self, path: str) -> str:
        return f"{self.url}/{path}" if path else self.url

    def _at(self, path: str) -> str:
        return f"{self._root.rstrip('/')}/{path}" if path else self._root

    def _entries(self, path: str, kind: str, suffix: str) -> Iterator[str]:
        self._fs.invalidate_cache()  # another node may have put something since the last look
        try:
            found = self._fs.ls(self._at(path), detail=True)
        except FileNotFoundError:
            return
        names = (entry["name"].rstrip("/").rsplit("/", 1)[-1] for entry in found if entry["type"] == kind)
        prefix = f"{path}/" if path else ""
        yield from sorted(f"{prefix}{name}" for name in names if name and name.endswith(suffix))


def is_url(path_or_url: str | Path) -> bool:
    """Whether it names a protocol; a plain path does not."""
    return "://" in str(path_or_url)


def place_at(path_or_url: str | Path) -> Place:
    """The place behind a path or URL; ``file://`` is local. Nothing is made and nothing need be there."""
    text = str(path_or_url)
    if text.startswith("file://"):
        return LocalPlace(Path(text.removeprefix("file://")))
    return RemotePlace(text) if is_url(text) else LocalPlace(Path(text))


def upload_directory(directory: Path, url: str) -> int:
    """Put a directory (weights, a run) at a URL, the manifest last; returns the bytes sent.

    Files that are being written or staged (names beginning with a dot) and the local index stay behind.
    """
    place = RemotePlace(url)
    sent: dict[str, dict[str, Any]] = {}
    for path in sorted(p for p in directory.rglob("*") if p.is_file() and not p.is_symlink()):
        relative = path.relative_to(directory).as_posix()
        if any(part.startswith(".") for part in relative.split("/")) or relative.startswith("index.sqlite"):
            continue
        place.put(path, relative)
        sent[relative] = {"bytes": path.stat().st_size, "sha256": sha256_file(path)}
    place.write(MANIFEST, json.dumps(sent, indent=1).encode())
    return sum(int(entry["bytes"]) for entry in sent.values())


def download_directory(url: str, directory: Path) -> int:
    """Fetch what ``upload_directory`` put, checking every digest; returns the bytes received.

    Raises:
        InputError: no complete upload there, or a file differs from its digest.
    """
    place = RemotePlace(url)
    try:
        listed: dict[str, dict[str, Any]] = json.loads(place.read(MANIFEST))
    except FileNotFoundError as error:
        raise InputError(url, f"holds no complete upload ({MANIFEST} is missing)") from error
    for relative, entry in listed.items():
        data = place.read(relative)
        if sha256(data) != entry["sha256"]:
            raise InputError(place.name(relative), "differs from the digest it was uploaded with")
        write_bytes(directory / relative, data)
    return sum(int(entry["bytes"]) for entry in listed.values())
