"""Two calculation engines on one golden: where they differ, the right answer is a matter of the program that opens it.

Each workbook is computed once per content, so both looks at a task, and tasks that share a golden, cost one run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from journeyman.digest import sha256

SHOWN = 3
"""Cells named per workbook."""

KEPT = 4_096
"""Workbooks whose result is remembered."""

SUFFIXES = (".xlsx", ".xlsm")

_KNOWN: dict[str, tuple[str, ...]] = {}


def engine_findings(golden: Mapping[str, bytes]) -> Iterator[str]:
    """What the engines say differently about the workbooks of a deliverable, each cell with both values.

    Args:
        golden: delivered name -> bytes.
    """
    for name, data in golden.items():
        if name.endswith(SUFFIXES):
            yield from (f"{name} {one}" for one in _compared(name, data))


def _compared(name: str, data: bytes) -> tuple[str, ...]:
    key = sha256(data)
    if key not in _KNOWN:
        while len(_KNOWN) >= KEPT:
            _KNOWN.pop(next(iter(_KNOWN)))
        _KNOWN[key] = tuple(_differences(name, data))
    return _KNOWN[key]


def _differences(name: str, data: bytes) -> Iterator[str]:
    from journeyman.documents.errors import UnreadableDocument
    from journeyman.documents.xlsx.recalculation import recalculate

    try:
        found = recalculate(data, name, on_unknown="keep")
    except UnreadableDocument as error:
        yield f"cannot be recalculated: {str(error)[:200]}"
        return
    for one in found.disagreements[:SHOWN]:
        yield f"{one.address}: the engines disagree on ={one.formula[:80]}: {one.first!r} and {one.second!r}"
    if len(found.disagreements) > SHOWN:
        yield f"has {len(found.disagreements) - SHOWN} more cells on which the engines disagree"
    for address, function in found.unknown[:SHOWN]:
        yield f"{address}: no engine knows {function}"
