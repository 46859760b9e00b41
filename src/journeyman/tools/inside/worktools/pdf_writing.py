"""A PDF of blocks, by reportlab; the same blocks give the same bytes."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from typing import Any
from xml.sax.saxutils import escape

from .workspace import Refused

SPACE = 8.0
"""Points between blocks."""

HEADING_SIZES = (20, 16, 14, 12, 11, 10)


def write_pdf(content: Sequence[dict[str, Any]], metadata: dict[str, Any], page_size: str) -> bytes:
    """The file. Raises Refused for a block that cannot be set."""
    from reportlab.lib import pagesizes
    from reportlab.platypus import SimpleDocTemplate

    sizes = {"letter": pagesizes.LETTER, "a4": pagesizes.A4, "legal": pagesizes.LEGAL}
    flow: list[Any] = []
    for at, block in enumerate(content):
        try:
            flow += _flowables(block)
        except (KeyError, ValueError) as error:
            raise Refused(f"content[{at}]: a {block['type']} cannot be set: {error} is missing or wrong") from error
    buffer = BytesIO()
    names = {key: str(metadata.get(key, "")) for key in ("title", "subject", "author")}
    template = SimpleDocTemplate(buffer, pagesize=sizes[page_size], invariant=1, **names)
    try:
        template.build(flow)
    except Exception as error:  # reportlab raises its own zoo for what does not fit a page
        raise Refused(f"the pages cannot be laid out: {str(error)[:200]}") from error
    return buffer.getvalue()


def _flowables(block: dict[str, Any]) -> list[Any]:
    from reportlab.lib.styles import ParagraphStyle
    from reportlab.platypus import ListFlowable, PageBreak, Paragraph, Spacer

    kind = str(block["type"]).replace("_", " ")
    if kind == "heading":
        size = HEADING_SIZES[min(int(block.get("level") or 1), len(HEADING_SIZES)) - 1]
        style = ParagraphStyle("h", fontName="Helvetica-Bold", fontSize=size, leading=1.25 * size, spaceAfter=SPACE)
        return [Paragraph(_markup(block["text"]), style)]
    body = ParagraphStyle("p", fontSize=10, leading=13, spaceAfter=SPACE)
    if kind == "paragraph":
        text = _markup(block["text"])
        text = f"<b>{text}</b>" if block.get("bold") else text
        return [Paragraph(f"<i>{text}</i>" if block.get("italic") else text, body)]
    if kind in ("bullet list", "numbered list"):
        items = [Paragraph(_markup(item), ParagraphStyle("li", fontSize=10, leading=13)) for item in block["items"]]
        return [ListFlowable(items, bulletType="bullet" if kind == "bullet list" else "1"), Spacer(1, SPACE)]
    if kind == "table":
        return [_table(block), Spacer(1, SPACE)]
    return [PageBreak()] if kind == "page break" else [Spacer(1, float(block.get("height") or 12))]


def _table(block: dict[str, Any]) -> Any:
    from reportlab.lib.styles import ParagraphStyle
    from reportlab.platypus import Paragraph, Table, TableStyle

    style = ParagraphStyle("cell", fontSize=9, leading=11)
    head = ParagraphStyle("head", fontName="Helvetica-Bold", fontSize=9, leading=11)
    has_header = bool(block.get("header", True))
    width = max(len(row) for row in block["rows"])
    rows = [
        [
            Paragraph(_markup("" if cell is None else str(cell)), head if has_header and at == 0 else style)
            for cell in [*row, *[None] * (width - len(row))]
        ]
        for at, row in enumerate(block["rows"])
    ]
    return Table(rows, style=TableStyle([("GRID", (0, 0), (-1, -1), 0.5, (0, 0, 0))]), repeatRows=int(has_header))


def _markup(text: str) -> str:
    """Text for reportlab. Raises Refused for what its standard fonts do not have, instead of printing boxes."""
    try:
        text.encode("cp1252")
    except UnicodeEncodeError as error:
        raise Refused(
            f"{text[error.start]!r} is not in the standard fonts of PDFs; write it in Latin letters, "
            "or make a Word document"
        ) from error
    return escape(text).replace("\n", "<br/>")
