"""Program: ironcalc behind a pipe, started by path, for an engine that cannot be interrupted.

Reads (length, workbook, length, JSON list of cells), answers (length, JSON list of results or an error text). What the
library prints goes nowhere. Ends at the end of its input, and with its parent where the kernel can see to that.
"""

from __future__ import annotations

import json
import os
import struct
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, BinaryIO

CODES = frozenset({"#DIV/0!", "#N/A", "#NAME?", "#VALUE!", "#NUM!", "#REF!", "#NULL!", "#SPILL!", "#CALC!"})
LENGTH = struct.Struct(">Q")


def main() -> None:
    """Serve until the input ends. The first argument is the import path of the starting process."""
    sys.path[:] = json.loads(sys.argv[1])
    die_with_parent()
    answers = os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    while (data := read_block(sys.stdin.buffer)) is not None:
        cells = json.loads(read_block(sys.stdin.buffer) or b"[]")
        try:
            answer: Any = results(data, cells)
        except Exception as error:
            answer = str(error)
        except BaseException as error:
            if type(error).__name__ != "PanicException":  # of a Rust library; not an Exception
                raise
            answer = f"panicked: {error}"
        write_block(answers, json.dumps(answer).encode())


def die_with_parent() -> None:
    """Linux kills this process when the thread that started it ends."""
    if sys.platform == "linux":
        import ctypes
        import signal

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def read_block(stream: BinaryIO) -> bytes | None:
    """One block, or None at the end of the input."""
    head = stream.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    size = LENGTH.unpack(head)[0]
    data = stream.read(size)
    return data if len(data) == size else None


def write_block(stream: BinaryIO, data: bytes) -> None:
    """One block, at once."""
    stream.write(LENGTH.pack(len(data)) + data)
    stream.flush()


def results(data: bytes, cells: list[Any]) -> list[Any]:
    """[kind, value] of each cell, in order."""
    import tempfile

    import ironcalc

    with tempfile.NamedTemporaryFile(suffix=".xlsx") as file:
        file.write(data)
        file.flush()
        model = ironcalc.load_from_xlsx(file.name, "en", "UTC", "en")
    model.evaluate()
    index = {row["name"]: n for n, row in enumerate(model.get_worksheets_properties())}
    return [
        result(model, index[sheet], row, column) if sheet in index else ["?", "the engine does not see this sheet"]
        for sheet, row, column in cells
    ]


def result(model: Any, sheet: int, row: int, column: int) -> list[Any]:
    """[kind, value] of one cell, see ``engines``."""
    value = model.get_cell_value(sheet, row, column)
    if isinstance(value, bool):
        return ["b", value]
    if isinstance(value, int | float):
        return ["n", float(value)] if abs(value) < float("inf") else ["?", repr(value)]
    if value is None:
        return ["n", 0.0]
    if value.startswith("#") and "ErrorValue" in str(model.get_cell_type(sheet, row, column)):
        return ["e", value] if value in CODES else ["?", value]
    return ["s", value]


if __name__ == "__main__":
    main()
