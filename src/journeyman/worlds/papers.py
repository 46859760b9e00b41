"""Word deliverables as templates write them: blocks as the tool ``documents_create_document`` takes them, and as bytes.

One layout serves the oracle from the truth and the oracle from the files.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from journeyman.worlds.drafting import CREATED
from journeyman.worlds.render.canonical import rezip
from journeyman.worlds.template import FOLDER, ToolCall

Block = dict[str, Any]


def heading(text: str, level: int = 1) -> Block:
    """A heading."""
    return {"type": "heading", "text": text, "level": level}


def paragraph(text: str) -> Block:
    """A paragraph."""
    return {"type": "paragraph", "text": text}


def table(headers: Sequence[str], rows: Iterable[Sequence[Any]]) -> Block:
    """A table, its header first; nothing is an empty cell."""
    lines = [list(headers), *(list(row) for row in rows)]
    return {"type": "table", "rows": [["" if one is None else one for one in line] for line in lines], "header": True}


def docx_bytes(blocks: Sequence[Mapping[str, Any]]) -> bytes:
    """A Word file of these blocks. Same blocks, same bytes."""
    import docx

    file = docx.Document()
    for block in blocks:
        if block["type"] == "heading":
            file.add_paragraph(block["text"], style=f"Heading {block['level']}")
        elif block["type"] == "table":
            grid = file.add_table(len(block["rows"]), len(block["rows"][0]))
            for row, line in zip(grid.rows, block["rows"], strict=True):
                for cell, value in zip(row.cells, line, strict=True):
                    cell.text = str(value)
        else:
            file.add_paragraph(block["text"])
    file.core_properties.created = file.core_properties.modified = CREATED
    file.core_properties.author = file.core_properties.comments = ""
    made = io.BytesIO()
    file.save(made)
    return rezip(made.getvalue())


def save_document(name: str, blocks: Sequence[Mapping[str, Any]]) -> ToolCall:
    """The call that writes a Word file to the place of deliverables."""
    arguments = {"directory": f"/{FOLDER}", "file_name": name, "content": [dict(one) for one in blocks]}
    return ToolCall("documents_create_document", arguments)
