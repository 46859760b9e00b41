"""Packing: closed trials become Parquet parts, in the run's ``cold/`` or at any fsspec URL.

A part is written to a temporary file, synced, renamed or uploaded, and only then named by a manifest; a part without a
manifest does not exist for readers. Packing again packs what is new. Nothing is removed: that is ``gc``'s work.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import logging
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from journeyman.digest import sha256_file
from journeyman.durable import storage_error
from journeyman.engines.experts import packed
from journeyman.errors import InputError
from journeyman.tokens.context import Columns
from journeyman.trials.store.cold import FOLDER, MANIFEST
from journeyman.trials.store.cold_schema import ROWS_PER_GROUP, ROWS_PER_PART, cold_schema, writer_options
from journeyman.trials.store.columns import SPAN_FIELDS, spans_of
from journeyman.trials.store.hot import DONE, REMOVED
from journeyman.trials.store.hot_reading import damaged_files
from journeyman.trials.store.index import FILE, Index
from journeyman.trials.store.listing import indexed_rows
from journeyman.trials.store.place import LocalPlace, Place, is_url, place_at
from journeyman.trials.store.rows import TrialRow
from journeyman.trials.store.run import Run, open_run
from journeyman.trials.store.schema import VERSION, Record

LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class PackedTrial:
    """One trial on its way into a part."""

    row: TrialRow
    columns: Columns
    record: Record
    events: str
    experts: bytes | None = None


@dataclass(frozen=True)
class Packed:
    """What a packing did.

    Attributes:
        where: directory or URL of the parts.
        n_trials, n_tokens, n_parts, bytes: what was written; bytes of the parts together.
        n_packed_before: closed trials that older manifests already name.
        unpackable: keys of closed trials that stay unpacked: damaged, or without tokens since ``gc --force``.
    """

    where: str
    n_trials: int
    n_tokens: int
    n_parts: int
    bytes: int
    n_packed_before: int
    unpackable: tuple[str, ...]


def pack_run(run: Path, *, to: str | None = None, index: Path | None = None) -> Packed:
    """Pack every closed trial of a run that no manifest names yet, and bring the index up to date.

    Args:
        run: the run directory.
        to: an fsspec URL or another directory for the parts; None keeps them in the run. The run remembers it.
        index: where the index lies, when not in the run.

    Raises:
        InputError: no run there, or another process owns it.
        StorageError: the parts cannot be written.
    """
    if to and not is_url(to):
        to = str(Path(to).resolve())  # the run remembers it, wherever it is read from
    with open_run(run) as reading:
        rows = reading.trials()
        cold = {row.key for row in rows if row.layout == "cold"}
        missing = [row for row in rows if row.key not in cold]
        unpackable = {row.key for row in missing if row.layout == "hot" and not _is_whole(run, row)}
        new = sorted((row for row in missing if row.key not in unpackable), key=_neighbours)
        place = place_at(to) if to else LocalPlace(run)
        prefix = "" if to else f"{FOLDER}/"
        parts = [
            _put(place, prefix, trials)
            for trials in _chunks((_trial(reading, row) for row in new), ROWS_PER_PART, len(new))
        ]
    if parts:
        name, text = manifest_of(parts, to or "")
        place.write(f"{prefix}{name}", text)
        if to:  # after the parts' own manifest, so that the run never names what others cannot find
            LocalPlace(run).write(f"{FOLDER}/{name}", text)
    with Index(index or run / FILE) as writing:
        writing.replace_all(indexed_rows(LocalPlace(run)))
    return Packed(
        where=to or str(run / FOLDER),
        n_trials=len(new),
        n_tokens=sum(row.n_tokens for row in new),
        n_parts=len(parts),
        bytes=sum(part["bytes"] for part in parts),
        n_packed_before=len(cold),
        unpackable=tuple(sorted(unpackable)),
    )


def local_run(path_or_url: str) -> Path:
    """The directory of a run that can be packed. Raises InputError for a URL: its index must be on a local disk."""
    if is_url(path_or_url):
        raise InputError(path_or_url, "is not on this machine", hint="pack the run where it lies, with --to URL")
    return Path(path_or_url)


def write_part(path: Path, trials: Iterable[PackedTrial], options: dict[str, Any] | None = None) -> list[str]:
    """Write one Parquet file, a row group at a time; returns the keys in it, in order. The file is synced.

    Args:
        options: other keywords for the Parquet writer, for measuring alternatives.

    Raises:
        StorageError: the disk is full or not writable; no file stays.
    """
    import pyarrow.parquet as pq

    schema, keys = cold_schema(), []
    try:
        with pq.ParquetWriter(path, schema, **(options or writer_options())) as writer:
            source = iter(trials)
            while group := list(itertools.islice(source, ROWS_PER_GROUP)):
                writer.write_table(table_of(group, schema), row_group_size=ROWS_PER_GROUP)
                keys += [trial.row.key for trial in group]
        with path.open("rb") as file:
            os.fsync(file.fileno())
    except OSError as error:
        path.unlink(missing_ok=True)
        raise storage_error(path, error) from error
    return keys


def table_of(trials: Sequence[PackedTrial], schema: Any) -> Any:
    """Some trials as an Arrow table of the cold schema."""
    import pyarrow as pa

    spans = [spans_of(trial.columns) for trial in trials]
    flat = np.concatenate(spans) if spans else np.empty((0, len(SPAN_FIELDS)), dtype=np.int32)
    span_type = schema.field("turn_spans").type.value_type
    columns = {
        **{name: [getattr(t.row, name) for t in trials] for name in schema.names if hasattr(trials[0].row, name)},
        "trajectory_id": [trial.row.key for trial in trials],
        "reward_parts": [_reward_parts(trial.record) for trial in trials],
        "policy_version_min": [_version(trial.columns, np.min) for trial in trials],
        "policy_version_max": [_version(trial.columns, np.max) for trial in trials],
        "token_ids": _lists([trial.columns.ids for trial in trials]),
        "loss_mask": _lists([trial.columns.mask for trial in trials]),
        "logprobs": _lists([trial.columns.logprob for trial in trials]),
        "turn_spans": pa.ListArray.from_arrays(
            _offsets([len(span) for span in spans]),
            pa.StructArray.from_arrays([pa.array(flat[:, i]) for i in range(flat.shape[1])], fields=list(span_type)),
        ),
        "segments": [_segments(trial.record) for trial in trials],
        "routed_experts": [trial.experts for trial in trials],
        "record": [json.dumps(trial.record, ensure_ascii=False) for trial in trials],
        "events": [trial.events for trial in trials],
    }
    return pa.table(
        [pa.array(columns[f.name], f.type) if isinstance(columns[f.name], list) else columns[f.name] for f in schema],
        schema=schema,
    )


def manifest_of(parts: Sequence[dict[str, Any]], base: str) -> tuple[str, bytes]:
    """Name and bytes of the manifest of some parts. Its name comes from its content, so no two packers collide."""
    text = json.dumps({"schema_version": VERSION, "base": base, "parts": parts}, indent=1).encode()
    return f"{MANIFEST}{hashlib.sha256(text).hexdigest()[:16]}.json", text


def _put(place: Place, prefix: str, trials: Iterable[PackedTrial]) -> dict[str, Any]:
    """Write one part to its place; returns its entry in the manifest."""
    local = place.root / prefix if isinstance(place, LocalPlace) else None
    if local is not None:
        local.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=".part-", suffix=".tmp", dir=local)
    os.close(handle)
    path = Path(temporary)
    try:
        keys = write_part(path, trials)
        digest, size = sha256_file(path), path.stat().st_size
        name = f"part-{digest[:16]}.parquet"
        if local is not None:
            path.chmod(0o644)
            path.replace(local / name)
        else:
            place.put(path, f"{prefix}{name}")
    finally:
        path.unlink(missing_ok=True)
    LOG.info("packed %d trials into %s", len(keys), place.name(f"{prefix}{name}"))
    return {"file": name, "bytes": size, "sha256": digest, "keys": keys}


def _trial(run: Run, row: TrialRow) -> PackedTrial:
    routed = run.routed_experts(row.key)
    experts = None if routed is None else packed(routed)
    return PackedTrial(row, run.trajectory(row.key), run.record(row.key), run.event_text(row.key), experts)


def _is_whole(run: Path, row: TrialRow) -> bool:
    """Whether a hot trial is as it was closed; says what is wrong when it is not."""
    if (run / row.place / REMOVED).exists():
        LOG.warning("%s cannot be packed: its tokens were removed by gc --force", row.key)
        return False
    damaged = damaged_files(LocalPlace(run), row.place)
    if damaged:
        LOG.warning("%s cannot be packed: %s differs from its digest in %s", row.key, ", ".join(damaged), DONE)
    return not damaged


def _neighbours(row: TrialRow) -> tuple[str, ...]:
    """Trials of one task beside each other: they share a prompt, and zstd finds what it has just seen."""
    return (row.batch, row.task_id, row.harness, row.key)


def _chunks(trials: Iterator[PackedTrial], size: int, count: int) -> Iterator[Iterator[PackedTrial]]:
    for start in range(0, count, size):
        yield itertools.islice(trials, min(size, count - start))


def _offsets(lengths: Sequence[int]) -> Any:
    return np.cumsum([0, *lengths], dtype=np.int32)


def _lists(values: Sequence[Any]) -> Any:
    import pyarrow as pa

    return pa.ListArray.from_arrays(_offsets([len(v) for v in values]), pa.array(np.concatenate(values)))


def _version(columns: Columns, choose: Any) -> int:
    sampled = columns.version[columns.version >= 0]
    return int(choose(sampled)) if len(sampled) else -1


def _reward_parts(record: Record) -> list[dict[str, Any]]:
    """The named parts of a reward: the record's own, else one per scored check of its verdict."""
    parts = record.get("reward_parts")
    if isinstance(parts, dict):
        return [{"name": str(name), "value": float(value)} for name, value in parts.items()]
    checks = (record.get("verdict") or {}).get("checks") or ()
    found = []
    for check in checks:
        if isinstance(check, dict) and check.get("score") is not None:
            found.append({"name": str(check.get("id") or ""), "value": float(check["score"])})
    return found


def _segments(record: Record) -> list[dict[str, Any]] | None:
    """Segments of a context that was edited; none for one that only grew; None where an old record does not say."""
    told = record.get("segments", ())
    if told is None:
        return None
    return [{**entry, "shared": [{"start": a, "end": b} for a, b in entry["shared"]]} for entry in told]
