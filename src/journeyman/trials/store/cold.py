"""Reading the cold layout: Parquet parts and the manifests that say what is in them, local or at a URL."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from journeyman.engines.experts import Experts, unpacked
from journeyman.errors import InputError
from journeyman.tokens.context import Columns
from journeyman.trials.store.cold_schema import LIGHT, ROWS_PER_GROUP
from journeyman.trials.store.columns import from_spans
from journeyman.trials.store.place import Place, place_at
from journeyman.trials.store.rows import TrialRow, row_of
from journeyman.trials.store.schema import VERSION_KEY, Record, checked_version, lifted

FOLDER = "cold"
MAX_OPEN_PARTS = 64


@dataclass(frozen=True)
class Part:
    """One Parquet file of a packed run.

    Attributes:
        base: where it lies when that is a URL, else "" (below the manifest).
        file: its name. bytes, sha256: what it must be.
        keys: the trials in it, in order.
    """

    base: str
    file: str
    bytes: int
    sha256: str
    keys: tuple[str, ...]


MANIFEST = "_manifest-"
"""How manifests begin: a leading underscore makes Parquet readers pass them over when they are given the folder."""


def read_manifests(place: Place, folder: str) -> list[Part]:
    """Every part that the manifests of a folder name; none when nothing was packed."""
    parts: dict[tuple[str, str], Part] = {}
    for path in place.files(folder, ".json"):
        if not path.rsplit("/", 1)[-1].startswith(MANIFEST):
            continue
        manifest = json.loads(place.read(path))
        checked_version(manifest.get("schema_version"), place.name(path))
        for part in manifest["parts"]:
            found = Part(manifest["base"], part["file"], part["bytes"], part["sha256"], tuple(part["keys"]))
            parts[found.base, found.file] = found
    return list(parts.values())


class ColdStore:
    """Packed trials of one place. Keeps the last parts open, so that one handle serves many random reads.

    Args:
        place: the run, or the folder that ``pack --to`` filled.
        folder: ``cold`` below a run, "" at the target of ``pack --to``.
    """

    def __init__(self, place: Place, folder: str) -> None:
        self._place, self._folder = place, folder
        self.parts = read_manifests(place, folder)
        self._where = {key: (part, number) for part in self.parts for number, key in enumerate(part.keys)}
        self._open: OrderedDict[tuple[str, str], Any] = OrderedDict()

    def __contains__(self, key: str) -> bool:
        return key in self._where

    def __len__(self) -> int:
        return len(self._where)

    def close(self) -> None:
        while self._open:
            self._open.popitem()[1].close(force=True)

    def located(self, key: str) -> tuple[str, int]:
        """File (below the run, or a URL) and row of a packed trial."""
        part, number = self._where[key]
        prefix = part.base or self._folder
        return (f"{prefix}/{part.file}" if prefix else part.file), number

    def rows(self) -> Iterator[TrialRow]:
        """The row of every packed trial, from the cheap columns alone."""
        for part in self.parts:
            file = self._file(part)
            table = file.read(columns=[name for name in LIGHT if name in file.schema_arrow.names])
            version = self._version(part)
            for number, found in enumerate(table.to_pylist()):
                key = part.keys[number]
                record = lifted({**found, "schema_version": version}, part.file)
                place, _ = self.located(key)
                yield row_of(record, "cold", place, batch=record.get("batch") or "", position=number)

    def trajectory(self, key: str) -> Columns:
        """The token columns of a packed trial; logprobs bit for bit as they were sampled."""
        part, number = self._where[key]
        names = ["token_ids", "loss_mask", "logprobs", "turn_spans"]
        table, at = self._group(part, number, names)
        ids, mask, logprob = (_values(table.column(name), at) for name in names[:3])
        spans = table.column("turn_spans").chunk(0)
        flat = spans.values.slice(spans.offsets[at].as_py(), len(spans[at]))
        return from_spans(ids, mask, logprob, np.stack([c.to_numpy() for c in flat.flatten()], axis=1))

    def routed_experts(self, key: str) -> Experts | None:
        """The routed experts of a packed trial, [tokens, layers, k]; None where none were told."""
        part, number = self._where[key]
        if "routed_experts" not in self._file(part).schema_arrow.names:  # packed before there were any
            return None
        table, at = self._group(part, number, ["routed_experts"])
        data = table.column("routed_experts")[at].as_py()
        return None if data is None else unpacked(data)

    def record(self, key: str) -> Record:
        """The record of a packed trial in the current schema."""
        part, number = self._where[key]
        table, at = self._group(part, number, ["record"])
        return lifted(json.loads(table.column("record")[at].as_py()), part.file)

    def events(self, key: str) -> bytes:
        """The event log of a packed trial, as it was."""
        part, number = self._where[key]
        table, at = self._group(part, number, ["events"])
        return str(table.column("events")[at].as_py() or "").encode()

    def _group(self, part: Part, number: int, columns: list[str]) -> tuple[Any, int]:
        file = self._file(part)
        group, at = divmod(number, ROWS_PER_GROUP)
        return file.read_row_group(group, columns=columns, use_threads=False), at

    def _version(self, part: Part) -> int:
        return checked_version((self._file(part).schema_arrow.metadata or {}).get(VERSION_KEY, b"1"), part.file)

    def _file(self, part: Part) -> Any:
        import pyarrow.parquet as pq

        name = (part.base, part.file)
        if name in self._open:
            self._open.move_to_end(name)
            return self._open[name]
        place = place_at(part.base) if part.base else self._place
        path = part.file if part.base or not self._folder else f"{self._folder}/{part.file}"
        if not place.exists(path):
            raise InputError(place.name(path), "is missing; its manifest names it", hint="pack the run again")
        self._open[name] = pq.ParquetFile(place.open(path), pre_buffer=False)
        while len(self._open) > MAX_OPEN_PARTS:
            self._open.popitem(last=False)[1].close(force=True)
        return self._open[name]


def _values(column: Any, at: int) -> Any:
    """Values of one list cell of a column, as numpy without a copy where Arrow allows it."""
    chunk = column.chunk(0)
    start = chunk.offsets[at].as_py()
    return chunk.values.slice(start, chunk.offsets[at + 1].as_py() - start).to_numpy(zero_copy_only=False)
