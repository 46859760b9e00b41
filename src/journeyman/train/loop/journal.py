"""What happened to Groups since the last checkpoint, appended and synced, so that ``kill -9`` loses no finished trial.

Segments ``journal-<n>.bin`` of records: submissions, finished trials with their tokens, filtered and dropped Groups. A
checkpoint names the segment that begins right after it. Steps are not in the journal: a step that no checkpoint covers
is redone, and its Groups are found here again. A torn record at the end of a segment is what a kill left: ignored.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from journeyman.durable import storage_error, sync_directory
from journeyman.train.loop.protocol import FinishedTrial

_HEAD = struct.Struct("<4sIII")  # magic, bytes of JSON, bytes of arrays, crc32 of both
_MAGIC = b"jmj1"
_COLUMNS = {"ids": np.int32, "mask": np.uint8, "logprobs": np.float32, "versions": np.int32}

_OPTIONAL = ("topk_ids", "topk_logprobs", "routed_experts")


class Journal:
    """The open segment of one run. One process writes it.

    Args:
        root: directory of the segments.
        segment: number of the one to write; an existing one of that number is continued behind its last whole record.
    """

    def __init__(self, root: Path, segment: int = 0) -> None:
        self.root, self.segment = root, segment
        root.mkdir(parents=True, exist_ok=True)
        self._file = self._open(segment)
        self._is_dirty = False

    def note(self, kind: str, facts: Mapping[str, Any]) -> None:
        """Append a record without tokens; ``sync`` makes it durable."""
        self._append({"kind": kind, **facts}, b"")

    def trial(self, trial: FinishedTrial) -> None:
        """Append a finished trial with its tokens; ``sync`` makes it durable."""
        facts = {name: getattr(trial, name) for name in ("position", "sample", "reward", "passed", "cause")}
        columns = {name: np.ascontiguousarray(getattr(trial, name), dtype) for name, dtype in _COLUMNS.items()}
        more = {name: np.ascontiguousarray(c) for name in _OPTIONAL if (c := getattr(trial, name)) is not None}
        head = {"kind": "trial", **facts, "facts": dict(trial.facts), "tokens": len(trial.ids)}
        if more:
            head["more"] = {name: [column.dtype.str, list(column.shape)] for name, column in more.items()}
        self._append(head, b"".join(column.tobytes() for column in [*columns.values(), *more.values()]))

    def sync(self) -> None:
        """Return when everything appended survives ``kill -9`` and power loss. Raises StorageError."""
        if not self._is_dirty:
            return
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise storage_error(self._path(self.segment), error) from error
        self._is_dirty = False

    def rotate(self) -> int:
        """Close the segment and begin the next; its number belongs into the checkpoint that is about to be written."""
        self.sync()
        self._file.close()
        self.segment += 1
        self._file = self._open(self.segment)
        return self.segment

    def forget(self, before: int, live: set[int]) -> list[int]:
        """Remove segments that no resume needs any more.

        Args:
            before: the segment named by the newest checkpoint; later ones stay.
            live: positions in flight at that checkpoint; a segment that holds one of their records stays.

        Returns:
            The numbers of the removed segments.
        """
        gone = []
        for number in segments(self.root):
            if number < before and not any(record.get("position") in live for record, _ in read(self.root, number)):
                self._path(number).unlink()
                gone.append(number)
        return gone

    def close(self) -> None:
        """Sync and close. Idempotent."""
        if not self._file.closed:
            self.sync()
            self._file.close()

    def _path(self, segment: int) -> Path:
        return self.root / f"journal-{segment:08d}.bin"

    def _open(self, segment: int) -> BinaryIO:
        path = self._path(segment)
        try:
            whole = sum(size for _, size in read(self.root, segment)) if path.exists() else 0
            file = path.open("ab")
            file.truncate(whole)
            sync_directory(self.root)
        except OSError as error:
            raise storage_error(path, error) from error
        return file

    def _append(self, head: Mapping[str, Any], arrays: bytes) -> None:
        text = json.dumps(head, ensure_ascii=False, default=str).encode()
        crc = zlib.crc32(arrays, zlib.crc32(text))
        try:
            self._file.write(_HEAD.pack(_MAGIC, len(text), len(arrays), crc) + text + arrays)
        except OSError as error:
            raise storage_error(self._path(self.segment), error) from error
        self._is_dirty = True


def segments(root: Path) -> list[int]:
    """Numbers of the segments below ``root``, ascending."""
    return sorted(int(path.stem.partition("-")[2]) for path in root.glob("journal-*.bin"))


def read(root: Path, segment: int) -> Iterator[tuple[dict[str, Any], int]]:
    """The whole records of a segment and their sizes in bytes; stops at the first that is torn.

    A trial's record holds it under ``trial``.
    """
    with (root / f"journal-{segment:08d}.bin").open("rb") as file:
        while len(packed := file.read(_HEAD.size)) == _HEAD.size:
            magic, n_text, n_arrays, crc = _HEAD.unpack(packed)
            text, arrays = file.read(n_text), file.read(n_arrays)
            is_whole = len(text) == n_text and len(arrays) == n_arrays
            if magic != _MAGIC or not is_whole or zlib.crc32(arrays, zlib.crc32(text)) != crc:
                return
            record: dict[str, Any] = json.loads(text)
            if record["kind"] == "trial":
                record["trial"] = _trial(record, arrays)
            yield record, _HEAD.size + n_text + n_arrays


def _trial(record: Mapping[str, Any], arrays: bytes) -> FinishedTrial:
    columns, at = {}, 0
    for name, dtype in _COLUMNS.items():
        size = record["tokens"] * np.dtype(dtype).itemsize
        columns[name] = np.frombuffer(arrays[at : at + size], dtype=dtype)
        at += size
    more = {}
    for name, (kind, shape) in record.get("more", {}).items():
        dtype = np.dtype(kind)
        size = dtype.itemsize * int(np.prod(shape))
        more[name] = np.frombuffer(arrays[at : at + size], dtype=dtype).reshape(shape)
        at += size
    return FinishedTrial(
        position=record["position"],
        sample=record["sample"],
        ids=columns["ids"],
        mask=columns["mask"],
        logprobs=columns["logprobs"],
        versions=columns["versions"],
        reward=record["reward"],
        passed=record["passed"],
        cause=record["cause"],
        facts=record["facts"],
        **more,
    )
