"""How a closed trial leaves the node it ran on: as one bundle of bytes, through the executor or an fsspec URL.

One object per trial: it is there whole or not at all, so shared storage needs neither locks nor renames.
"""

from __future__ import annotations

import io
import json
import shutil
import tarfile
from pathlib import Path

from journeyman.digest import sha256
from journeyman.durable import publish_directory
from journeyman.errors import InputError
from journeyman.trials.store.hot import CONTENT, DONE, EXPERTS
from journeyman.trials.store.place import RemotePlace

SUFFIX = ".trial"


def bundle(directory: Path) -> bytes:
    """A closed trial as a tar of its files. Raises InputError when it is not closed."""
    if not (directory / DONE).is_file():
        raise InputError(str(directory), "is not a closed trial; only closed ones can be handed on")
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w") as tar:
        for name in (*json.loads((directory / DONE).read_bytes())["files"], DONE):
            tar.add(directory / name, arcname=name, filter=_plain)
    return sink.getvalue()


def unbundle(data: bytes, directory: Path) -> None:
    """Publish a bundle as ``directory``: every digest checked, everything synced, then one rename.

    Raises:
        InputError: it is no bundle, or a file differs from its digest.
        StorageError: the disk is full or not writable.
    """
    files = _files(data)
    staging = directory.with_name(f".{directory.name}.staging")
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir(parents=True)
    for name, content in files.items():
        (staging / name).write_bytes(content)
    publish_directory(staging, directory)


def record_of(data: bytes) -> tuple[str, int, bytes]:
    """Trial id, attempt and seal (``DONE``) of a bundle. Raises InputError as ``unbundle``."""
    files = _files(data)
    record = json.loads(files["trial.json"])
    return str(record["trial_id"]), int(record["attempt"]), files[DONE]


def upload(directory: Path, url: str) -> str:
    """Put a closed trial at ``url`` as one object; returns its URL. Only when this returns may it be acknowledged."""
    place = RemotePlace(url)
    name = f"{directory.name}{SUFFIX}"
    place.write(name, bundle(directory))
    return place.name(name)


def _files(data: bytes) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(data)) as tar:
            for member in tar:
                source = tar.extractfile(member)
                if member.name in (*CONTENT, EXPERTS, DONE) and source is not None:
                    files[member.name] = source.read()
        seal = json.loads(files[DONE])["files"]
        damaged = [name for name in {*CONTENT, *seal} if sha256(files[name]) != seal[name]["sha256"]]
    except (tarfile.TarError, KeyError, ValueError) as error:
        raise InputError("bundle", f"is not a closed trial: {type(error).__name__}: {error}") from error
    if damaged:
        raise InputError("bundle", f"differs from its digests: {', '.join(damaged)}")
    return files


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    member.mode = 0o644
    return member
