"""Weights on their way to an engine in another process: a directory in shared memory, whole or absent, with its digest.

The engine copies them between two tokens and says so; then the directory goes. What does not match its digest is
refused and the old weights keep serving.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from journeyman.digest import sha256_file
from journeyman.engines.errors import EngineError

SHARED = Path("/dev/shm")
"""Where Linux keeps files in memory; elsewhere the temporary directory serves."""

PREFIX = "journeyman-weights-"
FILE, FACTS = "model.safetensors", "weights.json"


class WeightBox:
    """A place in shared memory for the weights of one engine.

    Args:
        name: part of the directory's name, for people who look there.
    """

    def __init__(self, name: str) -> None:
        root = SHARED if os.access(SHARED, os.W_OK) else Path(tempfile.gettempdir())
        sweep(root)
        self.directory = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{name}-{os.getpid()}-", dir=root))

    def put(self, state: Any, version: int) -> Path:
        """Write a state (name -> tensor); returns its directory. Older ones stay until ``keep_only``."""
        from safetensors.torch import save_file

        final = self.directory / f"v{version}"
        staging = self.directory / f".v{version}.tmp"
        shutil.rmtree(staging, ignore_errors=True)
        staging.mkdir()
        seen: set[int] = set()
        tensors = {}
        for key, tensor in state.items():
            own = tensor.detach()
            if own.data_ptr() in seen:  # tied: one name may hold a storage, the loader ties the other again
                own = own.clone()
            seen.add(own.data_ptr())
            tensors[key] = own.contiguous()
        save_file(tensors, staging / FILE)
        (staging / FACTS).write_text(json.dumps({"version": version, "sha256": sha256_file(staging / FILE)}))
        shutil.rmtree(final, ignore_errors=True)
        staging.replace(final)
        return final

    def keep_only(self, path: Path) -> None:
        """Remove all but one state."""
        for other in self.directory.iterdir():
            if other != path and not other.name.startswith("."):
                shutil.rmtree(other, ignore_errors=True)

    def close(self) -> None:
        """Remove everything. Idempotent."""
        shutil.rmtree(self.directory, ignore_errors=True)


def sweep(root: Path) -> list[Path]:
    """Remove the boxes of processes that are gone, killed ones left theirs; returns what was removed."""
    gone = []
    for box in root.glob(f"{PREFIX}*"):
        owner = box.name.rsplit("-", 2)[-2]
        if owner.isdigit() and not _is_alive(int(owner)):
            shutil.rmtree(box, ignore_errors=True)
            gone.append(box)
    return gone


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def checked(path: Path, version: int) -> Path:
    """The directory, if it holds what was written. Raises EngineError."""
    try:
        facts = json.loads((path / FACTS).read_text())
        is_right = facts["version"] == version and facts["sha256"] == sha256_file(path / FILE)
    except (OSError, ValueError, KeyError) as error:
        raise EngineError(f"weights of version {version} cannot be read: {error}") from error
    if not is_right:
        raise EngineError(f"weights of version {version} are not what was written: their digest differs")
    return path
