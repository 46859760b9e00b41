"""Word documents: paragraphs as text, tables with their number in the body."""

from __future__ import annotations

from .tree import Tree, table


def read_docx(data: bytes, name: str) -> Tree:
    """Tables of the body in order. Nested tables, headers and footers are left out."""
    from io import BytesIO

    from docx import Document

    document = Document(BytesIO(data))
    tables, texts = [], [paragraph.text for paragraph in document.paragraphs if paragraph.text]
    for number, found in enumerate(document.tables, start=1):
        lines = [[cell.text for cell in row.cells] for row in found.rows]
        tables.append(table(f"table {number}", f"body, table {number}", lines))
        texts.extend("\t".join(line) for line in lines)
    return {"format": "docx", "tables": tables, "text": "\n".join(texts)}
