"""The directory of one training: its recipe, its lock, its label. The same command goes on with what lies there."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from pydantic import BaseModel

from journeyman.digest import sha256_json
from journeyman.durable import storage_error, write_json
from journeyman.errors import InputError

FILE = "recipe.json"


class TrainingHome:
    """A directory that one process trains in; a context manager that gives the lock back.

    Args:
        root: made when missing.
        recipe: what to run.
        may_change: dotted paths (or their beginnings) that may differ from the run that lies there already.

    Raises:
        InputError: it holds a run of another recipe, something else, or is being used.
        StorageError: it cannot be written.
    """

    def __init__(self, root: Path, recipe: BaseModel, may_change: Sequence[str] = ()) -> None:
        self.root = root
        wanted = recipe.model_dump(mode="json")
        stored = root / FILE
        if stored.is_file():
            self._refuse_other(stored, wanted, may_change)
        elif root.is_dir() and any(path.name != ".lock" for path in root.iterdir()):
            raise InputError(str(root), "is not empty and holds no training", hint="choose another --out")
        try:
            root.mkdir(parents=True, exist_ok=True)
            self._lock: IO[str] = (root / ".lock").open("w")
        except OSError as error:
            raise storage_error(root, error) from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self._lock.close()
            raise InputError(str(root), "another process is training here") from error
        write_json(stored, {"recipe": wanted, "sha256": sha256_json(wanted)})

    @property
    def label(self) -> str:
        """Owner of every sandbox of this training."""
        return f"train-{sha256_json(str(self.root.absolute()))[:10]}"

    def __enter__(self) -> TrainingHome:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.close()

    def load(self, stage: str) -> dict[str, Any] | None:
        """The record of a complete stage, or None."""
        path = self.root / "state" / f"{stage}.json"
        if not path.is_file():
            return None
        record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return record

    def finish(self, stage: str, record: Mapping[str, Any]) -> dict[str, Any]:
        """Acknowledge a stage: it is never redone."""
        write_json(self.root / "state" / f"{stage}.json", dict(record))
        return dict(record)

    def _refuse_other(self, stored: Path, wanted: Mapping[str, Any], may_change: Sequence[str]) -> None:
        try:
            found = json.loads(stored.read_text(encoding="utf-8"))["recipe"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(str(stored), f"is damaged: {error}", hint="choose another --out") from error
        changed = [
            path
            for path in differences(found, wanted)
            if not any(path == allowed or path.startswith(f"{allowed}.") for allowed in may_change)
        ]
        if changed:
            problem = f"holds a training of another recipe (differs in {', '.join(changed)})"
            hint = "choose another --out, or give the same recipe to go on"
            raise InputError(str(self.root), problem, allowed=f"changes of {', '.join(may_change)}", hint=hint)


def differences(found: Mapping[str, Any], wanted: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Dotted paths at which two recipes differ."""
    fields: list[str] = []
    for key in sorted(found.keys() | wanted.keys()):
        old, new = found.get(key), wanted.get(key)
        if isinstance(old, dict) and isinstance(new, dict):
            fields += differences(old, new, f"{prefix}{key}.")
        elif old != new:
            fields.append(f"{prefix}{key}")
    return fields
