"""Which experts of a mixture each token was routed to, as arrays and as the bytes that travel and are stored.

Bytes are zlib of a ``.npy``: uint8 (uint16 above 256 experts) ``[tokens, layers, experts per token]``. A trainer that
routes as the engine did needs them: routers decide by small margins, and two implementations decide differently.
"""

from __future__ import annotations

import io
import zlib
from typing import Any

import numpy as np
import numpy.typing as npt

Experts = npt.NDArray[np.uint8] | npt.NDArray[np.uint16]
LEVEL = 1
"""Of zlib. Expert ids hardly repeat: higher levels cost time and save next to nothing."""


def narrowed(rows: npt.NDArray[Any]) -> Experts:
    """The same ids in the smallest of the two types.

    Raises:
        ValueError: not three axes, or no ids of experts.
    """
    if rows.ndim != 3 or not np.issubdtype(rows.dtype, np.integer):
        raise ValueError(f"routed experts are integers [tokens, layers, k], not {rows.dtype} {list(rows.shape)}")
    if rows.size and not 0 <= int(rows.min()) <= int(rows.max()) <= np.iinfo(np.uint16).max:
        raise ValueError(f"routed experts from {rows.min()} to {rows.max()}")
    if rows.dtype == np.uint8 or not rows.size or (rows.dtype != np.uint16 and rows.max() < 256):
        return rows.astype(np.uint8, copy=False)
    return rows.astype(np.uint16, copy=False)


def packed(rows: npt.NDArray[Any]) -> bytes:
    """Rows as bytes. Raises ValueError as ``narrowed``."""
    sink = io.BytesIO()
    np.save(sink, narrowed(rows), allow_pickle=False)
    return zlib.compress(sink.getvalue(), LEVEL)


def unpacked(data: bytes) -> Experts:
    """The inverse of ``packed``.

    Raises:
        ValueError: these are no such bytes.
    """
    try:
        rows = np.load(io.BytesIO(zlib.decompress(data)), allow_pickle=False)
    except (zlib.error, EOFError) as error:
        raise ValueError(f"no packed experts: {error}") from error
    return narrowed(rows)
