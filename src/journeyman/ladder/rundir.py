"""The run directory: one recipe, one lock, and the record of what is complete.

A stage is complete when ``state/<stage>.json`` exists; it is written last, atomically. Whatever lies in the directory
without its record belongs to an interrupted stage and is redone whole. One process at a time owns the directory; its
workers share it read-only except for the folders they are given.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
from pathlib import Path
from typing import IO, Any

from journeyman.digest import sha256_json
from journeyman.durable import write_json
from journeyman.errors import InputError, StorageError
from journeyman.ladder.recipe import QuickstartRecipe

_UNBORN = (".space", ".lock", ".recipe.json.")
"""All that a process may leave that was killed before it wrote ``recipe.json``."""

_STAGING = (".staging-", ".building-")
"""Directories in which tasks and environments are made before one rename publishes them."""

PROBE_BYTES = 4 << 20  # less free space than this cannot hold one checkpoint


class RunDirectory:
    """A directory that holds one run, open in this process.

    Args:
        root: the directory; made when missing.
        recipe: what to run. A directory that holds another recipe is refused.
        owner: take the lock (the main process) or not (a worker of it).

    Raises:
        InputError: the directory belongs to another recipe or to a running process.
        StorageError: it cannot be made or written.
    """

    def __init__(self, root: Path, recipe: QuickstartRecipe, *, owner: bool = True) -> None:
        self.root = root
        self.recipe = recipe
        self._lock: IO[str] | None = None
        if owner:
            self._prepare()

    def _prepare(self) -> None:
        wanted = self.recipe.model_dump(mode="json", exclude={"out"})
        stored = self.root / "recipe.json"
        try:
            self._refuse_foreign(stored, wanted)
        except OSError as error:
            raise StorageError(str(self.root), f"cannot be read: {error.strerror or error}") from error
        self._take(stored, wanted)

    def _refuse_foreign(self, stored: Path, wanted: dict[str, Any]) -> None:
        """Refuse a directory that holds something else than a run of this recipe. Raises InputError, OSError."""
        if self.root.exists() and not self.root.is_dir():
            raise InputError(str(self.root), "is a file; --out needs a directory")
        if stored.is_file():
            try:
                found = json.loads(stored.read_text())["recipe"]
            except (ValueError, KeyError, TypeError) as error:
                raise InputError(str(stored), f"is damaged: {error}", hint="choose another --out") from error
            if found != wanted:
                raise InputError(
                    str(self.root),
                    f"holds a run of another recipe (differs in {', '.join(_differences(found, wanted))})",
                    hint="choose another --out, or give the same recipe and seed to continue that run",
                )
        elif self.root.is_dir() and not all(path.name.startswith(_UNBORN) for path in self.root.iterdir()):
            raise InputError(str(self.root), "is not empty and holds no run", hint="choose another --out")

    def _take(self, stored: Path, wanted: dict[str, Any]) -> None:
        """Make sure that it can be written, lock it, and write the recipe of a new run."""
        existed, probe = self.root.exists(), self.root / ".space"
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            probe.write_bytes(os.urandom(PROBE_BYTES))
            probe.unlink()
            self._lock = (self.root / ".lock").open("w")
        except OSError as error:
            with contextlib.suppress(OSError):
                probe.unlink(missing_ok=True)
                if not existed:
                    self.root.rmdir()
            raise StorageError(str(self.root), f"cannot be written: {error.strerror or error}") from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self.close()
            raise InputError(str(self.root), "another process is running here") from error
        self._sweep()
        if not stored.is_file():
            write_json(stored, {"recipe": wanted, "sha256": sha256_json(wanted)})

    def _sweep(self) -> None:
        """Remove what writers that were killed had begun; the lock says that none of them lives."""
        for path in sorted(self.root.rglob(".*")):
            if path.name.startswith(_STAGING) or path.name.endswith(".tmp"):
                if path.is_dir():
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    path.unlink(missing_ok=True)

    @property
    def label(self) -> str:
        """Owner of every sandbox, meter and scratch directory of this run."""
        return f"quickstart-{self.recipe_sha256[:8]}"

    @property
    def recipe_sha256(self) -> str:
        return sha256_json(self.recipe.model_dump(mode="json", exclude={"out"}))

    def path(self, *parts: str) -> Path:
        """A path below the run directory."""
        return self.root.joinpath(*parts)

    def load(self, stage: str) -> dict[str, Any] | None:
        """The record of a complete stage, or None when it must be (re)done."""
        path = self.path("state", f"{stage}.json")
        if not path.is_file():
            return None
        record: dict[str, Any] = json.loads(path.read_text())
        return record

    def finish(self, stage: str, record: dict[str, Any]) -> dict[str, Any]:
        """Acknowledge a stage: from here on it is never redone. Returns what a resumed run would read."""
        write_json(self.path("state", f"{stage}.json"), record)
        loaded = self.load(stage)
        if loaded is None:
            raise StorageError(str(self.root), f"the record of stage {stage} disappeared")
        return loaded

    def close(self) -> None:
        """Release the lock."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None


def _differences(found: dict[str, Any], wanted: dict[str, Any], prefix: str = "") -> list[str]:
    fields: list[str] = []
    for key in sorted(found.keys() | wanted.keys()):
        old, new = found.get(key), wanted.get(key)
        if isinstance(old, dict) and isinstance(new, dict):
            fields += _differences(old, new, f"{prefix}{key}.")
        elif old != new:
            fields.append(f"{prefix}{key}")
    return fields
