"""Rotary frequencies as ``transformers`` computes them: plain, linearly stretched, or Llama 3's by wavelength."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from journeyman.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor

KINDS = ("default", "linear", "llama3")


@dataclass(frozen=True)
class Rope:
    """How positions turn queries and keys.

    Attributes:
        kind: one of KINDS.
        theta: base of the frequencies.
        factor: by which long wavelengths (``llama3``) or all (``linear``) are stretched.
        low, high: ``llama3``: wavelengths above ``original / low`` are stretched whole, below ``original / high`` not.
        original: ``llama3``: context length before stretching, in tokens.
    """

    kind: str = "default"
    theta: float = 10_000.0
    factor: float = 1.0
    low: float = 1.0
    high: float = 4.0
    original: int = 8192

    def frequencies(self, head_dim: int) -> Tensor:
        """Radians per position of each pair, float32 [head_dim / 2]."""
        import torch

        exponents = torch.arange(0, head_dim, 2, dtype=torch.float32) / head_dim
        plain = 1.0 / self.theta**exponents
        if self.kind == "default":
            return plain
        if self.kind == "linear":
            return plain / self.factor
        wavelength = 2 * math.pi / plain
        smooth = (self.original / wavelength - self.low) / (self.high - self.low)
        between = (1 - smooth) * plain / self.factor + smooth * plain
        stretched = torch.where(wavelength > self.original / self.low, plain / self.factor, plain)
        medium = (wavelength >= self.original / self.high) & (wavelength <= self.original / self.low)
        return torch.where(medium, between, stretched)


def read_rope(config: Mapping[str, Any], where: str) -> Rope:
    """The rotary embedding of ``config.json``, old (``rope_scaling``) or new (``rope_parameters``) spelling.

    Raises:
        InputError: a kind that is not computed here.
    """
    found = config.get("rope_parameters") or config.get("rope_scaling") or {}
    kind = found.get("rope_type", found.get("type", "default"))
    if kind not in KINDS or float(found.get("partial_rotary_factor", 1.0)) != 1.0:
        raise InputError(f"{where}:rope_type", f"{kind!r} is not decoded here", allowed=", ".join(KINDS))
    return Rope(
        kind=kind,
        theta=float(found.get("rope_theta") or config.get("rope_theta") or 10_000.0),
        factor=float(found.get("factor", 1.0)),
        low=float(found.get("low_freq_factor", 1.0)),
        high=float(found.get("high_freq_factor", 4.0)),
        original=int(found.get("original_max_position_embeddings", 8192)),
    )
