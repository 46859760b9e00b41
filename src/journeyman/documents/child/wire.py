"""The words between parent and child: a JSON header with the sizes of the blobs that follow it.

A frame is 8 bytes of header length, the header, the blobs. A header has ``sizes``, a list of the blobs' lengths.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

LENGTH = struct.Struct(">Q")

MAX_HEADER_BYTES = 200_000_000
"""An answer above is no answer: trees are far smaller."""


class Broken(Exception):
    """The stream ended inside a frame, or holds no frame."""


def pack(header: Mapping[str, Any], blobs: Sequence[bytes] = ()) -> list[bytes]:
    """The pieces of one frame."""
    text = json.dumps({**header, "sizes": [len(blob) for blob in blobs]}, separators=(",", ":")).encode("ascii")
    return [LENGTH.pack(len(text)), text, *blobs]


def unpack(take: Callable[[int], bytes]) -> tuple[dict[str, Any], list[bytes]]:
    """One frame from ``take(n)``, which returns exactly n bytes or raises. Raises Broken for what is no frame."""
    (size,) = LENGTH.unpack(take(LENGTH.size))
    if size > MAX_HEADER_BYTES:
        raise Broken(f"a header of {size} bytes")
    try:
        header = json.loads(take(size))
        sizes = header["sizes"]
        blobs = [take(int(one)) for one in sizes]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise Broken(str(error)) from error
    return header, blobs
