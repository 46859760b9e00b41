"""A file that only grows: every append is whole or taken back, and its seal is known without reading it again."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any


class GrowingFile:
    """The writing end. Before the first ``append`` its owner says with ``keep`` how much of what was there is whole.

    What ``append`` returned from is with the kernel and survives a kill of the process; ``sync`` makes it survive the
    machine.

    Args:
        path: the file; made where it is missing.

    Attributes:
        found: what an earlier writer left; b"" in a new file and once ``keep`` was called.
        size_bytes: length of the whole part.
    """

    def __init__(self, path: Path | str) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        left = os.fstat(self._file).st_size
        self.found = os.pread(self._file, left, 0) if left else b""
        self.size_bytes = 0
        self._digest = hashlib.sha256()

    def keep(self, size: int) -> None:
        """Cut the file to its first ``size`` bytes. Raises OSError."""
        if len(self.found) != size:
            os.ftruncate(self._file, size)
        self._digest.update(self.found[:size])
        self.found, self.size_bytes = b"", size

    def append(self, data: bytes) -> None:
        """Write at the end. Raises OSError (e.g. ENOSPC) with the file as it was before."""
        written = 0
        try:
            while written < len(data):
                written += os.pwrite(self._file, data[written:], self.size_bytes + written)
        except OSError:
            os.ftruncate(self._file, self.size_bytes)
            raise
        self.size_bytes += len(data)
        self._digest.update(data)

    def seal(self) -> dict[str, Any]:
        """Length and sha256 of what was appended and kept."""
        return {"bytes": self.size_bytes, "sha256": self._digest.hexdigest()}

    def sync(self) -> None:
        """Make everything appended survive the machine."""
        os.fsync(self._file)

    def close(self) -> None:
        """A second call does nothing."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def seal_of(data: bytes) -> dict[str, Any]:
    """The seal of a file that holds ``data``."""
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
