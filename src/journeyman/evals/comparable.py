"""Two scores may be compared when the systems behind them differ in what was declared, and in nothing else."""

from __future__ import annotations

from collections.abc import Collection

from journeyman.errors import InputError
from journeyman.evals.score import Boundary

_FIELDS: dict[str, tuple[str, ...]] = {
    "model": ("model", "model_sha256"),
    "harness": ("harness", "harness_sha256"),
    "tools": ("tools",),
    "judge": ("judge",),
    "budgets": ("budgets",),
    "decoding": ("decoding",),
    "split": ("split", "tasks_sha256"),
}
"""Factors and the fields of a Boundary each one may change."""


def check_comparable(a: Boundary, b: Boundary, *, factors: Collection[str]) -> None:
    """Refuse a comparison whose sides differ outside ``factors`` (evaluation reference, 3.4).

    Raises:
        InputError: names every field that differs, with both values.
    """
    unknown = set(factors) - set(_FIELDS)
    if unknown:
        raise InputError("factors", f"unknown {sorted(unknown)}", allowed=", ".join(_FIELDS))
    free = {field for factor in factors for field in _FIELDS[factor]}
    different = [
        f"{field} ({getattr(a, field)!r} against {getattr(b, field)!r})"
        for fields in _FIELDS.values()
        for field in fields
        if field not in free and getattr(a, field) != getattr(b, field)
    ]
    if different:
        raise InputError(
            f"{a.name} against {b.name}",
            f"they differ in {'; '.join(different)}",
            allowed=f"a difference in {', '.join(factors)} only",
        )
