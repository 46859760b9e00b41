"""A large matrix in the order in which the processor's matrix product reads it, so that few rows do not wait for it.

A plain product rearranges its second operand on every call; for a handful of rows against a large vocabulary that costs
more than the arithmetic. torch offers the rearranged form under names that may move; without them the plain product is
used.
"""

from __future__ import annotations

import torch
from torch import Tensor

LARGE = 4_000_000
"""Elements from which a second copy of a matrix is worth its memory."""


def can_pack(matrix: Tensor) -> bool:
    """The matrix is large and float32 on this processor, and torch can rearrange it."""
    large = matrix.numel() >= LARGE and matrix.device.type == "cpu" and matrix.dtype == torch.float32
    return large and torch._C._has_mkldnn and hasattr(torch.ops.mkldnn, "_reorder_linear_weight")


class Packed:
    """``x @ matrix.T`` for one matrix [out, in]; a copy."""

    def __init__(self, matrix: Tensor) -> None:
        with torch.inference_mode(False), torch.no_grad():
            self._matrix = torch.ops.mkldnn._reorder_linear_weight(matrix.detach().clone(), None)

    def product(self, x: Tensor) -> Tensor:
        """[n, in] to [n, out]."""
        result: Tensor = torch.ops.mkldnn._linear_pointwise(x, self._matrix, None, "none", [], "")
        return result
