"""The batch layout: many trials in two files, ``trials.jsonl`` (summaries) and ``tokens.npz`` (columns, offsets).

A batch appears as a whole or not at all: it is written beside its final place and published by one rename. The index
of a trial is its line number; its tokens are ``column[offsets[i]:offsets[i + 1]]``.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from journeyman.durable import publish_directory
from journeyman.errors import InputError, StorageError
from journeyman.redact import clean_record
from journeyman.tokens.context import Columns
from journeyman.trials.record import Trial
from journeyman.trials.store.space import SpaceGuard

COLUMN_NAMES = tuple(field.name for field in fields(Columns))


def write_batch(directory: Path, trials: Sequence[Trial], *, space: SpaceGuard | None = None) -> None:
    """Store ``trials`` (at least one) under ``directory``; what stands there already is kept beside it as evidence.

    A disk that runs low pauses the run until there is room (``space``).

    Raises:
        StorageError: no room within the guard's limit, or not writable; nothing under ``directory`` has changed.
    """
    staging = directory.with_name(f".{directory.name}.{os.getpid()}.tmp")
    try:
        staging.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(str(directory), f"cannot be written: {error.strerror or error}") from error
    (space or SpaceGuard()).write(staging.parent, lambda: _write(staging, trials, directory))
    keep_aside(directory)
    publish_directory(staging, directory)


def _write(staging: Path, trials: Sequence[Trial], directory: Path) -> None:
    """Both files; what was half written is taken back before the error is raised."""
    try:
        shutil.rmtree(staging, ignore_errors=True)
        staging.mkdir(parents=True)
        with (staging / "trials.jsonl").open("w") as file:
            file.writelines(json.dumps(clean_record(t.summary()), ensure_ascii=False) + "\n" for t in trials)
        offsets = np.cumsum([0, *(len(t.tokens.ids) for t in trials)], dtype=np.int64)
        columns: dict[str, Any] = {n: np.concatenate([getattr(t.tokens, n) for t in trials]) for n in COLUMN_NAMES}
        np.savez(staging / "tokens.npz", offsets=offsets, **columns)
    except OSError as error:
        shutil.rmtree(staging, ignore_errors=True)
        raise StorageError(str(directory), f"cannot be written: {error.strerror or error}") from error


def keep_aside(directory: Path) -> None:
    """Rename what an interrupted step left to ``discarded-<n>-<name>``: evidence, outside all figures."""
    if not directory.exists():
        return
    number = 1
    while (aside := directory.with_name(f"discarded-{number}-{directory.name}")).exists():
        number += 1
    directory.rename(aside)


def read_summaries(directory: Path) -> list[dict[str, Any]]:
    """The summaries of a stored batch, in order. Raises InputError when there is none."""
    path = directory / "trials.jsonl"
    if not path.is_file():
        raise InputError(str(path), "no stored trials here")
    return [json.loads(line) for line in path.read_text().splitlines()]


def read_tokens(directory: Path) -> Iterator[Columns]:
    """The token columns of each trial of a stored batch, in order."""
    with np.load(directory / "tokens.npz") as data:
        columns = {name: data[name] for name in COLUMN_NAMES}
        offsets = data["offsets"]
    for start, end in itertools.pairwise(offsets):
        yield Columns(**{name: column[start:end] for name, column in columns.items()})
