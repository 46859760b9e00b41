"""Blocks of content written into a Word file: paragraphs, headings, lists, tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .workspace import Refused

PROPERTIES = ("title", "subject", "author", "comments", "keywords", "category")


def append_blocks(holder: Any, content: Sequence[dict[str, Any]]) -> None:
    """Add blocks at the end of a document, header or footer. Raises Refused for what cannot be written."""
    for at, block in enumerate(content):
        try:
            _append(holder, block)
        except KeyError as error:
            raise Refused(f"content[{at}]: {_words(error, block)}") from error
        except ValueError as error:
            raise Refused(f"content[{at}]: {error}") from error


def _words(error: KeyError, block: dict[str, Any]) -> str:
    word = str(error.args[0]) if error.args else ""
    if word in ("text", "items", "rows"):
        return f"a {block.get('type')} needs {word}"
    return f"no style {block.get('style')!r} in this document"


def _append(holder: Any, block: dict[str, Any]) -> None:
    kind = block["type"]
    if kind == "heading":
        level = int(block.get("level") or 1)
        paragraph = holder.add_paragraph(block["text"], style=block.get("style") or f"Heading {level}")
    elif kind == "paragraph":
        paragraph = holder.add_paragraph("", style=block.get("style"))
        run = paragraph.add_run(block["text"])
        run.bold, run.italic = block.get("bold"), block.get("italic")
    elif kind in ("bullet_list", "numbered_list"):
        style = block.get("style") or ("List Bullet" if kind == "bullet_list" else "List Number")
        for item in block["items"]:
            holder.add_paragraph(item, style=style)
    else:
        _table(holder, block)


def _table(holder: Any, block: dict[str, Any]) -> None:
    from docx.shared import Inches

    rows = [["" if one is None else str(one) for one in row] for row in block["rows"]]
    width = max((len(row) for row in rows), default=0)
    if not width:
        raise ValueError("a table needs at least one cell")
    arguments = {} if hasattr(holder, "core_properties") else {"width": Inches(6)}
    table = holder.add_table(len(rows), width, **arguments)
    if hasattr(holder, "core_properties"):
        table.style = block.get("style") or "Table Grid"
    for row, cells in zip(table.rows, rows, strict=True):
        for cell, text in zip(row.cells, cells, strict=False):
            cell.text = text
    if block.get("header", False):
        for cell in table.rows[0].cells:
            for run in cell.paragraphs[0].runs:
                run.bold = True


def set_properties(properties: Any, metadata: dict[str, Any]) -> None:
    """Title, author and the like. Raises Refused for a property that does not exist."""
    for key, text in metadata.items():
        if key not in PROPERTIES:
            raise Refused(f"no property {key!r}; there are {', '.join(PROPERTIES)}")
        setattr(properties, key, str(text))
