"""ironcalc: a second engine, written independently of the first; its clock is that of the machine."""

from __future__ import annotations

from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from . import Place, Result

CODES = frozenset({"#DIV/0!", "#N/A", "#NAME?", "#VALUE!", "#NUM!", "#REF!", "#NULL!", "#SPILL!", "#CALC!"})


def evaluate(data: bytes, cells: list[Place], clock: datetime, epoch: int) -> dict[Place, Result]:
    """The value of each cell. Raises ValueError when the engine cannot load the workbook."""
    import tempfile

    import ironcalc

    if epoch != 1900:
        raise ValueError("the engine counts dates from 1900 only")
    with tempfile.TemporaryDirectory(prefix="recalculate-") as folder:
        path = Path(folder) / "book.xlsx"
        path.write_bytes(data)
        try:
            model = ironcalc.load_from_xlsx(str(path), "en", "UTC", "en")
        except Exception as error:
            raise ValueError(str(error)) from error
    model.evaluate()
    index = {row["name"]: n for n, row in enumerate(model.get_worksheets_properties())}
    found: dict[Place, Result] = {}
    for place in cells:
        sheet, row, column = place
        if sheet not in index:
            found[place] = "?", "the engine does not see this sheet"
            continue
        found[place] = _result(model, index[sheet], row, column)
    return found


def _result(model: Any, sheet: int, row: int, column: int) -> Result:
    value = model.get_cell_value(sheet, row, column)
    if isinstance(value, bool):
        return "b", value
    if isinstance(value, int | float):
        return "n", float(value)
    if value is None:
        return "n", 0.0
    if value.startswith("#") and "ErrorValue" in str(model.get_cell_type(sheet, row, column)):
        return ("e", value) if value in CODES else ("?", value)
    return "s", value


@cache
def knows(function: str) -> bool:
    """Whether the engine has a function of this name."""
    import ironcalc

    model = ironcalc.create("probe", "en", "UTC", "en")
    model.set_user_input(0, 1, 1, f"={function}()")
    model.evaluate()
    return bool(model.get_cell_value(0, 1, 1) != "#NAME?")
