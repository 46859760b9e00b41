"""A tree of rows as delimited text, in the form that its metadata name."""

from __future__ import annotations

from ..errors import BadEdit
from ..node import Document
from .encoding import MARKS, Encoding, encode
from .grid import DELIMITERS, NAMES, Grid, Row, quoted
from .reading import ENDINGS


def write(document: Document) -> bytes:
    """The file. Metadata that is missing means UTF-8, commas and LF. Raises BadEdit for text the encoding lacks."""
    facts = document.metadata
    delimiter = next((mark for mark, word in NAMES.items() if word == facts.get("delimiter", "comma")), ",")
    ending = next((mark for mark, word in ENDINGS.items() if word == facts.get("line_ending")), "\n")
    always = bool(facts.get("all_quoted"))
    rows = []
    for node in document.nodes:
        if node.kind == "row":
            values = [cell.text for cell in node.children if cell.kind == "cell"]
            rows.append(Row(_fields(values, delimiter, always), ending))
    if rows and facts.get("ends_without_line_ending"):
        rows[-1].ending = ""
    hint = f"sep={delimiter}{ending}" if facts.get("separator_line") else ""
    name = str(facts.get("encoding", "utf-8"))
    mark = next((mark for mark, encoding in MARKS if encoding == name), b"") if facts.get("byte_order_mark") else b""
    try:
        return encode(Grid(delimiter, rows, hint).text(), Encoding(name, mark))
    except UnicodeEncodeError as error:
        what = f"{error.object[error.start]!r} does not exist in {name}"
        raise BadEdit(document.name, what, remedy="write UTF-8") from error


def _fields(values: list[str], delimiter: str, always: bool) -> list[str]:
    """Quotes also around what another delimiter could split, so that reading finds this one."""
    fields = [quoted(value, delimiter, always=always or any(one in value for one in DELIMITERS)) for value in values]
    return ['""'] if fields == [""] else fields
