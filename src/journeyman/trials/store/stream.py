"""``tokens.arrows``: an Arrow IPC stream with one record batch per model call, readable up to a torn tail.

Every batch is one ``write`` of whole bytes into a ``GrowingFile``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from journeyman.tokens.context import Columns, Source
from journeyman.trials.store.columns import DTYPES, joined
from journeyman.trials.store.growing import GrowingFile
from journeyman.trials.store.schema import ATTEMPT_KEY, FLAT_SINCE, TRIAL_KEY, VERSION, VERSION_KEY, checked_version

PLAIN_TOKENS, LIGHT_TOKENS = 32, 512
"""Calls of fewer tokens are stored plain, or by LZ4: there zstd costs more time than its smaller bytes are worth."""

_ALIGNED = 8
"""Bytes to which Arrow IPC pads the buffers of a message by default."""

END = b"\xff\xff\xff\xff\x00\x00\x00\x00"
"""The end-of-stream mark of Arrow IPC: a closed stream has it, a running or killed one does not."""


@dataclass(frozen=True)
class StreamContent:
    """What a token stream holds.

    Attributes:
        calls: columns of each whole call, in order.
        trial_id, attempt: whose stream it is; "" and 0 when not even the head was written.
        good_bytes: length of the whole part.
        torn_bytes: length of an unreadable tail; 0 in an intact stream.
    """

    calls: list[Columns]
    trial_id: str
    attempt: int
    good_bytes: int
    torn_bytes: int


class TokenStream:
    """The writing end of one trial's tokens.

    Args:
        path: the file; a new one gets its head, an existing one is cut to its whole part and continued.
        trial_id, attempt: written into the head.

    Attributes:
        file: the file that grows; closed without the end mark, it can be continued.
        calls: what an earlier writer left.

    Raises:
        OSError: the place cannot be written.
    """

    def __init__(self, path: Path | str, trial_id: str, attempt: int) -> None:
        names = {VERSION_KEY: str(VERSION), TRIAL_KEY: trial_id, ATTEMPT_KEY: str(attempt)}
        self._types, schema = _fields()
        self._schema = schema.with_metadata(names)
        self._head = self._schema.serialize().to_pybytes()
        self.file = GrowingFile(path)
        try:
            content = read_stream(self.file.found, str(path)) if self.file.found else None
            self.calls = content.calls if content else []
            self.file.keep(content.good_bytes if content else 0)
            if self.file.size_bytes == 0:
                self.file.append(self._head)
        except BaseException:
            self.file.close()
            raise

    def append(self, call: Columns) -> None:
        """Store one call. Raises OSError (e.g. ENOSPC) with the file as it was before."""
        n = len(call.ids)
        columns = [np.ascontiguousarray(getattr(call, name), dtype) for name, dtype in DTYPES.items()]
        if n < PLAIN_TOKENS:
            self.file.append(_plain(n, columns))
            return
        import pyarrow as pa

        batch = _batch(n, columns)
        codec = "lz4" if n < LIGHT_TOKENS else "zstd"
        sink = pa.BufferOutputStream()
        options = pa.ipc.IpcWriteOptions(compression=codec, use_threads=False)
        with pa.ipc.new_stream(sink, self._schema, options=options) as writer:
            writer.write_batch(batch)
        self.file.append(sink.getvalue().to_pybytes()[len(self._head) : -len(END)])

    def finish(self) -> None:
        """Write the end mark; nothing can be appended behind it."""
        self.file.append(END)


@lru_cache(maxsize=1)
def _fields() -> tuple[list[Any], Any]:
    """Arrow's types of the columns, and their schema."""
    import pyarrow as pa

    types = [getattr(pa, dtype)() for dtype in DTYPES.values()]
    return types, pa.schema(zip(DTYPES, types, strict=True))


def _batch(n: int, columns: list[np.ndarray[Any, Any]]) -> Any:
    """The columns as a record batch; not through ``pa.array``, which would load pandas."""
    import pyarrow as pa

    types, schema = _fields()
    arrays = [
        pa.Array.from_buffers(kind, n, [None, pa.py_buffer(column)])
        for kind, column in zip(types, columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _plain(n: int, columns: list[np.ndarray[Any, Any]]) -> bytes:
    """The IPC message of an uncompressed batch: those of equal length differ in nothing but the values."""
    message, places = _template(n)
    whole = bytearray(message)
    for (start, end), column in zip(places, columns, strict=True):
        whole[start:end] = column.tobytes()
    return bytes(whole)


@lru_cache(maxsize=PLAIN_TOKENS)
def _template(n: int) -> tuple[bytes, tuple[tuple[int, int], ...]]:
    """A message of ``n`` tokens, and where in it the bytes of each column stand (start, end)."""
    import pyarrow as pa

    message = _batch(n, [np.zeros(n, dtype) for dtype in DTYPES.values()]).serialize().to_pybytes()
    at = len(message) - pa.ipc.read_message(message).body.size
    places = []
    for dtype in DTYPES.values():
        size = n * np.dtype(dtype).itemsize
        places.append((at, at + size))
        at += -(-size // _ALIGNED) * _ALIGNED
    return message, tuple(places)


def read_stream(data: bytes, where: str) -> StreamContent:
    """Everything whole in the bytes of a stream; a torn or damaged tail is counted, never an error.

    Raises:
        InputError: the head is whole and names a schema version that cannot be read.
    """
    import pyarrow as pa

    source = pa.BufferReader(data)
    try:
        reader = pa.ipc.open_stream(source)
    except (pa.ArrowException, OSError, EOFError):
        return StreamContent([], "", 0, 0, len(data))
    names = reader.schema.metadata or {}
    version = checked_version(names.get(VERSION_KEY, b"1"), where)
    calls: list[Columns] = []
    good = source.tell()
    while True:
        try:
            batch = reader.read_next_batch()
            calls += [_columns(batch)] if version >= FLAT_SINCE else _lifted(batch, calls)
        except (StopIteration, pa.ArrowException, OSError, EOFError):
            break
        good = source.tell()
    torn = 0 if data[good:] == END else len(data) - good
    attempt = int(names.get(ATTEMPT_KEY, b"1"))
    return StreamContent(calls, names.get(TRIAL_KEY, b"").decode(), attempt, good, torn)


def _columns(batch: Any) -> Columns:
    return Columns(**{name: batch.column(name).to_numpy(zero_copy_only=False) for name in DTYPES})


def _lifted(batch: Any, before: list[Columns]) -> list[Columns]:
    """Calls of a batch in version 1: one row per call, ``input_ids`` being what was new before the turn."""
    lifted = []
    for number, row in enumerate(batch.to_pylist(), start=len(before) + 1):
        given, sampled = row["input_ids"], row["output_ids"]
        source = Source.PROMPT if number == 1 else Source.OBSERVATION
        lifted.append(joined([_given(given, source, number - 1), _sampled(row, sampled, number)]))
    return lifted


def _given(ids: list[int], source: Source, turn: int) -> Columns:
    n = len(ids)
    return Columns(
        ids=np.array(ids, dtype=np.int32),
        mask=np.zeros(n, dtype=np.uint8),
        logprob=np.zeros(n, dtype=np.float32),
        source=np.full(n, source, dtype=np.uint8),
        version=np.full(n, -1, dtype=np.int32),
        turn=np.full(n, turn, dtype=np.int32),
    )


def _sampled(row: dict[str, Any], ids: list[int], turn: int) -> Columns:
    n = len(ids)
    return Columns(
        ids=np.array(ids, dtype=np.int32),
        mask=np.ones(n, dtype=np.uint8),
        logprob=np.array(row["logprobs"], dtype=np.float32),
        source=np.full(n, Source.SAMPLED, dtype=np.uint8),
        version=np.full(n, row["policy_version"], dtype=np.int32),
        turn=np.full(n, turn, dtype=np.int32),
    )
