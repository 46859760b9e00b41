"""The index: one SQLite file per run with a row per trial. It holds nothing that the files do not say.

WAL on a network filesystem loses data, so the index lies on a local disk; one process writes it, guarded by a lock on
that disk. Losing it costs one rebuild.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType

from journeyman.errors import InputError
from journeyman.trials.store.rows import ROW_FIELDS, TrialRow
from journeyman.trials.store.schema import VERSION

FILE = "index.sqlite"
SHARED = (
    "nfs",
    "cifs",
    "smb",
    "lustre",
    "gpfs",
    "beegfs",
    "ceph",
    "glusterfs",
    "9p",
    "fuse.s3",
    "fuse.gcs",
    "fuse.ssh",
)
_TYPES = {
    **dict.fromkeys(("sample", "attempt", "n_tokens", "n_sampled", "n_calls", "position"), "INTEGER NOT NULL"),
    **dict.fromkeys(("is_done",), "INTEGER NOT NULL"),
    **dict.fromkeys(("reward", "cost_usd"), "REAL"),
    "temperature": "REAL NOT NULL",
    "passed": "INTEGER",
    "key": "TEXT PRIMARY KEY",
}
_PUT = f"INSERT OR REPLACE INTO trials VALUES ({', '.join('?' * len(ROW_FIELDS))})"
_BOOLEANS = ("passed", "is_done")


class Index:
    """The writing end; threads of the owner may share it. A context manager.

    Args:
        path: the file, on a local disk; made when missing.

    Raises:
        InputError: another process has it open, or it would lie on a shared filesystem.
    """

    def __init__(self, path: Path) -> None:
        refuse_shared(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._lock = open(path.with_name(path.name + ".lock"), "w")  # noqa: SIM115 - held as long as the index
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._lock.close()
            raise InputError(str(path), "is being written by another process", hint="one owner per run") from error
        self._turn = threading.Lock()
        self._db = sqlite3.connect(path, timeout=30.0, isolation_level=None, check_same_thread=False)
        for statement in ("PRAGMA journal_mode=WAL", "PRAGMA synchronous=NORMAL"):
            self._db.execute(statement)
        if self._db.execute("PRAGMA user_version").fetchone()[0] != VERSION:
            self._db.execute("DROP TABLE IF EXISTS trials")
        columns = ", ".join(f"{name} {_TYPES.get(name, 'TEXT NOT NULL')}" for name in ROW_FIELDS)
        self._db.execute(f"CREATE TABLE IF NOT EXISTS trials ({columns}) WITHOUT ROWID")
        self._db.execute(f"PRAGMA user_version={VERSION}")

    def __enter__(self) -> Index:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def put(self, rows: Iterable[TrialRow]) -> int:
        """Add or replace rows in one transaction; returns how many."""
        values = [tuple(vars(row).values()) for row in rows]
        with self._turn:
            self._db.execute("BEGIN")
            try:
                self._db.executemany(_PUT, values)
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:  # of a full disk SQLite has taken it back already
                    self._db.execute("ROLLBACK")
                raise
        return len(values)

    def replace_all(self, rows: Iterable[TrialRow]) -> int:
        """Make the index hold exactly these rows, in one transaction; returns how many."""
        values = (tuple(vars(row).values()) for row in rows)
        with self._turn:
            self._db.execute("BEGIN")
            try:
                self._db.execute("DELETE FROM trials")
                self._db.executemany(_PUT, values)
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")
            return int(self._db.execute("SELECT count(*) FROM trials").fetchone()[0])

    def close(self) -> None:
        self._db.close()
        self._lock.close()


def read_index(path: Path) -> Iterator[TrialRow] | None:
    """All rows in order of their keys; None when there is no index of this version that can be read."""
    if not path.is_file():
        return None
    try:
        db = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=30.0)
        if db.execute("PRAGMA user_version").fetchone()[0] != VERSION:
            return None
        found = db.execute(f"SELECT {', '.join(ROW_FIELDS)} FROM trials ORDER BY key").fetchall()
        db.close()
    except sqlite3.Error:
        return None
    return (_row(values) for values in found)


def refuse_shared(path: Path, shared: tuple[str, ...] = SHARED) -> None:
    """Raise InputError when ``path`` would lie on a filesystem that several machines share."""
    kind = filesystem_of(path)
    if kind.startswith(shared):
        raise InputError(
            str(path), f"lies on {kind}, where SQLite is not safe", hint="give the index a directory on a local disk"
        )


def filesystem_of(path: Path) -> str:
    """Type of the filesystem that holds ``path`` or its nearest existing parent, "" where that is not known."""
    try:
        with open("/proc/self/mountinfo") as file:
            mounts = [line.split() for line in file]
    except OSError:
        return ""
    real = os.path.realpath(path)
    best, kind = "", ""
    for words in mounts:
        point = words[4].replace("\\040", " ")
        if (real == point or real.startswith(point.rstrip("/") + "/")) and len(point) >= len(best):
            best, kind = point, words[words.index("-") + 1]
    return kind


def _row(values: tuple[object, ...]) -> TrialRow:
    named = dict(zip(ROW_FIELDS, values, strict=True))
    for name in _BOOLEANS:
        named[name] = None if named[name] is None else bool(named[name])
    return TrialRow(**named)  # type: ignore[arg-type]
