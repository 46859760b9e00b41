"""Delimited text: encoding from a byte-order mark or by trial, delimiter from the rows themselves."""

from __future__ import annotations

from .tree import Tree, UnreadableDocument, table

DELIMITERS = ",;\t|"
"""In order of preference: the first that gives every sampled row the same number (> 1) of fields wins."""

SAMPLE_ROWS = 50


def read_delimited(data: bytes, name: str) -> Tree:
    """One table of the whole file; blank lines are left out."""
    text = _decode(data, name)
    delimiter = find_delimiter(text)
    lines = [row for row in _rows(text, delimiter) if row]
    if not lines:
        raise UnreadableDocument(name, "no row in it")
    where = f"lines 1-{len(text.splitlines())}"
    return {
        "format": "csv",
        "tables": [table(name.rpartition(".")[0], where, lines)],
        "text": text.replace("\r\n", "\n"),
    }


def _decode(data: bytes, name: str) -> str:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        encodings = ["utf-16"]
    else:
        encodings = ["utf-8-sig", "cp1252"]
    for encoding in encodings:
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            continue
        if "\0" in text:
            break
        return text
    raise UnreadableDocument(name, "not text in UTF-8, UTF-16 or Windows-1252")


def find_delimiter(text: str) -> str:
    """The delimiter of ``DELIMITERS`` that splits the first rows evenly; else the one that splits most of them."""
    best, best_share = DELIMITERS[0], 0.0
    for delimiter in DELIMITERS:
        widths = []
        for row in _rows(text, delimiter, strict=False):
            if row:
                widths.append(len(row))
            if len(widths) == SAMPLE_ROWS:
                break
        if not widths or max(widths) == 1:
            continue
        common = max(set(widths), key=widths.count)
        share = widths.count(common) / len(widths) if common > 1 else 0.0
        if share == 1.0:
            return delimiter
        if share > best_share:
            best, best_share = delimiter, share
    return best


def _rows(text: str, delimiter: str, strict: bool = True) -> list[list[str]]:
    import csv
    import io

    return list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=strict))
