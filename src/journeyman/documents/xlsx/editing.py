"""Edits of a workbook, part by part: what no change names stays byte-identical, and caches are true afterwards.

Ops (``OPS``) with their fields; every address is one that reading gives:

    set             Sheet!B7        value, or formula "=..."; Sheet!B7:C8 with values [[...], ...]
    format          Sheet!B7:C9     style {bold, fill, align, ...}, number_format
    insert_rows     Sheet!5:6       insert_columns  Sheet!B:C     before the first of them
    delete_rows     Sheet!5:6       delete_columns  Sheet!B:C
    merge, unmerge  Sheet!A1:C1     hide, show      Sheet!5:6, Sheet!B:C, sheet:Data
    add_sheet       sheet:New       position (from 1)
    rename_sheet    sheet:Old       name            move_sheet  sheet:Data  position
    delete_sheet    sheet:Old       define_name     name:X  formula "=..."     delete_name  name:X
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..editing import Change, ChangeReport, Edited
from ..errors import UnreadableDocument
from .cell_edits import change_format, change_merge, change_value
from .recalculation import Recalculated, recalculate
from .row_edits import change_hidden, delete_lines, insert_lines
from .sheet_edits import add_sheet, define_name, delete_name, delete_sheet, move_sheet, rename_sheet
from .workbench import Workbench

Named = tuple[str, str]
"""Address of a place after a change, and before it; empty when it was not there."""

OPS: dict[str, Callable[[Workbench, Change], list[Named]]] = {
    "set": change_value,
    "format": change_format,
    "insert_rows": insert_lines,
    "insert_columns": insert_lines,
    "delete_rows": delete_lines,
    "delete_columns": delete_lines,
    "merge": change_merge,
    "unmerge": change_merge,
    "hide": change_hidden,
    "show": change_hidden,
    "add_sheet": add_sheet,
    "rename_sheet": rename_sheet,
    "move_sheet": move_sheet,
    "delete_sheet": delete_sheet,
    "define_name": define_name,
    "delete_name": delete_name,
}
"""Op -> what applies it."""

IN_PLACE = ("set", "format")
"""Ops after which every address still names the same place."""


def edit(data: bytes, name: str, changes: Sequence[Change]) -> Edited:
    """Apply changes in order, recalculate, and read back what the file holds now.

    Returns:
        One report per place that a change named, then one per cell whose calculated value changed
        (op ``recalculated``).

    Raises:
        BadEdit: a change cannot be applied. NoSuchAddress: nothing has its address. Nothing was written.
        UnreadableDocument: the workbook is damaged.
    """
    edited, done = _applied(data, name, changes)
    warnings: list[str] = []
    effects: list[Any] = []
    try:
        before, check = recalculate(data, name, on_unknown="keep", check=None), None
        if before.unknown:  # only then the second engine is worth its time
            check = "ironcalc"
            before = recalculate(data, name, on_unknown="keep", check=check)
        true = edited if before.data is data else _applied(before.data, name, changes, is_reported=False)[0]
        after = recalculate(true, name, on_unknown="keep", check=check)
        final = recalculate(edited, name, on_unknown="keep", only=frozenset(one.address for one in after.changed))
        edited, effects = final.data, list(after.changed)
        warnings += _warnings(before, final)
    except UnreadableDocument as error:
        warnings.append(f"not recalculated: {error}")
    state = _Readback(edited, name)
    named = {address for _, address, _ in done}
    reports = [ChangeReport(op, address, old, state.at(address)) for op, address, old in done]
    reports += [
        ChangeReport("recalculated", one.address, one.before, one.after) for one in effects if one.address not in named
    ]
    return Edited(edited, tuple(reports), tuple(warnings))


def _applied(
    data: bytes, name: str, changes: Sequence[Change], *, is_reported: bool = True
) -> tuple[bytes, list[tuple[str, str, Any]]]:
    bench = Workbench(data, name)
    done: list[tuple[str, str, Any]] = []
    state: _Readback | None = _Readback(data, name) if is_reported else None
    for change in changes:
        change.require(OPS, name)
        if state is None and is_reported:
            data = bench.to_bytes()
            state, bench = _Readback(data, name), Workbench(data, name)
        named = OPS[change.op](bench, change)
        if state is not None:
            done += [(change.op, address, state.at(old) if old else None) for address, old in named]
            state = state if change.op in IN_PLACE else None
    return bench.to_bytes(), done


def _warnings(before: Recalculated, after: Recalculated) -> list[str]:
    found = []
    stale = [one for one in before.changed if one.before is not None]
    if stale:
        first = stale[0]
        found.append(
            f"{len(stale)} stored values were not what the engine calculates, first {first.address}: "
            f"stored {first.before!r}, calculated {first.after!r}; they were left unless a change reaches them"
        )
    if after.unknown:
        found.append(
            f"{len(after.unknown)} formulas that no engine calculates keep their values, first {after.unknown[0]}"
        )
    if after.disagreements:
        one = after.disagreements[0]
        found.append(
            f"engines differ on {len(after.disagreements)} cells, first {one.address}: {one.first!r}, {one.second!r}"
        )
    return found


class _Readback:
    """The saved file, read once, asked by address."""

    def __init__(self, data: bytes, name: str) -> None:
        from .reading import read

        self._document = read(data, name)
        self._nodes = {node.address: node for node in self._document.walk()}

    def at(self, address: str) -> Any:
        """What stands there, as JSON; None for nothing, or for an empty cell."""
        node = self._nodes.get(address)
        if node is None:
            return None
        facts: dict[str, Any] = {key: node.attributes[key] for key in node.attributes if key != "type"}
        if node.kind == "row":
            return {**facts, "cells": [{"address": one.address, "text": one.text} for one in node.children]}
        return {**facts, "text": node.text} if node.text or facts else None
