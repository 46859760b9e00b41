"""Values through calamine: the fast path for xlsx, and the only one for xls, xlsb and ods."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from io import BytesIO
from typing import Any

from ..errors import Encrypted, UnreadableDocument
from ..node import Document, Node
from .address import cell_address, letters, quoted
from .caches import number_text


def values(data: bytes, name: str) -> dict[str, list[list[Any]]]:
    """Stored values by sheet, rows from row 1 and column A; empty cells are empty strings, dates are dates.

    Raises:
        Encrypted: a password is needed. UnreadableDocument: the file is damaged.
    """
    book = _opened(data, name)
    return {sheet: _rows(book, sheet, name) for sheet in book.sheet_names}


def _opened(data: bytes, name: str) -> Any:
    import python_calamine

    try:
        return python_calamine.CalamineWorkbook.from_filelike(BytesIO(data))
    except python_calamine.PasswordError as error:
        raise Encrypted(name, "protected by a password", remedy="save it without a password") from error
    except Exception as error:
        raise UnreadableDocument(name, f"damaged: {error}", remedy="save it as xlsx") from error
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # of a Rust library; not an Exception
            raise
        raise UnreadableDocument(name, "the reader panicked", remedy="save it as xlsx") from error


def _rows(book: Any, sheet: str, name: str) -> list[list[Any]]:
    try:
        found: list[list[Any]] = book.get_sheet_by_name(sheet).to_python(skip_empty_area=False)
    except Exception as error:
        raise UnreadableDocument(name, f"damaged: {error}", place=sheet, remedy="save it as xlsx") from error
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise UnreadableDocument(name, "the reader panicked", place=sheet, remedy="save it as xlsx") from error
    return found


def read_legacy(data: bytes, name: str) -> Document:
    """The tree of a format of which only values are read."""
    book = _opened(data, name)
    states = {row.name: str(row.visible).rpartition(".")[2] for row in book.sheets_metadata}
    nodes = []
    for sheet in book.sheet_names:
        rows = []
        width = 0
        for number, row in enumerate(_rows(book, sheet, name), start=1):
            cells = tuple(
                _node(cell_address(sheet, number, column), value)
                for column, value in enumerate(row, start=1)
                if value != ""
            )
            width = max(width, len(row))
            if cells:
                rows.append(Node("row", f"{quoted(sheet)}!{number}:{number}", "", {}, cells))
        attributes: dict[str, Any] = {"name": sheet}
        if rows:
            attributes["used"] = f"A1:{letters(width)}{rows[-1].address.rpartition(':')[2]}"
        if states.get(sheet, "Visible") != "Visible":
            attributes["state"] = "hidden" if states[sheet] == "Hidden" else "veryHidden"
        nodes.append(Node("sheet", f"sheet:{sheet}", "", attributes, tuple(rows)))
    suffix = name.rpartition(".")[2].lower()
    warning = f"of {suffix} files only stored values are read, no formulas, styles or comments"
    hidden = [node.attributes["name"] for node in nodes if "state" in node.attributes]
    warnings = (warning, f"hidden sheets: {', '.join(hidden)}") if hidden else (warning,)
    return Document("xlsx", name, tuple(nodes), {}, warnings)


def _node(address: str, value: Any) -> Node:
    if isinstance(value, bool):
        return Node("cell", address, "TRUE" if value else "FALSE", {"type": "boolean", "value": value})
    if isinstance(value, int | float):
        return Node("cell", address, number_text(float(value)), {"type": "number", "value": float(value)})
    if isinstance(value, date | datetime | time):
        return Node("cell", address, value.isoformat(), {"type": "date"})
    if isinstance(value, timedelta):
        return Node("cell", address, str(value), {"type": "date"})
    kind = "error" if str(value).startswith("#") and str(value).rstrip("!?/AN").isupper() else "text"
    return Node("cell", address, str(value), {"type": kind})
