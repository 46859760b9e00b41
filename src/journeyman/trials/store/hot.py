"""The hot layout: one directory per trial, written while it runs, immutable once closed.

``trials/<2 hex>/<name>-<16 hex>-a<attempt>/`` holds at most six files: ``tokens.arrows``, ``events.jsonl``,
``trial.json`` (the record), ``experts.npy.zz`` (only where an engine told routed experts), ``DONE`` (sizes and digests;
written last, by rename, after everything was synced) and, once ``gc`` took tokens and events away, ``REMOVED``. A
directory without ``DONE`` belongs to a trial that runs or whose writer was killed: all of it up to the torn tail is
readable.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from journeyman.clock import now
from journeyman.durable import storage_error, sync_directory, write_bytes, write_part
from journeyman.engines.experts import packed
from journeyman.errors import InputError
from journeyman.redact import clean_record
from journeyman.tokens.context import Columns, Context, Source
from journeyman.trials.record import Trial
from journeyman.trials.store.columns import calls_of, cut, has_turn
from journeyman.trials.store.events import EventLog
from journeyman.trials.store.growing import seal_of
from journeyman.trials.store.routed import RoutedTurn, assembled
from journeyman.trials.store.schema import VERSION
from journeyman.trials.store.space import SpaceGuard
from journeyman.trials.store.stream import TokenStream

TOKENS, EVENTS, RECORD, DONE, REMOVED = "tokens.arrows", "events.jsonl", "trial.json", "DONE", "REMOVED"
EXPERTS = "experts.npy.zz"
CONTENT = (TOKENS, EVENTS, RECORD)
_SAMPLED = int(Source.SAMPLED)


def place_of(trial_id: str, attempt: int) -> str:
    """Path of a trial below the run directory; equal ids give equal paths on every node."""
    digest = hashlib.sha256(trial_id.encode()).hexdigest()
    name = re.sub(r"[^A-Za-z0-9._]+", "-", trial_id).strip("-.")[:40] or "trial"
    return f"trials/{digest[:2]}/{name}-{digest[:16]}-a{attempt}"


class HotTrial:
    """One trial being written. A context manager: leaving it without ``close`` leaves an open trial behind.

    Args:
        root: the run directory, or a scratch directory on this node's local disk.
        trial_id, attempt: which trial. A directory that a killed writer left is continued after its last whole call.
        space: when to pause for disk space.
        durable: sync to disk at the close. False only where the data can be made again, e.g. in benchmarks.

    Attributes:
        stored: the record as it was closed, None before.

    Raises:
        InputError: this attempt is already closed; closed trials are immutable.
        StorageError: the place cannot be written.
    """

    def __init__(
        self, root: Path, trial_id: str, attempt: int = 1, *, space: SpaceGuard | None = None, durable: bool = True
    ) -> None:
        self.trial_id, self.attempt = trial_id, attempt
        self.directory = root / place_of(trial_id, attempt)
        self._space, self._root = space or SpaceGuard(), root
        self._durable = durable
        self.stored: dict[str, Any] | None = None
        self._where = str(self.directory)
        if os.path.exists(f"{self._where}/{DONE}"):  # noqa: PTH110 - a hot path, as what follows
            raise InputError(str(self.directory), f"attempt {attempt} of {trial_id!r} is closed", hint="retry as a new")
        try:
            if not os.path.isdir(root):  # noqa: PTH112
                root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise storage_error(root, error) from error
        self._space.write(root, self._open)

    def _open(self) -> None:
        os.makedirs(self._where, exist_ok=True)  # noqa: PTH103
        self._routed: list[RoutedTurn] = []
        self._tokens = TokenStream(f"{self._where}/{TOKENS}", self.trial_id, self.attempt)
        self._events = EventLog(f"{self._where}/{EVENTS}")
        self._n_tokens = self._n_sampled = self._n_calls = 0
        self._versions: set[int] = set()
        for call in self._tokens.calls:
            self._count(call)

    def __enter__(self) -> HotTrial:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._tokens.file.close()
        self._events.file.close()

    @property
    def n_tokens(self) -> int:
        """Tokens acknowledged so far, those a killed writer left included."""
        return self._n_tokens

    def append_call(self, call: Columns) -> None:
        """Acknowledge the tokens of one model call: what was new before the turn, then the turn. Each token once.

        Raises:
            StorageError: no room within the guard's limit; the call was not stored.
        """
        self._write(lambda: self._tokens.append(call))
        self._count(call)

    def _count(self, call: Columns) -> None:
        """Keep what the record says of the tokens; of the versions only the first and the last count."""
        self._n_calls += has_turn(call)
        self._n_tokens += len(call.ids)
        self._n_sampled += int(np.count_nonzero(call.source == _SAMPLED))
        known = call.version[call.version >= 0]
        if len(known):
            self._versions |= {int(known.min()), int(known.max())}

    def append_context(self, context: Context) -> None:
        """Acknowledge what is new in a context since the last call."""
        columns = context.arrays()
        if len(columns.ids) > self._n_tokens:
            self.append_call(cut(columns, self._n_tokens, len(columns.ids)))

    def add_experts(self, start: int, data: bytes) -> None:
        """Take the routed experts of the tokens from ``start`` on (``engines.experts``); stored by ``close``."""
        self._routed.append(RoutedTurn(start, data))

    def event(self, kind: str, **fields: Any) -> None:
        """Acknowledge one event."""
        self._write(lambda: self._events.append(clean_record({"at": now(), "type": kind, **fields})))

    def close(self, record: Mapping[str, Any]) -> Path:
        """Write the record and close the trial; returns its directory, in which nothing changes any more.

        Raises:
            StorageError: as for ``append_call``; the trial stays open.
        """
        stored = {
            "segments": [],  # unless the record tells of some: the context only grew
            **clean_record(record),
            "schema_version": VERSION,
            "trial_id": self.trial_id,
            "attempt": self.attempt,
            "n_tokens": self._n_tokens,
            "n_sampled": self._n_sampled,
            "n_calls": self._n_calls,
            "version_min": min(self._versions, default=-1),
            "version_max": max(self._versions, default=-1),
        }
        text = json.dumps(stored, ensure_ascii=False, allow_nan=False).encode()
        self._write(self._tokens.finish)
        grown = {TOKENS: self._tokens.file, EVENTS: self._events.file}
        whole = {RECORD: text}
        if self._routed:
            whole[EXPERTS] = packed(assembled(self._routed, self._n_tokens))
        for file in grown.values():
            if self._durable:
                self._write(file.sync)
            file.close()
        for name, data in whole.items():
            self._write(partial(self._put, name, data))
        seal = {name: file.seal() for name, file in grown.items()}
        seal |= {name: seal_of(data) for name, data in whole.items()}
        self._write(lambda: self._publish(DONE, json.dumps({"schema_version": VERSION, "files": seal}).encode()))
        if self._durable:
            sync_directory(os.path.dirname(self._where))  # noqa: PTH120
        self.stored = stored
        return self.directory

    def _put(self, name: str, data: bytes) -> None:
        """Write a file that counts once ``DONE`` is there; its entry is durable with that one's."""
        write_part(f"{self._where}/{name}", data, is_synced=self._durable)

    def _publish(self, name: str, data: bytes) -> None:
        if self._durable:
            write_bytes(self.directory / name, data)
            return
        temporary = self.directory / f".{name}.{os.getpid()}.tmp"
        temporary.write_bytes(data)
        temporary.replace(self.directory / name)

    def _write(self, action: Callable[[], None]) -> None:
        self._space.write(self._root, action)


def write_hot(root: Path, trial: Trial, *, space: SpaceGuard | None = None) -> Path:
    """Store a trial that has ended, call by call, in the hot layout; returns its directory."""
    with HotTrial(root, trial.request.trial_id, trial.attempt, space=space) as hot:
        for call in calls_of(trial.tokens):
            hot.append_call(call)
        return hot.close(trial.summary())
