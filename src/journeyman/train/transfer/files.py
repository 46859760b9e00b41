"""A push as one safetensors file: on a disk both sides see, or in shared memory (a file system in memory).

The reader maps the file, so the bytes of a push exist once on a host, however many engines read them. A file appears
under its name when it is whole; the sender removes the one before last when the next is sent.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from journeyman.durable import storage_error, sync_directory
from journeyman.errors import EnvironmentMissing
from journeyman.train.transfer.manifest import Manifest, TransferFailed, pieces_of

if TYPE_CHECKING:
    from torch import Tensor

MEMORY = Path("/dev/shm")
"""Where Linux keeps files in memory."""
KEPT = 2
"""Pushes whose files stay: the one in force, and the one before it in case an engine goes back."""


def shared_folder(way: str) -> str | None:
    """Where temporary files of a way go: shared memory, or wherever temporary files go (None).

    Where the machine has no shared memory, ``memory`` goes by disk: slower, and otherwise the same.
    """
    return str(MEMORY) if way == "memory" and MEMORY.is_dir() and os.access(MEMORY, os.W_OK) else None


def write_file(state: Mapping[str, Tensor], path: Path) -> None:
    """Write tensors as safetensors under a temporary name, sync, rename.

    Raises:
        StorageError: the place is full or not writable.
    """
    from safetensors.torch import save_file

    temporary = path.with_name(f".{path.name}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        save_file(_apart(state), temporary)
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
        sync_directory(path.parent)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise storage_error(path, error) from error


def read_file(path: Path) -> dict[str, Tensor]:
    """The tensors of a file, mapped where they lie. Raises TransferFailed for one that is not whole."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return dict(load_file(path))
    except (OSError, SafetensorError, ValueError) as error:
        raise TransferFailed(f"{path} cannot be read: {error}") from error


class FileSender:
    """Writes pushes into a folder of its own, which goes with ``close``.

    Args:
        way: ``disk`` or ``memory``.
        folder: where; None takes the way's own place. On several hosts a disk they all see.
    """

    def __init__(self, way: str, folder: Path | None = None) -> None:
        if way == "memory" and shared_folder(way) is None:
            raise EnvironmentMissing(f"no writable {MEMORY} here: choose disk")
        parent = folder or (Path(shared_folder(way) or tempfile.gettempdir()))
        parent.mkdir(parents=True, exist_ok=True)
        self._way = way
        self._folder = Path(tempfile.mkdtemp(prefix="journeyman-weights-", dir=parent))
        self._sent: list[Path] = []

    def send(self, state: Mapping[str, Tensor], version: int, deadline_s: float = 600.0) -> Manifest:
        """Write one push. Raises StorageError."""
        path = self._folder / f"v{version}.safetensors"
        write_file(state, path)
        if path not in self._sent:
            self._sent.append(path)
        while len(self._sent) > KEPT:
            self._sent.pop(0).unlink(missing_ok=True)
        return Manifest(version, self._way, str(path), pieces_of(state))

    def close(self) -> None:
        """Remove what is left. Idempotent; a reader that has mapped a file keeps it."""
        for path in self._sent:
            path.unlink(missing_ok=True)
        self._sent = []
        if self._folder.is_dir():
            self._folder.rmdir()


class FileTaker:
    """Reads the pushes of a ``FileSender``."""

    @contextmanager
    def take(self, manifest: Manifest, deadline_s: float = 600.0) -> Iterator[Mapping[str, Tensor]]:
        """The state of a push, verified. Raises TransferFailed."""
        state = read_file(Path(manifest.place))
        manifest.check(state)
        yield state

    def close(self) -> None:
        """Nothing is held."""


def _apart(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Contiguous CPU tensors that share no memory: the format refuses shared ones."""
    ready: dict[str, Tensor] = {}
    seen: set[int] = set()
    for name, tensor in state.items():
        value = tensor.detach().cpu().contiguous()
        at = value.untyped_storage().data_ptr()
        if at in seen:
            value = value.clone()
        seen.add(value.untyped_storage().data_ptr())
        ready[name] = value
    return ready
