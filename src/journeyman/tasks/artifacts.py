"""What a policy handed in, as bytes by name: which names are graded, and how they are kept on disk.

A deliverable is data from an untrusted program. It is never opened by name in the harness, never followed as a link and
never parsed outside a sandbox; here only names and sizes are looked at.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

from journeyman.durable import storage_error, sync_directory, write_part
from journeyman.errors import InputError
from journeyman.tasks.reward_file import read_plain_file

Artifacts = Mapping[str, bytes]

MAX_DELIVERABLE_BYTES = 16_000_000
"""Largest single deliverable that is graded; a longer one is malformed."""

MAX_JSON_BYTES = 1_000_000
"""Largest JSON deliverable: an answer is short, and a parser's memory is a multiple of its input."""


class BadDeliverable(Exception):
    """The policy's deliverable is missing or cannot be graded; the message says why."""


def declared_artifacts(artifacts: Artifacts | None, deliverables: Sequence[str]) -> dict[str, bytes]:
    """The artifacts a verifier is shown: declared names only, sorted; everything else was planted or is scratch.

    Args:
        artifacts: what was collected below ``/logs/artifacts``, or None when nothing was.
        deliverables: declared names, ``name/`` for a directory; empty: every name that stays inside is shown.

    Raises:
        BadDeliverable: nothing was delivered, a declared file is missing, or one is too long.
    """
    if artifacts is None:
        raise BadDeliverable("nothing was delivered")
    shown: dict[str, bytes] = {}
    for declared in deliverables:
        names = [n for n in artifacts if n == declared or (declared.endswith("/") and n.startswith(declared))]
        names = [n for n in names if stays_inside(n)]
        if not names:
            raise BadDeliverable(f"{declared} is missing; delivered: {_listing(artifacts)}")
        shown.update({name: artifacts[name] for name in names})
    if not deliverables:
        shown = {name: data for name, data in artifacts.items() if stays_inside(name)}
    for name, data in shown.items():
        limit = MAX_JSON_BYTES if name.endswith(".json") else MAX_DELIVERABLE_BYTES
        if len(data) > limit:
            raise BadDeliverable(f"{name} has {len(data)} bytes; at most {limit} are read")
    return dict(sorted(shown.items()))


def stays_inside(name: str) -> bool:
    """Whether ``name`` is a relative path that cannot leave the directory it is put in."""
    parts = PurePosixPath(name).parts
    return bool(parts) and not name.startswith("/") and ".." not in parts and "\0" not in name and name.isprintable()


def write_artifacts(artifacts: Artifacts, directory: Path) -> None:
    """Keep artifacts as plain files below ``directory`` (durable). Names that would leave it are not written.

    They count once the record of their trial says so: a writer that was killed leaves a part of them.

    Raises:
        StorageError: the disk is full or the place is not writable.
    """
    place = str(directory)
    folders = {place}
    try:
        os.makedirs(place, exist_ok=True)  # noqa: PTH103 - a hot path, as all of this function
        for name, data in artifacts.items():
            if stays_inside(name):
                path = f"{place}/{name}"
                folder = os.path.dirname(path)  # noqa: PTH120
                if folder not in folders:
                    os.makedirs(folder, exist_ok=True)  # noqa: PTH103
                    folders.add(folder)
                write_part(path, data)
        for folder in folders:
            sync_directory(folder)
    except OSError as error:
        raise storage_error(directory, error) from error


def read_artifacts(directory: Path) -> dict[str, bytes]:
    """The artifacts ``write_artifacts`` kept. Links and special files are not followed or opened.

    Raises:
        InputError: there is no such directory.
    """
    if not directory.is_dir():
        raise InputError(str(directory), "no saved artifacts here")
    found: dict[str, bytes] = {}
    for path in sorted(directory.rglob("*")):
        parents = path.relative_to(directory).parents
        if any((directory / parent).is_symlink() for parent in parents if parent.parts):
            continue
        content = read_plain_file(path, MAX_DELIVERABLE_BYTES)
        if content is not None:
            found[path.relative_to(directory).as_posix()] = content
    return found


def _listing(artifacts: Artifacts) -> str:
    names = sorted(artifacts)
    return ", ".join(ascii(name) for name in names[:5]) + (" ..." if len(names) > 5 else "") if names else "nothing"
