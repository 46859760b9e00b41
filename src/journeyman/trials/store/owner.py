"""The owner of a run: the one process that takes closed trials in, acknowledges them and writes the index."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from journeyman.errors import InputError
from journeyman.trials.store.hot import DONE, place_of
from journeyman.trials.store.hot_reading import row_of_directory
from journeyman.trials.store.index import FILE, Index, read_index
from journeyman.trials.store.listing import indexed_rows, unseen_rows
from journeyman.trials.store.place import LocalPlace, RemotePlace
from journeyman.trials.store.rows import TrialRow, row_of
from journeyman.trials.store.space import SpaceGuard
from journeyman.trials.store.transfer import SUFFIX, record_of, unbundle


class Owner:
    """Takes trials into a run. What its methods returned is acknowledged: it survives ``kill -9`` of anybody.

    Args:
        run: the run directory, on local disk.
        index: where the index lies; None puts it into the run directory.
        space: when to pause for disk space.

    Raises:
        InputError: another process owns the run, or the index would lie on a shared filesystem.
    """

    def __init__(self, run: Path, *, index: Path | None = None, space: SpaceGuard | None = None) -> None:
        self.run = run
        self._place = LocalPlace(run)
        self._space = space or SpaceGuard()
        run.mkdir(parents=True, exist_ok=True)
        self._index = Index(index or run / FILE)
        self._admit_unseen()

    def __enter__(self) -> Owner:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the run; another process may own it now."""
        self._index.close()

    def admit(self, directory: Path, record: Mapping[str, Any] | None = None) -> str:
        """Acknowledge a closed trial that was written below this run; returns its key.

        Args:
            directory: of the trial.
            record: ``HotTrial.stored``, by whoever has just closed it; None reads what lies there.

        Raises:
            InputError: it is not closed, or lies elsewhere.
        """
        try:
            relative = directory.relative_to(self.run).as_posix()
        except ValueError as error:
            raise InputError(str(directory), f"lies outside the run {self.run}", hint="bundle it") from error
        row = row_of_directory(self._place, relative) if record is None else row_of(record, "hot", relative)
        if row is None or not row.is_done:
            raise InputError(str(directory), "is not closed")
        self._space.write(self.run, lambda: self._put(row))
        return row.key

    def _put(self, row: TrialRow) -> None:
        try:
            self._index.put([row])
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_FULL:
                raise
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from error

    def receive(self, data: bytes) -> str:
        """Store a bundle (``transfer.bundle``) and acknowledge it; returns its key. The same bundle twice is once.

        Raises:
            InputError: it is damaged, or this attempt is stored with another content: closed trials are immutable.
            StorageError: no disk space within the guard's limit.
        """
        trial_id, attempt, seal = record_of(data)
        directory = self.run / place_of(trial_id, attempt)
        if (directory / DONE).is_file():
            if (directory / DONE).read_bytes() != seal:
                raise InputError(str(directory), "is stored with another content; a retry is a new attempt")
        else:
            self._space.write(self.run, lambda: unbundle(data, directory))
        return self.admit(directory)

    def collect(self, url: str) -> list[str]:
        """Take in every trial uploaded to ``url`` that is not here yet; returns the keys of the new ones."""
        place = RemotePlace(url)
        new = []
        for name in place.files("", SUFFIX):
            stem = name.removesuffix(SUFFIX)
            shard = stem.rsplit("-", 2)[-2][:2]
            if not self._place.exists(f"trials/{shard}/{stem}/{DONE}"):
                new.append(self.receive(place.read(name)))
        return new

    def rebuild(self) -> int:
        """Make the index anew from the files; returns the number of rows."""
        return self._index.replace_all(indexed_rows(self._place))

    def _admit_unseen(self) -> None:
        """Rows for trials that were closed while nobody owned the run, or whose owner was killed in between."""
        missing = list(unseen_rows(self._place, read_index(self._index.path) or ()))
        if missing:
            self._index.put(missing)
