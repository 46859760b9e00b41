"""Messages between a trial and the engine's owner: a JSON head and raw blobs, each with its length in front.

Nothing that comes from a trial is unpickled: its process handles what untrusted programs wrote. What the owner sends is
trusted by the trial and may be pickled.
"""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from journeyman.errors import SystemFault
from journeyman.tokens.context import Columns

MAX_BYTES = 512 * 1024 * 1024
"""Of one message; a longer one ends the connection."""

_DTYPES = {"ids": "<i4", "mask": "u1", "logprob": "<f4", "source": "u1", "version": "<i4", "turn": "<i4"}
_HEAD = struct.Struct("<II")


class LinkBroken(SystemFault):
    """The other end is gone, silent or out of step."""

    cause = "trial_lost"


@dataclass(frozen=True)
class Message:
    """One message: JSON object and blobs."""

    head: dict[str, Any]
    blobs: list[bytes]


def packed(head: Mapping[str, Any], blobs: Sequence[bytes] = ()) -> bytes:
    """The bytes of one message."""
    text = json.dumps(head, ensure_ascii=True).encode()
    lengths = struct.pack(f"<{len(blobs)}I", *map(len, blobs))
    return b"".join((_HEAD.pack(len(text), len(blobs)), lengths, text, *blobs))


class Parser:
    """Bytes in, whole messages out."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[Message]:
        """Messages that are whole now. Raises LinkBroken for lengths that cannot be."""
        self._buffer += data
        found = []
        while (message := self._take()) is not None:
            found.append(message)
        return found

    def _take(self) -> Message | None:
        if len(self._buffer) < _HEAD.size:
            return None
        length, count = _HEAD.unpack_from(self._buffer)
        start = _HEAD.size + 4 * count
        if length > MAX_BYTES or count > 100_000:
            raise LinkBroken(f"a message of {length} bytes and {count} blobs")
        if len(self._buffer) < start:
            return None
        lengths = struct.unpack_from(f"<{count}I", self._buffer, _HEAD.size)
        end = start + length + sum(lengths)
        if end > MAX_BYTES:
            raise LinkBroken(f"a message of {end} bytes")
        if len(self._buffer) < end:
            return None
        data = bytes(memoryview(self._buffer)[start:end])
        if len(self._buffer) == end:
            self._buffer.clear()
        else:
            del self._buffer[:end]
        blobs, at = [], length
        for size in lengths:
            blobs.append(data[at : at + size])
            at += size
        try:
            head = json.loads(data[:length])
        except ValueError as error:
            raise LinkBroken(f"a head that is no JSON: {error}") from error
        if not isinstance(head, dict):
            raise LinkBroken("a head that is no object")
        return Message(head, blobs)


class Link:
    """The blocking end of a trial process."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self._parser = Parser()
        self._ready: list[Message] = []

    def send(self, head: Mapping[str, Any], blobs: Sequence[bytes] = (), *, limit_s: float = 60.0) -> None:
        """Raises LinkBroken when it cannot be sent."""
        self.connection.settimeout(limit_s)
        try:
            self.connection.sendall(packed(head, blobs))
        except OSError as error:
            raise LinkBroken(f"the owner of the engine is gone: {error}") from error

    def receive(self, limit_s: float) -> Message | None:
        """The next message, or None when none came within ``limit_s``. Raises LinkBroken at the end of the stream."""
        while not self._ready:
            self.connection.settimeout(max(limit_s, 0.001))
            try:
                data = self.connection.recv(1 << 18)
            except TimeoutError:
                return None
            except OSError as error:
                raise LinkBroken(str(error)) from error
            if not data:
                raise LinkBroken("the owner of the engine is gone")
            self._ready += self._parser.feed(data)
        return self._ready.pop(0)


def column_blobs(columns: Columns) -> list[bytes]:
    """The six columns as bytes, little-endian, in the order of ``Columns``."""
    return [getattr(columns, name).astype(dtype, copy=False).tobytes() for name, dtype in _DTYPES.items()]


def columns_of_blobs(blobs: Sequence[bytes]) -> Columns:
    """The inverse of ``column_blobs``. Raises LinkBroken when the lengths do not agree."""
    try:
        found = {name: np.frombuffer(blob, dtype) for (name, dtype), blob in zip(_DTYPES.items(), blobs, strict=True)}
    except ValueError as error:
        raise LinkBroken(f"columns that are none: {error}") from error
    if len({len(column) for column in found.values()}) != 1:
        raise LinkBroken("columns of different lengths")
    return Columns(**found)
