"""Reading and writing the small files of ``/proc`` and of control groups: one system call each, on hot paths."""

from __future__ import annotations

import os
from pathlib import Path

_MOST = 1 << 16


def read(path: str) -> str:
    """The text of a file of the kernel. Raises OSError."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        data = os.read(handle, _MOST)
        while data and (more := os.read(handle, _MOST)):
            data += more
    finally:
        os.close(handle)
    return data.decode(errors="surrogateescape")


def write(path: Path | str, text: str) -> None:
    """Write a control file in one system call. Raises OSError."""
    handle = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(handle, text.encode())
    finally:
        os.close(handle)
