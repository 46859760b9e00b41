"""Simple PDFs from trees: paragraphs, headings and ruled tables, page by page; byte-stable."""

from __future__ import annotations

from typing import Any

from ..errors import Unsupported
from ..node import Document, Node

MARGIN, WIDTH = 56.0, 483.0
"""Points: A4 less two margins."""

SIZES = {"heading": 16.0, "paragraph": 10.0, "footnote": 8.0, "header": 8.0, "footer": 8.0}


def write_pdf(document: Document) -> bytes:
    """A4 pages, one or more for each ``page`` node; text outside Latin-1 needs fonts that are not at hand.

    Raises:
        Unsupported: a node kind or a character that cannot be set.
    """
    from io import BytesIO

    from reportlab.lib.pagesizes import A4
    from reportlab.platypus import PageBreak, SimpleDocTemplate

    flow: list[Any] = []
    for number, page in enumerate(document.nodes):
        if page.kind != "page":
            raise Unsupported(document.name, f"a {page.kind} cannot be written to a PDF", place=page.address)
        if number:
            flow.append(PageBreak())
        for node in page.children:
            flow += _flowables(node, document.name)
    buffer = BytesIO()
    title, author = (str(document.metadata.get(key, "")) for key in ("title", "author"))
    margins = dict.fromkeys(("leftMargin", "rightMargin", "topMargin", "bottomMargin"), MARGIN)
    template = SimpleDocTemplate(buffer, pagesize=A4, title=title, author=author, invariant=1, **margins)
    template.build(flow)
    return buffer.getvalue()


def _flowables(node: Node, name: str) -> list[Any]:
    from xml.sax.saxutils import escape

    from reportlab.lib.styles import ParagraphStyle
    from reportlab.platypus import Paragraph, Spacer, Table, TableStyle

    if node.kind == "table":
        lines = [[_latin(cell.text, name, cell.address) for cell in row.children] for row in node.children]
        grid = TableStyle([("GRID", (0, 0), (-1, -1), 0.5, (0, 0, 0)), ("FONTSIZE", (0, 0), (-1, -1), 9)])
        return [Table(lines, style=grid), Spacer(1, 14)]
    if node.kind not in SIZES:
        raise Unsupported(name, f"a {node.kind} cannot be written to a PDF", place=node.address)
    size = SIZES[node.kind]
    style = ParagraphStyle(node.kind, fontSize=size, leading=1.2 * size, spaceAfter=14)
    return [Paragraph(escape(_latin(node.text, name, node.address)), style)]


def _latin(text: str, name: str, place: str) -> str:
    try:
        text.encode("cp1252")
    except UnicodeEncodeError as error:
        problem = f"{text[error.start]!r} is not in the standard fonts"
        raise Unsupported(name, problem, place=place, remedy="write Latin-1 text") from error
    return text
