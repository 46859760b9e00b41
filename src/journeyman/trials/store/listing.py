"""What a run holds, from its files alone: the rows of the hot and cold layouts, and those of stored batches."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace

from journeyman.errors import InputError
from journeyman.trials.store.cold import FOLDER, ColdStore
from journeyman.trials.store.hot import DONE, place_of
from journeyman.trials.store.hot_reading import hot_directories, row_of_directory
from journeyman.trials.store.place import Place
from journeyman.trials.store.rows import TrialRow, row_of
from journeyman.trials.store.schema import Record, lifted

BATCH_RECORDS, BATCH_TOKENS = "trials.jsonl", "tokens.npz"
ASIDE = "discarded-"


def indexed_rows(place: Place) -> Iterator[TrialRow]:
    """Rows of the closed trials in the hot and cold layouts, in order of their places: what the index must hold.

    A trial that is packed has one row, the cold one, whether its hot directory is still there or not.
    """
    cold = ColdStore(place, FOLDER)
    unlisted = {key for part in cold.parts for key in part.keys}
    for directory in hot_directories(place):
        row = row_of_directory(place, directory)
        if row is None or not row.is_done:
            continue
        if row.key in cold:
            unlisted.discard(row.key)
            yield as_cold(row, cold)
        else:
            yield row
    if unlisted:
        yield from (row for row in cold.rows() if row.key in unlisted)
    cold.close()


def as_cold(row: TrialRow, cold: ColdStore) -> TrialRow:
    """The row of a trial that was packed, from the row it had before."""
    where, number = cold.located(row.key)
    return replace(row, layout="cold", place=where, position=number)


def unseen_rows(place: Place, seen: Iterable[TrialRow]) -> Iterator[TrialRow]:
    """Rows of closed trials in the hot layout that are not among ``seen``; of those, not even the record is read."""
    known = {place_of(row.trial_id, row.attempt) for row in seen if not row.batch}
    for directory in hot_directories(place):
        if directory not in known and place.exists(f"{directory}/{DONE}"):
            row = row_of_directory(place, directory)
            if row is not None:
                yield row


def open_rows(place: Place) -> Iterator[TrialRow]:
    """Rows of trials that were never closed: running, or their writer was killed."""
    for directory in hot_directories(place):
        if not place.exists(f"{directory}/{DONE}"):
            row = row_of_directory(place, directory)
            if row is not None:
                yield row


def batch_directories(place: Place, below: str = "", depth: int = 4) -> Iterator[str]:
    """Directories that hold a stored batch, sorted; what an interrupted step left (``discarded-``) is no part of it."""
    if place.exists(f"{below}/{BATCH_RECORDS}" if below else BATCH_RECORDS):
        yield below
        return
    if depth == 0:
        return
    for directory in place.directories(below):
        name = directory.rsplit("/", 1)[-1]
        if not name.startswith(ASIDE) and not (below == "" and name in ("trials", FOLDER)):
            yield from batch_directories(place, directory, depth - 1)


def batch_records(place: Place, directory: str) -> list[Record]:
    """The records of a stored batch in the current schema.

    Raises:
        InputError: a line is damaged.
    """
    path = f"{directory}/{BATCH_RECORDS}" if directory else BATCH_RECORDS
    try:
        lines = place.read(path).decode().splitlines()
        return [lifted({"schema_version": 2, **json.loads(line)}, place.name(path)) for line in lines]
    except ValueError as error:
        raise InputError(place.name(path), f"is damaged: {error}") from error


def batch_rows(place: Place) -> Iterator[TrialRow]:
    """Rows of every stored batch below a run. A trial id may occur in several batches; its key holds the batch."""
    for directory in batch_directories(place):
        for number, record in enumerate(batch_records(place, directory)):
            name = directory or "."
            yield row_of(record, "batch", directory, batch=name, position=number)
