"""Checks of a table in which every cell is the task: all of it, the cells that a trap touches, and a share of the rest.

Weights are such that one wrong cell costs more than half, and falling for every trap leaves at most 0.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from journeyman.worlds.verify import Check

WHOLE, HARD, SHARE = 0.55, 0.25, 0.1
"""What is left of 1 belongs to checks of the template's own."""


def matrix_checks(
    file: str,
    columns: Sequence[Mapping[str, Any]],
    rows: Sequence[Sequence[Any]],
    hard: Sequence[tuple[int, int]],
    *,
    key: Sequence[str],
    sheet: str = "",
    trap_ids: tuple[str, ...] = (),
) -> tuple[Check, ...]:
    """``every cell``, ``hard cells`` and ``most cells``.

    Args:
        columns: ``name``, and ``tol`` or ``aliases`` where needed.
        rows: expected values in the order of ``columns``.
        hard: (row, column) of the cells that careless readers get wrong; at least one.
        key: names of the columns that tell rows apart.
    """
    base: dict[str, Any] = {"file": file, "columns": [dict(one) for one in columns], "key": list(key)}
    if sheet:
        base["sheet"] = sheet
    names = [column["name"] for column in columns]
    at = {names.index(name) for name in key}
    few = []
    for number, row in enumerate(rows):
        cells = {column for where, column in hard if where == number}
        if cells:
            few.append([value if i in at or i in cells else None for i, value in enumerate(row)])
    listed = [list(row) for row in rows]
    return (
        Check("every cell", "table", {**base, "rows": listed}, weight=WHOLE, trap_ids=trap_ids),
        Check("hard cells", "table", {**base, "rows": few, "extra": "ignored"}, weight=HARD, trap_ids=trap_ids),
        Check("most cells", "table", {**base, "rows": listed, "credit": "f1"}, weight=SHARE, stage="intermediate",
              required=False),
    )  # fmt: skip
