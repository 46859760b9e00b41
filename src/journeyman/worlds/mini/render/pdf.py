"""PDF through reportlab: a heading and one ruled table on a page, with real text.

Drawn with one grid and one text object instead of ``platypus.Table``, whose output takes a reader twice as long.
"""

from __future__ import annotations

from io import BytesIO

LEFT, TOP = 72.0, 720.0
"""Upper left corner of the table, in points from the lower left corner of an A4 page."""

ROW_HEIGHT, PADDING = 18.0, 6.0
FONT, FONT_SIZE = "Helvetica", 10.0


def render_pdf(title: str, lines: list[list[str | int]]) -> bytes:
    """A single page; ``invariant`` leaves out dates and random ids. Characters outside Latin-1 cannot be written."""
    from reportlab.lib.pagesizes import A4
    from reportlab.pdfbase.pdfmetrics import stringWidth
    from reportlab.pdfgen.canvas import Canvas

    buffer = BytesIO()
    canvas = Canvas(buffer, pagesize=A4, invariant=1)
    canvas.setTitle(title)
    cells = [[str(value) for value in line] for line in lines]
    edges = [LEFT]
    for column in zip(*cells, strict=True):
        edges.append(edges[-1] + 2 * PADDING + max(stringWidth(text, FONT, FONT_SIZE) for text in column))
    canvas.setLineWidth(0.5)
    canvas.grid(edges, [TOP - ROW_HEIGHT * row for row in range(len(cells) + 1)])
    text = canvas.beginText()
    text.setFont(FONT, FONT_SIZE)
    text.setTextOrigin(LEFT, TOP + PADDING)
    text.textOut(title)
    for row, line in enumerate(cells):
        for edge, value in zip(edges, line, strict=False):
            text.setTextOrigin(edge + PADDING, TOP - ROW_HEIGHT * (row + 1) + PADDING)
            text.textOut(value)
    canvas.drawText(text)
    canvas.save()
    return buffer.getvalue()
