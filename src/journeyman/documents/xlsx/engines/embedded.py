"""formualizer: in memory, milliseconds per thousand formulas; volatile functions follow the pinned clock."""

from __future__ import annotations

from datetime import datetime
from functools import cache
from typing import Any

from . import Place, Result

CODES = {
    "Div": "#DIV/0!", "Na": "#N/A", "Name": "#NAME?", "Value": "#VALUE!", "Num": "#NUM!", "Ref": "#REF!",
    "Null": "#NULL!", "Spill": "#SPILL!", "Calc": "#CALC!",
}  # fmt: skip
"""Kinds of the engine's errors -> what a cell shows; other kinds are no values."""


PARALLEL_BYTES = 1 << 20
"""Files from this size on are computed by several threads; below it, starting them costs more than they save."""


def loaded(data: bytes, clock: datetime) -> Any:
    """A workbook in the engine, nothing computed yet; dates come out as serial numbers.

    Args:
        data: the file.
        clock: what NOW and TODAY read.
    """
    import formualizer

    how = formualizer.EvaluationConfig()
    how.enable_parallel = len(data) >= PARALLEL_BYTES
    config = formualizer.WorkbookConfig(mode=formualizer.WorkbookMode.Interactive, eval_config=how)
    book = formualizer.Workbook.from_bytes(data, config=config)
    book.set_temporal_egress("serial")
    book.set_deterministic_clock(clock, "utc")
    return book


def evaluate(data: bytes, cells: list[Place], clock: datetime, epoch: int) -> dict[Place, Result]:
    """The value of each cell. Raises ValueError when the engine cannot load the workbook."""
    try:
        book = loaded(data, clock)
        book.evaluate_all()
        get = book.get_value
        return {place: _result(get(*place)) for place in cells}
    except Exception as error:
        raise ValueError(str(error)) from error


def _result(value: Any) -> Result:
    if isinstance(value, bool):
        return "b", value
    if isinstance(value, int | float):
        return "n", float(value)
    if isinstance(value, str):
        return "s", value
    if value is None:
        return "n", 0.0
    if isinstance(value, dict) and value.get("type") == "Error":
        kind = str(value.get("kind"))
        return ("e", CODES[kind]) if kind in CODES else ("?", kind)
    if isinstance(value, list):
        return _result(value[0][0] if value and value[0] else None)
    return "?", type(value).__name__


@cache
def knows(function: str) -> bool:
    """Whether the engine has a function of this name."""
    import formualizer

    book = formualizer.Workbook()
    book.add_sheet("S")
    try:
        book.set_formula("S", 1, 1, f"={function}()")
        value = book.evaluate_cell("S", 1, 1)
    except Exception:  # a function that refuses to be called without arguments is known
        return True
    return not (isinstance(value, dict) and value.get("kind") == "Name")
