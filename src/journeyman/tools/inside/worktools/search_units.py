"""What is found as one: a page, a block of rows, a slide, some paragraphs, a message, an event, some lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

ROWS_PER_UNIT = 20
BLOCKS_PER_UNIT = 8
LINES_PER_UNIT = 40

PLAIN = ("txt", "md", "log", "json", "jsonl", "xml", "html", "htm", "yaml", "yml", "toml", "ini", "py", "sql", "rst")
"""Suffixes that are read as lines of text."""

IMAGES = ("png", "jpg", "jpeg", "gif", "bmp", "webp", "tif", "tiff")
"""Suffixes that hold no text; their names are found all the same."""

Unit = tuple[str, str]
"""Place in the file, and its text."""


def is_parsed(name: str) -> bool:
    """Whether a file of this name is not simply read as lines."""
    return name.rpartition(".")[2].lower() not in (*IMAGES, *PLAIN)


def units_of(data: bytes, name: str) -> Iterator[Unit]:
    """The units of a file in order. Raises an officedocs error for a file that cannot be read."""
    suffix = name.rpartition(".")[2].lower()
    if suffix in IMAGES:
        yield "", ""
        return
    if suffix in PLAIN:
        yield from _lines(data)
        return
    from officedocs import open_document
    from officedocs.formats import FORMATS

    if suffix not in FORMATS:
        if b"\0" in data[:65536]:
            yield "", ""
        else:
            yield from _lines(data)
        return
    document = open_document(data, name)
    if document.format in ("xlsx", "xlsb", "xls"):
        yield from _sheets(document)
    elif document.format == "csv":
        yield from _rows(document.nodes, "")
    elif document.format == "docx":
        yield from _blocks(document)
    else:
        for node in document.nodes:
            yield from _messages(node)
    yield "", " ".join(str(value) for value in document.metadata.values())


def _lines(data: bytes) -> Iterator[Unit]:
    lines = data.decode("utf-8", "replace").splitlines()
    for start in range(0, len(lines), LINES_PER_UNIT):
        part = lines[start : start + LINES_PER_UNIT]
        yield f"lines {start + 1}-{start + len(part)}", "\n".join(part)


def text_of(node: Any) -> str:
    """All text of a node, numbers also as they are stored."""
    if not node.children and not node.attributes:  # most cells of a table
        return str(node.text)
    stack, texts = [node], []
    while stack:
        one = stack.pop()
        if one.text:
            texts.append(one.text)
        for key in ("value", "content", "alt", "title", "subject", "from", "to"):
            value = one.attributes.get(key)
            if isinstance(value, str | int | float) and str(value) != one.text:
                texts.append(str(int(value) if isinstance(value, float) and value.is_integer() else value))
        stack.extend(reversed(one.children))
    return "\n".join(texts)


def _sheets(document: Any) -> Iterator[Unit]:
    for sheet in document.nodes:
        if sheet.kind != "sheet":
            yield sheet.address, text_of(sheet)
            continue
        rows = [one for one in sheet.children if one.kind == "row"]
        yield from _rows(rows, str(sheet.attributes.get("name", "")))
        for other in sheet.children:
            if other.kind != "row":
                yield other.address, text_of(other)


def _rows(rows: Any, title: str) -> Iterator[Unit]:
    for start in range(0, len(rows), ROWS_PER_UNIT):
        part = rows[start : start + ROWS_PER_UNIT]
        cells = [cell for row in part for cell in row.children]
        place = f"{cells[0].address} to {cells[-1].address}" if cells else part[0].address
        yield place, "\n".join([title, *("\t".join(text_of(cell) for cell in row.children) for row in part)])


def _blocks(document: Any) -> Iterator[Unit]:
    for story in document.nodes:
        blocks = story.children if story.kind == "body" else [story]
        for start in range(0, len(blocks), BLOCKS_PER_UNIT):
            part = blocks[start : start + BLOCKS_PER_UNIT]
            place = part[0].address if len(part) == 1 else f"{part[0].address} to {part[-1].address}"
            yield place, "\n".join(text_of(one) for one in part)


def _messages(node: Any) -> Iterator[Unit]:
    """A channel message by message, everything else as one."""
    inner = [one for one in node.children if one.kind in ("message", "event", "todo")]
    if node.kind in ("channel", "mailbox") and inner:
        for one in inner:
            yield one.address, text_of(one)
    else:
        yield node.address, text_of(node)
