"""Reads files of a sandbox from outside, through the root directory of its supervisor: no process inside takes part.

Only for a sandbox in which nothing runs but its supervisor: what is read cannot change under the reader then. Every
part of a path is opened by name below the one before and never as a link, since a link would lead out of the sandbox.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CHUNK = 1 << 20
MAX_DEPTH = 64
"""Directories within each other that are entered: each holds a descriptor."""


def open_root(pid: int) -> int | None:
    """A descriptor of the root directory that a process sees; None where this program may not look there."""
    try:
        return os.open(f"/proc/{pid}/root", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None


def open_folder(root: int, path: str) -> int:
    """A descriptor of the directory ``path`` (absolute, as inside) below the descriptor ``root``, which stays open.

    Raises:
        FileNotFoundError: there is none. OSError: part of it is a link or no directory, or may not be read.
    """
    here = os.dup(root)
    for part in path.strip("/").split("/"):
        try:
            there = os.open(part, _FOLDER, dir_fd=here)
        finally:
            os.close(here)
        here = there
    return here


def regular_files(folder: int, prefix: str = "") -> Iterator[tuple[str, int, int]]:
    """(relative name, size in bytes, descriptor) of regular files below ``folder``, in order of names.

    Links and special files are not opened; what may not be read or lies deeper than ``MAX_DEPTH`` is left out. The
    descriptor is closed with the next step; ``folder`` stays open.
    """
    for name in sorted(os.listdir(folder)):
        with suppress(OSError):
            kind = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if stat.S_ISDIR(kind.st_mode):
                if prefix.count("/") >= MAX_DEPTH:
                    continue
                inner = os.open(name, _FOLDER, dir_fd=folder)
                try:
                    yield from regular_files(inner, f"{prefix}{name}/")
                finally:
                    os.close(inner)
            elif stat.S_ISREG(kind.st_mode):
                file = os.open(name, _FILE, dir_fd=folder)
                try:
                    yield f"{prefix}{name}", kind.st_size, file
                finally:
                    os.close(file)


def read_whole(file: int, size: int) -> bytes:
    """At most ``size`` bytes from the start of a file."""
    data = os.read(file, min(size, _CHUNK)) if size else b""
    if len(data) == size:
        return data
    parts = [data]
    while data and (left := size - sum(map(len, parts))) > 0:
        data = os.read(file, min(left, _CHUNK))
        parts.append(data)
    return b"".join(parts)
