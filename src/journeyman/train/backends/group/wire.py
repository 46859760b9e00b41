"""Messages between the front and a rank: a JSON head and arrays, length first. Nothing that arrives is executed.

A frame is ``size:uint64le head_size:uint32le head arrays...``; the head holds ``data`` (JSON) and name, dtype and shape
of each array, whose bytes follow in that order.
"""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from journeyman.deadline import Deadline
from journeyman.errors import DeadlinePassed, InputError, SystemFault
from journeyman.train.losses import PolicyLoss, resolve_loss
from journeyman.train.protocol import TrainRow

LARGEST = 64 * 2**30
"""Bytes of a frame at most: a corrupt length must not ask for all memory."""
_SIZES = struct.Struct("<QI")


class GroupLost(SystemFault):
    """A rank, or the way to it, is gone. The group was ended; the last checkpoint is where training goes on."""

    cause = "trainer_lost"


@dataclass(frozen=True)
class Message:
    """One frame.

    Attributes:
        data: JSON.
        arrays: by name.
    """

    data: dict[str, Any]
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)


def encode(message: Message) -> bytes:
    """The frame of a message."""
    arrays = {name: np.ascontiguousarray(array) for name, array in message.arrays.items()}
    heads = [[name, array.dtype.str, list(array.shape)] for name, array in arrays.items()]
    head = json.dumps({"data": message.data, "arrays": heads}).encode()
    body = b"".join(array.tobytes() for array in arrays.values())
    return _SIZES.pack(len(head) + len(body), len(head)) + head + body


def decode(body: bytes, head_size: int) -> Message:
    """The message of a frame's body. Raises GroupLost for bytes that are none."""
    try:
        head = json.loads(body[:head_size])
        arrays: dict[str, NDArray[Any]] = {}
        at = head_size
        for name, dtype, shape in head["arrays"]:
            kind = np.dtype(dtype)
            if kind.hasobject:
                raise ValueError(f"{name} holds objects")
            count = int(np.prod(shape, dtype=np.int64))
            arrays[name] = np.frombuffer(body, kind, count, at).reshape(shape)
            at += count * kind.itemsize
        return Message(head["data"], arrays)
    except (ValueError, KeyError, TypeError) as error:
        raise GroupLost(f"a frame of the trainer group cannot be read: {error}") from error


def send(connection: socket.socket, message: Message, deadline: Deadline | None = None) -> None:
    """Send one frame. Raises GroupLost, DeadlinePassed."""
    try:
        connection.settimeout(None if deadline is None else max(deadline.remaining_s, 1e-3))
        connection.sendall(encode(message))
    except TimeoutError as error:
        raise _late(deadline) from error
    except OSError as error:
        raise GroupLost(f"a rank of the trainer group is gone: {error}") from error


def receive(connection: socket.socket, deadline: Deadline | None = None) -> Message:
    """The next frame; without a deadline it waits as long as the other side lives. Raises GroupLost, DeadlinePassed."""
    size, head_size = _SIZES.unpack(_exactly(connection, _SIZES.size, deadline))
    if size > LARGEST or head_size > size:
        raise GroupLost(f"a frame of the trainer group claims {size} bytes")
    return decode(_exactly(connection, size, deadline), head_size)


def _exactly(connection: socket.socket, count: int, deadline: Deadline | None) -> bytes:
    data = bytearray(count)
    view, at = memoryview(data), 0
    while at < count:
        try:
            connection.settimeout(None if deadline is None else max(deadline.remaining_s, 1e-3))
            got = connection.recv_into(view[at:])
        except TimeoutError as error:
            raise _late(deadline) from error
        except OSError as error:
            raise GroupLost(f"a rank of the trainer group is gone: {error}") from error
        if got == 0:
            raise GroupLost("a rank of the trainer group closed its connection")
        at += got
    return bytes(data)


def _late(deadline: Deadline | None) -> DeadlinePassed:
    assert deadline is not None
    return DeadlinePassed(deadline.what, deadline.limit_s)


def pack_rows(
    batches: Sequence[Sequence[tuple[TrainRow, NDArray[np.float64] | None]]],
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Micro-batches of rows with their token weights as JSON and arrays."""
    flat = [pair for batch in batches for pair in batch]
    rows = [row for row, _ in flat]
    data: dict[str, Any] = {"batches": [len(batch) for batch in batches]}
    if not rows:
        return data, {}
    arrays: dict[str, NDArray[Any]] = {
        "lengths": np.array([len(row.ids) for row in rows], np.int64),
        "advantages": np.array([row.advantage for row in rows], np.float64),
        "prompts": np.array([row.prompt for row in rows], np.int64),
    }
    for name in (*_COLUMNS, *_OPTIONAL):
        columns = [getattr(row, name) for row in rows if getattr(row, name) is not None]
        if len(columns) == len(rows):
            arrays[name] = np.concatenate(columns)
        elif columns:
            raise InputError("rows", f"{len(columns)} of {len(rows)} carry {name}", allowed="all or none")
    weights = [weight for _, weight in flat if weight is not None]
    if len(weights) == len(rows):
        arrays["weights"] = np.concatenate(weights).astype(np.float64)
    return data, arrays


def unpack_rows(message: Message) -> list[tuple[list[TrainRow], list[NDArray[np.float64]]]]:
    """The micro-batches of ``pack_rows``; weights are empty where none were sent."""
    arrays = message.arrays
    lengths = arrays.get("lengths", np.zeros(0, np.int64))
    columns = {name: _cut(arrays[name], lengths) for name in (*_COLUMNS, *_OPTIONAL, "weights") if name in arrays}
    rows = [
        TrainRow(
            advantage=float(arrays["advantages"][i]),
            prompt=int(arrays["prompts"][i]),
            **{name: columns[name][i] for name in (*_COLUMNS, *_OPTIONAL) if name in columns},
        )
        for i in range(len(lengths))
    ]
    weights = columns.get("weights", [])
    batches, at = [], 0
    for count in message.data["batches"]:
        batches.append((rows[at : at + count], weights[at : at + count]))
        at += count
    return batches


_COLUMNS = ("ids", "mask", "logprobs")
_OPTIONAL = ("old_logprobs", "routed_experts", "token_advantages", "topk_ids", "topk_logprobs")
"""Fields of ``TrainRow`` with an entry per token; those that may be None."""


def _cut(column: NDArray[Any], lengths: NDArray[np.int64]) -> list[NDArray[Any]]:
    return [part.copy() for part in np.split(column, np.cumsum(lengths)[:-1])]


def pack_loss(loss: PolicyLoss) -> dict[str, Any]:
    """A loss as JSON."""
    knobs = loss.knobs.model_dump(mode="json")
    if loss.correction_knobs is not None:
        knobs |= loss.correction_knobs.model_dump(mode="json")
    return {"name": loss.name, "correction": loss.correction, "params": knobs}


def unpack_loss(data: Mapping[str, Any]) -> PolicyLoss:
    """The loss of ``pack_loss``."""
    return resolve_loss(data["name"], correction=data["correction"], params=data["params"])
