"""The one reading interface: a run by path or URL, its trials as rows, any trajectory as token columns."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from journeyman.engines.experts import Experts
from journeyman.errors import InputError, nearest
from journeyman.tokens.context import Columns, Segment
from journeyman.tokens.segments import inferred, of_json
from journeyman.trials.store.cold import FOLDER, ColdStore
from journeyman.trials.store.columns import DTYPES
from journeyman.trials.store.events import read_events, segments_told
from journeyman.trials.store.hot_reading import read_hot, read_hot_event_text, read_hot_experts, read_record
from journeyman.trials.store.index import FILE, read_index
from journeyman.trials.store.listing import (
    BATCH_TOKENS,
    batch_records,
    batch_rows,
    indexed_rows,
    open_rows,
    unseen_rows,
)
from journeyman.trials.store.place import LocalPlace, Place, place_at
from journeyman.trials.store.rows import TrialRow
from journeyman.trials.store.schema import Record


def open_run(path_or_url: str | Path) -> Run:
    """Open a run, or the folder that ``pack --to`` filled, for reading.

    Args:
        path_or_url: a directory, or any fsspec URL (``s3://bucket/run``).

    Raises:
        InputError: there is nothing there.
        EnvironmentMissing: the URL's protocol needs a library that is not installed.
    """
    place = place_at(path_or_url)
    if isinstance(place, LocalPlace) and not place.root.is_dir():
        raise InputError(str(path_or_url), "is not a directory", allowed="a run directory or a URL of one")
    return Run(place)


class Run:
    """A run being read; it may be written meanwhile. A context manager. Nothing in it is ever changed through this.

    Attributes:
        root: the path or URL.
    """

    def __init__(self, place: Place) -> None:
        self._place = place
        self.root = place.name("")
        self._cold = self._cold_store()
        self._rows: dict[str, TrialRow] | None = None
        self._batch: tuple[str, list[Record], dict[str, Any]] | None = None

    def __enter__(self) -> Run:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the files that random reads keep open."""
        self._cold.close()

    def trials(self, *, include_open: bool = False) -> list[TrialRow]:
        """One row per closed trial, in order of their keys.

        Args:
            include_open: also trials that were never closed (``is_done`` False): running, or their writer was killed.
        """
        self._rows = {row.key: row for row in self._listed()}
        found = list(self._rows.values())
        if include_open:
            found += [row for row in open_rows(self._place) if row.key not in self._rows]
        return sorted(found, key=lambda row: row.key)

    def trajectory(self, trial: str, *, attempt: int | None = None) -> Columns:
        """The token columns of a trial, ``[tokens]`` each, exactly as they were sampled.

        Args:
            trial: a key, or a trial id; of several attempts the last one, unless ``attempt`` says which.

        Raises:
            InputError: no such trial, the id occurs in several batches, its file is damaged, or ``gc`` removed it.
        """
        row = self.row(trial, attempt=attempt)
        if row.key in self._cold:
            return self._cold.trajectory(row.key)
        if row.layout == "batch":
            return self._batch_columns(row)
        columns = read_hot(self._place, row.place)
        if row.is_done and len(columns.ids) < row.n_tokens:
            raise InputError(
                self._place.name(row.place), f"is damaged: {len(columns.ids)} of {row.n_tokens} tokens can be read"
            )
        return columns

    def routed_experts(self, trial: str, *, attempt: int | None = None) -> Experts | None:
        """The experts each token was routed to, ``[tokens, layers, k]``; None where the engine told none.

        Rows are 0 of tokens that were never fed: the last of the trial, and of each segment before it. Raises as above.
        """
        row = self.row(trial, attempt=attempt)
        if row.key in self._cold:
            return self._cold.routed_experts(row.key)
        return None if row.layout == "batch" else read_hot_experts(self._place, row.place)

    def segments(self, trial: str, *, attempt: int | None = None) -> tuple[Segment, ...]:
        """The segments of a trial's context, at least the opening; of an old record they are inferred from its tokens.

        Raises:
            InputError: as above, or the record's segments are none.
        """
        row = self.row(trial, attempt=attempt)
        told = self.record(row.key).get("segments", ()) if row.is_done else segments_told(self.events(row.key))
        if told is None:
            return inferred(self.trajectory(row.key))
        try:
            return of_json(told)
        except ValueError as error:
            raise InputError(self._place.name(row.place), f"is damaged: {error}") from error

    def record(self, trial: str, *, attempt: int | None = None) -> Record:
        """Everything but the tokens: turns, calls, verdict, deliverables, in the current schema. Raises as above."""
        row = self.row(trial, attempt=attempt)
        if row.key in self._cold:
            return self._cold.record(row.key)
        if row.layout == "batch":
            return self._load_batch(row)[1][row.position]
        return read_record(self._place, row.place) or {}

    def events(self, trial: str, *, attempt: int | None = None) -> list[dict[str, Any]]:
        """The events of a trial, up to a torn tail; none in the batch layout. Raises as above."""
        return read_events(self.event_text(trial, attempt=attempt).encode()).events

    def event_text(self, trial: str, *, attempt: int | None = None) -> str:
        """The whole lines of a trial's event log as they were written, "" where there are none. Raises as above."""
        row = self.row(trial, attempt=attempt)
        if row.key in self._cold:
            return self._cold.events(row.key).decode()
        return "" if row.layout == "batch" else read_hot_event_text(self._place, row.place)

    def row(self, trial: str, *, attempt: int | None = None) -> TrialRow:
        """The row of a trial, given as for ``trajectory``."""
        if self._rows is None:
            self.trials()
        rows = self._rows or {}
        if trial in rows:
            return rows[trial]
        found = [row for row in rows.values() if row.trial_id == trial and attempt in (None, row.attempt)]
        if not found:
            found = [row for row in open_rows(self._place) if trial in (row.key, row.trial_id)]
        if not found:
            near = nearest(trial, rows)
            raise InputError(self.root, f"no trial {trial!r}", hint=f"nearest: {near}" if near else None)
        if len({row.batch for row in found}) > 1:
            keys = ", ".join(row.key for row in found[:4])
            raise InputError(self.root, f"{trial!r} occurs in {len(found)} batches", allowed=f"a key, e.g. {keys}")
        return max(found, key=lambda row: row.attempt)

    def _listed(self) -> Iterator[TrialRow]:
        if not isinstance(self._place, LocalPlace):
            yield from self._cold.rows()
            yield from (row for row in indexed_rows(self._place) if row.key not in self._cold)
        else:
            yield from self._local_rows(self._place)
        yield from (row for row in batch_rows(self._place) if row.key not in self._cold)

    def _local_rows(self, place: LocalPlace) -> Iterator[TrialRow]:
        """From the index where there is one, plus what was closed since and is not in it yet."""
        indexed = read_index(place.root / FILE)
        if indexed is None:
            yield from indexed_rows(place)
            if self._cold_folder != FOLDER:
                yield from self._cold.rows()
            return
        rows = list(indexed)
        yield from rows
        yield from unseen_rows(place, rows)

    def _cold_store(self) -> ColdStore:
        """Packed parts lie in ``cold/`` of a run, or directly at the target of ``pack --to``."""
        self._cold_folder = FOLDER
        below = ColdStore(self._place, FOLDER)
        if len(below):
            return below
        self._cold_folder = ""
        return ColdStore(self._place, "")

    def _batch_columns(self, row: TrialRow) -> Columns:
        _, _, arrays = self._load_batch(row)
        start, end = arrays["offsets"][row.position : row.position + 2]
        return Columns(**{name: arrays[name][start:end] for name in DTYPES})

    def _load_batch(self, row: TrialRow) -> tuple[str, list[Record], dict[str, Any]]:
        """The last batch read stays in memory: its trials are usually asked for one after the other."""
        if self._batch is None or self._batch[0] != row.place:
            path = f"{row.place}/{BATCH_TOKENS}" if row.place else BATCH_TOKENS
            with np.load(io.BytesIO(self._place.read(path))) as data:
                arrays = {name: data[name] for name in (*DTYPES, "offsets")}
            self._batch = (row.place, batch_records(self._place, row.place), arrays)
        return self._batch
